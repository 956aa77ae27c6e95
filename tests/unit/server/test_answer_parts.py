"""From the engine's events to text, thoughts and figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from medusa_core.messages import (
    GIVEN,
    TARGET,
    THINK_TAGS,
    Advice,
    GenerateSettings,
    ModelLoaded,
    ReasoningFormat,
    RuleChoice,
    StepLogprobs,
    StopReason,
    TokenLogprob,
)
from medusa_core.server.answer_reader import AnswerReader
from medusa_core.server.answering import decoding_settings
from medusa_core.server.api_error import ApiError
from medusa_core.server.chat import AnswerEnd, ChatRequest, Finish, TextDelta
from tests.support.messages import EXAMPLES
from tests.support.server.answer_steps import DONE, END_ID, done, step

RULES = tuple(
    RuleChoice(name, name, "", is_exact=True, draws=name == "sample")
    for name in ("greedy", "sample")
)
LOADED = replace(next(one for one in EXAMPLES if isinstance(one, ModelLoaded)), rules=RULES)


def reader(
    stop: tuple[str, ...] = (), *, inside: bool = False, scored: bool = False
) -> AnswerReader:
    found = AnswerReader(THINK_TAGS, frozenset({END_ID}), stop, scored)
    found.begin(inside)
    return found


def texts(deltas: object) -> list[str]:
    return [delta.text for delta in deltas if isinstance(delta, TextDelta)]


def test_text_withheld_for_a_stop_string_isnt_sent() -> None:
    answer = reader(("STOP",))
    assert texts(answer.step(step(0, (b"one ", b"ST"), 4))) == ["one "]
    assert texts(answer.step(step(1, (b"AR",), 8))) == ["STAR"]
    assert texts(answer.step(step(2, (b"S", b"TOP!"), 8))) == []
    *rest, end = answer.finish(done("one STAR", StopReason.STOP_STRING))
    assert rest == []
    assert isinstance(end, AnswerEnd)
    assert (end.finish, end.stop) == (Finish.STOP_STRING, "STOP")


def test_a_stop_string_within_a_token_keeps_the_tokens_beginning() -> None:
    answer = reader(("b", "c"))
    assert texts(answer.step(step(0, (b"aac",), 2))) == []
    *rest, end = answer.finish(done("aa", StopReason.STOP_STRING))
    assert texts(rest) == ["aa"]
    assert isinstance(end, AnswerEnd)
    assert end.stop == "c"


def test_a_character_of_two_tokens_is_sent_with_the_second() -> None:
    answer = reader()
    assert texts(answer.step(step(0, (b"",), 0))) == []
    assert texts(answer.step(step(1, ("☃".encode(),), 3))) == ["☃"]


def test_a_prefilled_answer_isnt_repeated() -> None:
    answer = reader()
    first = step(0, (b"Once", b" upon", b" a"), 12)
    first = first._replace(sources=(GIVEN, GIVEN, TARGET))
    assert texts(answer.step(first)) == [" a"]
    *rest, end = answer.finish(done("Once upon a", num_given=2))
    assert texts(rest) == []
    assert isinstance(end, AnswerEnd)
    assert end.num_answer_tokens == len(DONE.token_ids) - 2


def test_log_probabilities_are_sent_with_the_text_of_their_tokens() -> None:
    answer = reader(scored=True)
    one, two = TokenLogprob(1, b"a", -0.1), TokenLogprob(2, b"b", -2.0)
    assert list(answer.step(step(0, (b"a", b"b"), 1))) == []
    scores = StepLogprobs("s", "r", 0, (one, two), ((two, one), ()))
    (delta,) = answer.logprobs(scores)
    assert [(token.chosen, token.alternatives) for token in delta.tokens] == [(one, (one, two))]
    rest, _ = answer.finish(done("ab"))
    assert [token.chosen for token in rest.tokens] == [two]


def test_reasoning_tokens_are_counted() -> None:
    answer = reader(inside=True)
    parts = list(answer.step(step(0, (b"so", b" it", b"</think>", b"\n\n", b"Yes"), 18)))
    assert [(part.text, part.is_reasoning) for part in parts] == [("so it", True), ("Yes", False)]
    *_, end = answer.finish(done("so it</think>\n\nYes"))
    assert isinstance(end, AnswerEnd)
    assert end.num_reasoning_tokens == 2


def request_with(settings: GenerateSettings, *open_settings: str) -> ChatRequest:
    return ChatRequest("", (), settings, frozenset(open_settings))


def test_recommended_sampling_fills_missing_fields() -> None:
    facts = replace(LOADED, advice=Advice(temperature=0.6, top_k=20, top_p=0.9))
    settings = GenerateSettings(temperature=1.5, rule="sample")
    found = decoding_settings(request_with(settings, "top_k", "top_p", "rule"), facts)
    assert (found.temperature, found.top_k, found.top_p, found.rule) == (1.5, 20, 0.9, "sample")
    found = decoding_settings(request_with(settings, "temperature", "rule"), facts)
    assert found.temperature == 0.6


def test_without_recommendation_answers_are_sampled_like_the_windows() -> None:
    facts = replace(LOADED, advice=None)
    found = decoding_settings(
        request_with(GenerateSettings(), "temperature", "top_p", "rule"), facts
    )
    assert (found.temperature, found.top_p, found.rule) == (0.7, 0.95, "sample")


def test_a_temperature_of_zero_is_greedy() -> None:
    found = decoding_settings(request_with(GenerateSettings(temperature=0.0), "rule"), LOADED)
    assert found.rule == "greedy"


def test_an_unknown_rule_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ApiError, match=LOADED.rules[0].name):
        decoding_settings(request_with(GenerateSettings(rule="dice")), LOADED)


CHANNELS = ReasoningFormat(
    "<|channel|>analysis<|message|>",
    "<|end|>",
    "<|start|>assistant",
    ("<|channel|>final<|message|>", "<|channel|>commentary<|message|>"),
    tokens=((91, "<|channel|>"), (92, "<|message|>"), (93, "<|end|>"), (94, "<|start|>")),
)


def tokens_of(text: str) -> tuple[tuple[int, ...], tuple[bytes, ...]]:
    """Ids and bytes of words; tags have none."""
    ids = {name: number for number, name in CHANNELS.tokens}
    words = text.split()
    return tuple(ids.get(word, 1) for word in words), tuple(
        b"" if word in ids else word.encode() for word in words
    )


def test_messages_of_one_answer_are_separate() -> None:
    answer = AnswerReader(CHANNELS, frozenset({END_ID}), (), False)
    ids, pieces = tokens_of(
        "<|channel|> analysis <|message|> Hm. <|end|> <|start|> assistant "
        "<|channel|> final <|message|> </think> closes."
    )
    text = b"".join(pieces).decode()
    first = step(0, pieces, len(text))._replace(token_ids=ids)
    parts = [part for part in answer.step(first) if isinstance(part, TextDelta)]
    parts += [part for part in answer.finish(done(text)) if isinstance(part, TextDelta)]
    assert [(part.text, part.is_reasoning) for part in parts] == [
        ("Hm.", True),
        ("</think>closes.", False),
    ]


@pytest.mark.parametrize("inside", [False, True])
def test_an_answer_cut_within_its_reasoning_is_continued_there(inside: bool) -> None:
    answer = reader(inside=inside)
    given = b"Hm" if inside else b"<think>Hm"
    first = step(0, (given, b" so", b"</think>", b"Yes"), len(given) + 14)
    first = first._replace(sources=(GIVEN, TARGET, TARGET, TARGET))
    parts = [(part.text, part.is_reasoning) for part in answer.step(first)]
    assert parts == [(" so", True), ("Yes", False)]


def test_prefilled_text_that_may_become_a_tag_isnt_repeated() -> None:
    answer = reader()
    first = step(0, (b"<thi", b"ck>"), 7)._replace(sources=(GIVEN, TARGET))
    assert texts(answer.step(first)) == ["ck>"]
