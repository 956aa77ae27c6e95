"""Conversations that are longer than the context: what is left out, and what is told of it."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from medusa_core.api import demo_model
from medusa_core.engine.direct import events_of
from medusa_core.engine.overflow import fit
from medusa_core.engine.session import Session
from medusa_core.engine.start import start_generation
from medusa_core.engine.text_commands import count
from medusa_core.errors import RequestError, TemplateError
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import (
    ChatMessage,
    ContextCut,
    Count,
    Counted,
    Generate,
    GenerateSettings,
    GenerationDone,
    LoadModel,
    LoadOptions,
    Overflow,
    Progress,
    Role,
    StopReason,
)
from medusa_core.models.text.template import ChatTemplate
from medusa_core.speculation.drafters.sources.suffix_source import SuffixSource
from medusa_core.speculation.tuning.row_policy import RowPolicy
from tests.support.engine.counting import counted
from tests.support.engine.harness import EngineHarness
from tests.support.engine.laws import decode, take_step, user_says
from tests.support.models.targets import Folders

SYSTEM = ChatMessage(Role.SYSTEM, "You are a fox who answers in one sentence.")
QUESTION = "Tell me about a fox that walks through the forest and meets a bear. " * 2
ANSWER = "The fox met a bear, and they went home together. " * 2
ROLLING = GenerateSettings(drafter="medusa", overflow=Overflow.ROLLING, max_new_tokens=8)
OPEN = GenerateSettings(drafter="medusa", rule="sample", temperature=1.2, seed=3, max_new_tokens=0)
MIDDLE = replace(ROLLING, overflow=Overflow.MIDDLE)


LIMIT = 512


@pytest.fixture(scope="module")
def pebble() -> Target:
    return load_target(*demo_model(), LoadOptions("float32", context_tokens=LIMIT))


def chat(num_answered: int, last: str = QUESTION) -> tuple[ChatMessage, ...]:
    """Return a conversation with the given number of numbered exchanges."""
    messages = [SYSTEM]
    for number in range(num_answered):
        messages.append(ChatMessage(Role.USER, f"{number}: {QUESTION}"))
        messages.append(ChatMessage(Role.ASSISTANT, f"{number}: {ANSWER}"))
    return (*messages, ChatMessage(Role.USER, f"{num_answered}: {last}"))


def numbers(messages: tuple[ChatMessage, ...]) -> list[int]:
    """The exchanges that are read, by their numbers."""
    return [int(m.text.partition(":")[0]) for m in messages if m.role is Role.USER]


@pytest.mark.parametrize("policy", Overflow)
def test_a_conversation_that_fits_is_unchanged(policy: Overflow, pebble: Target) -> None:
    messages = chat(2)
    fitted = fit(messages, None, pebble, replace(ROLLING, overflow=policy))
    assert (fitted.messages, fitted.cut) == (messages, None)
    plain = fit(messages, None, pebble, GenerateSettings())
    assert fitted.transcript == plain.transcript


def test_a_rolling_window_keeps_its_cut_until_the_context_is_full_again(pebble: Target) -> None:
    limit = pebble.config.context_tokens
    firsts: list[int] = []
    for num_answered in range(4, 30):
        messages = chat(num_answered)
        fitted = fit(messages, None, pebble, ROLLING)
        num_read = len(fitted.transcript.token_ids)
        kept = numbers(fitted.messages)
        assert num_read < limit
        assert fitted.messages[0] == SYSTEM
        assert fitted.messages[-1] == messages[-1]
        assert kept == list(range(kept[0], num_answered + 1))  # a window, without a gap
        if firsts and kept[0] != firsts[-1]:
            assert num_read <= 0.7 * limit
        firsts.append(kept[0])
        if fitted.cut is not None:
            assert fitted.cut.num_messages == 2 * kept[0]
            assert fitted.cut.num_tokens == pytest.approx(fitted.num_tokens - num_read)
    cuts = len(set(firsts)) - 1
    assert 2 < cuts < len(firsts) / 2
    assert firsts == sorted(firsts)


def test_after_a_cut_the_next_turn_computes_only_its_new_message(pebble: Target) -> None:
    target, runner = counted(pebble)
    session = Session(target)
    num_answered = next(n for n in range(30) if fit(chat(n), None, target, ROLLING).cut)
    messages = chat(num_answered)
    first = decode(target, ROLLING, messages, session=session)
    runner.num_prefilled = 0
    output = ChatMessage(Role.ASSISTANT, first.done.text, first.done.token_ids)
    more = (*messages, output, ChatMessage(Role.USER, "And then?"))
    second = decode(target, ROLLING, more, session=session)
    assert second.done.num_cached_tokens > 0.5 * second.done.num_prompt_tokens
    assert runner.num_prefilled < 20


@pytest.mark.parametrize("policy", [Overflow.ROLLING, Overflow.MIDDLE])
def test_a_continued_answer_uses_the_same_cut(policy: Overflow, tiny: Target) -> None:
    settings = replace(MIDDLE, overflow=policy, max_new_tokens=0, banned=tuple(tiny.eos_token_ids))
    messages = chat(3)
    limited = replace(settings, max_new_tokens=30)
    whole = decode(tiny, limited, messages)
    part = decode(tiny, replace(limited, max_new_tokens=20), messages)
    given = ChatMessage(Role.ASSISTANT, part.done.text, part.done.token_ids)
    rest = decode(tiny, replace(limited, max_new_tokens=10), (*messages, given))
    assert rest.done.token_ids == whole.done.token_ids
    full = decode(tiny, settings, messages).done
    assert full.stop_reason is StopReason.CONTEXT
    given = ChatMessage(Role.ASSISTANT, full.text, full.token_ids)
    more = decode(tiny, replace(settings, max_new_tokens=20), (*messages, given)).done
    assert more.num_prompt_tokens < full.num_prompt_tokens  # there was no other way


def test_cutting_the_middle_keeps_the_beginning_and_the_end(pebble: Target) -> None:
    for num_answered in (8, 9, 14):
        kept = numbers(fit(chat(num_answered), None, pebble, MIDDLE).messages)
        assert kept[0] == 0
        assert kept[-1] == num_answered
        gaps = [(a, b) for a, b in pairwise(kept) if b != a + 1]
        assert len(gaps) == 1


def test_omitted_messages_are_reported_before_the_text(pebble: Target) -> None:
    request = Generate("s", "r", chat(9), ROLLING)
    generation = start_generation(request, pebble, Session(pebble), RowPolicy(pebble))
    events = list(events_of(generation))
    cut, *_ = events
    assert isinstance(cut, ContextCut)
    assert cut.cut.num_messages > 0
    assert sum(isinstance(event, ContextCut) for event in events) == 1
    done = events[-1]
    assert isinstance(done, GenerationDone)
    assert done.num_prompt_tokens == cut.num_prompt_tokens


def test_omitted_answers_of_another_model_are_drafted_in_this_ones_tokens(
    pebble: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    recalled: list[list[int]] = []
    monkeypatch.setattr(SuffixSource, "recall", lambda _, texts: recalled.extend(map(list, texts)))
    foreign = (pebble.config.vocab_size + 1, 3)
    messages = tuple(
        message._replace(token_ids=foreign) if message.role is Role.ASSISTANT else message
        for message in chat(9)
    )
    request = Generate("s", "r", messages, replace(ROLLING, drafter="suffix"))
    with closing(Session(pebble)) as session:
        start_generation(request, pebble, session, RowPolicy(pebble)).cancel()
    assert f"0: {ANSWER}" in map(pebble.tokenizer.decode, recalled)
    assert max(map(max, recalled)) < pebble.config.vocab_size


def test_omitted_messages_can_be_drafted_from(
    pebble: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    recalled: list[list[int]] = []
    recall = SuffixSource.recall

    def note(self: SuffixSource, texts: Iterable[Sequence[int]]) -> None:
        recalled.extend(map(list, texts))
        recall(self, recalled)

    monkeypatch.setattr(SuffixSource, "recall", note)
    settings = replace(ROLLING, drafter="suffix")
    for number in (9, 1):
        request = Generate("s", "r", chat(number), settings)
        with closing(Session(pebble)) as session:
            start_generation(request, pebble, session, RowPolicy(pebble)).cancel()
        kept = set(numbers(fit(chat(number), None, pebble, settings).messages))
        dropped = [pebble.tokenizer.decode(token_ids) for token_ids in recalled]
        omitted = {int(text.partition(":")[0]) for text in dropped}
        assert omitted == set(range(number + 1)) - kept
        recalled.clear()


@pytest.mark.parametrize("policy", Overflow)
def test_a_single_message_that_is_too_long_is_refused_in_plain_words(
    policy: Overflow, pebble: Target
) -> None:
    with pytest.raises(RequestError, match=r"needs [0-9,]+ tokens; .*'s limit is 512"):
        fit(chat(1, QUESTION * 18), None, pebble, replace(ROLLING, overflow=policy))


@pytest.mark.parametrize("drafter", ["medusa", "none"])
def test_an_answer_without_a_limit_may_fill_the_context(drafter: str, folders: Folders) -> None:
    target = load_target(*folders["grouped"], LoadOptions("float64", context_tokens=192))
    limit = target.config.context_tokens
    requested = replace(OPEN, drafter=drafter, banned=tuple(target.eos_token_ids), tree_rows=4)
    text = "begin"
    while len(target.tokenizer.encode(text)) < limit - 90:
        text += " again"
    run = decode(target, requested, user_says(text))
    assert run.done.stop_reason is StopReason.CONTEXT
    assert len(run.token_ids) > 60
    assert run.done.num_prompt_tokens + len(run.token_ids) == limit
    limited = decode(target, replace(requested, max_new_tokens=limit), user_says(text))
    assert run.token_ids == limited.token_ids


@pytest.mark.parametrize("drafter", ["none", "medusa"])
def test_an_answer_whose_cache_was_evicted_is_prefilled_again(drafter: str, tiny: Target) -> None:
    requested = replace(OPEN, drafter=drafter, max_new_tokens=40)
    session = Session(tiny)
    generation = start_generation(
        Generate("s", "r", user_says("begin"), requested), tiny, session, RowPolicy(tiny)
    )
    for piece in range(1000):
        if piece == 5:
            session.kv.truncate(0)
        if events := take_step(generation):
            done = events[-1]
        if generation.is_done:
            break
    assert isinstance(done, GenerationDone)
    assert done.token_ids == decode(tiny, requested, user_says("begin")).token_ids


def test_prefill_reports_its_progress_and_can_be_stopped(pebble: Target) -> None:
    request = Generate("s", "r", chat(4), ROLLING)
    generation = start_generation(request, pebble, Session(pebble), RowPolicy(pebble))
    (progress,) = take_step(generation)
    assert isinstance(progress, Progress)
    assert 0 < progress.num_done < progress.num_total
    assert progress.text == f"Reading {progress.num_done:,} of {progress.num_total:,} tokens"
    (done,) = generation.cancel()
    assert isinstance(done, GenerationDone)
    assert done.stop_reason is StopReason.CANCELLED


@pytest.mark.parametrize("policy", Overflow)
def test_a_turn_renders_and_tokenizes_its_prompt_once(
    policy: Overflow, pebble: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered: list[int] = []
    encoded: list[str] = []
    render, encode = pebble.template._rendering.render, pebble.tokenizer.encode

    def count_render(turns: Sequence[Mapping[str, Any]], *rest: Any) -> str:
        rendered.append(len(turns))
        return render(turns, *rest)

    def count_encode(text: str) -> list[int]:
        encoded.append(text)
        return encode(text)

    fit(chat(2), None, pebble, ROLLING)  # learns the template's format of reasoning
    monkeypatch.setattr(pebble.template._rendering, "render", count_render)
    monkeypatch.setattr(pebble.tokenizer, "encode", count_encode)
    asked = user_says(f"Which policy is {policy.value}?")
    settings = replace(ROLLING, overflow=policy)
    start_generation(
        Generate("s", "r", asked, settings), pebble, Session(pebble), RowPolicy(pebble)
    )
    assert rendered == [1]  # the prompt
    assert sum(asked[0].text in text for text in encoded) == 1
    rendered.clear()
    output = ChatMessage(Role.ASSISTANT, "This one.", tuple(encode("This one.")))
    more = (*asked, output, ChatMessage(Role.USER, "And then?"))
    start_generation(Generate("s", "r", more, settings), pebble, Session(pebble), RowPolicy(pebble))
    assert rendered == [3, 3]  # the prompt, and with a marker for the answer


# Counting -----------------------------------------------------------------------------------------


def test_a_count_equals_the_tokens_that_the_answer_prefills(pebble: Target) -> None:
    for messages in (chat(0), chat(3), chat(9)):
        counted_before = count(Count("s", "c", messages, ROLLING, wants_prompt=True), pebble)
        done = decode(pebble, ROLLING, messages).done
        assert counted_before.num_read == done.num_prompt_tokens
        assert (counted_before.cut is None) == (
            counted_before.num_read == counted_before.num_tokens
        )
        assert counted_before.prompt.endswith("<|assistant|>")


def test_a_count_says_in_advance_that_a_prompt_will_not_fit(pebble: Target) -> None:
    reported = count(Count("s", "c", chat(12), GenerateSettings()), pebble)
    assert reported.num_tokens > reported.context_tokens == pebble.config.context_tokens
    assert "This chat needs" in reported.lack
    assert count(Count("s", "c", ()), pebble).num_tokens == 0
    shown = count(Count("s", "c", chat(12), GenerateSettings(), wants_prompt=True), pebble)
    assert shown.lack == reported.lack
    assert all(message.text.strip() in shown.prompt for message in chat(12))


def test_a_template_without_system_messages_gets_the_system_prompt_in_the_first_message(
    pebble: Target,
) -> None:
    source = (
        "{% if messages[0]['role'] != 'user' %}{{ raise_exception('roles') }}{% endif %}"
        "{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}{% endfor %}[assistant]"
    )
    target = replace(pebble, template=ChatTemplate(source, {}))
    reported = count(Count("s", "c", (SYSTEM, *user_says("Hi")), wants_prompt=True), target)
    assert reported.prompt == f"[user]{SYSTEM.text}\n\nHi[assistant]"
    assert numbers(fit(chat(12), None, target, ROLLING).messages)[-1] == 12


def test_a_template_error_names_its_line(pebble: Target) -> None:
    source = "{{ bos_token }}\n{{ messages[0]['content'] }}\n{{ raise_exception('no systems') }}"
    target = replace(pebble, template=ChatTemplate(source, {}))
    with pytest.raises(TemplateError, match="line 3: no systems"):
        count(Count("s", "c", chat(0)), target)


def test_the_worker_counts_during_answers_and_uses_the_models_first_drafter() -> None:
    harness = EngineHarness()
    try:
        harness.load(LoadModel("", "load", *demo_model()))
        settings = GenerateSettings(drafter="", max_new_tokens=60)
        harness.submit(Generate("s", "answer", chat(3), settings))
        harness.submit(Count("count", "c", chat(2), settings))
        harness.wait("answer", GenerationDone)
        kinds = [type(event) for event in harness.events if event.request_id in ("answer", "c")]
        assert kinds.index(Counted) < kinds.index(GenerationDone)
        (done,) = harness.of("answer", GenerationDone)
        assert done.settings.drafter == "composite"
        alone = count(Count("count", "c", chat(2), settings), load_target(*demo_model()))
        assert harness.of("c", Counted) == [alone]
    finally:
        harness.close()
