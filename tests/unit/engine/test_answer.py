"""Where an answer ends: EOS, stop strings, token budget, context, inside an accepted run too."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from medusa_core.chats.repetition import CHECK_EVERY
from medusa_core.engine.answer import AnswerBuffer
from medusa_core.engine.session import Session
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings, StopReason
from medusa_core.models.text.detokenizer import Detokenizer
from medusa_core.models.text.tokenizer import Tokenizer
from medusa_core.speculation.rules.rule import rule_registry
from tests.support.engine.fakes import oracle_spec
from tests.support.engine.laws import check_cache, check_same_tokens, decode, plainly, user_says
from tests.support.models.tiny import EOS_ID, make_tokenizer

TOKENIZER = Tokenizer(make_tokenizer())


def byte_ids(text: str) -> list[int]:
    """Return one token per byte."""
    return [token for b in text.encode() for token in _ID_OF[bytes([b])]]


_ID_OF = {
    TOKENIZER.bytes_of(token): (token,)
    for token in range(TOKENIZER.vocab_size)
    if len(TOKENIZER.bytes_of(token)) == 1
}

LETTERS = "".join(chr(code[0]) for code in _ID_OF if len(code) == 1 and code.isalpha())


def answer(stop: Sequence[str] = (), max_tokens: int = 100) -> AnswerBuffer:
    eos = frozenset({EOS_ID, 2})
    return AnswerBuffer(Detokenizer(TOKENIZER), eos, stop, max_tokens, StopReason.MAX_TOKENS)


def take_all(
    target: AnswerBuffer, token_ids: Sequence[int], sizes: Sequence[int]
) -> tuple[bytes, list[int], StopReason | None]:
    """Feed tokens in runs; returns all pieces, what was visible after each run, and the end."""
    pieces, visible, start = b"", [], 0
    for size in [*sizes, *[1] * len(token_ids)]:
        run = token_ids[start : start + size]
        if not run:
            break
        kept = target.append(run)
        pieces += b"".join(kept.pieces)
        visible.append(target.num_visible_bytes)
        start += size
        if kept.stop_reason is not None:
            assert len(kept.pieces) <= len(run)
            return pieces, visible, kept.stop_reason
    return pieces, visible, None


def text_of(chance: random.Random, most: int, least: int = 0) -> str:
    """Few letters, so that stop strings occur; a character of three bytes, cut by tokens."""
    return "".join(chance.choices("ab€\n", k=chance.randint(least, most)))


def stops_of(chance: random.Random) -> list[str]:
    return [text_of(chance, 4, 1) for _ in range(chance.randint(0, 3))]


def test_any_chunking_of_tokens_ends_at_the_same_token() -> None:
    chance = random.Random(4)
    for _ in range(100):
        check_chunking(chance)


def check_chunking(chance: random.Random) -> None:
    text, tail, stop = text_of(chance, 24), text_of(chance, 24), stops_of(chance)
    max_tokens, has_eos = chance.randint(1, 60), chance.random() < 0.5
    sizes = [chance.randint(1, 5) for _ in range(40)]
    token_ids = [*byte_ids(text), *([EOS_ID] if has_eos else []), *byte_ids(tail)]
    single, chunked = answer(stop, max_tokens), answer(stop, max_tokens)
    one_pieces, _, one_reason = take_all(single, token_ids, [1])
    pieces, visible, reason = take_all(chunked, token_ids, sizes)
    assert (chunked.text, chunked.token_ids, reason) == (single.text, single.token_ids, one_reason)
    assert pieces == one_pieces
    assert chunked.num_visible_bytes == single.num_visible_bytes
    # What was shown once is never taken back.
    assert visible == sorted(visible)


@pytest.mark.parametrize("start", [0, 1, 7, 22, 40])
def test_repetition_ends_an_answer_at_the_same_token_for_any_chunking(start: int) -> None:
    sizes = random.Random(start).choices(range(1, 6), k=40)
    # Varied at first, so that the answer comes to repeat itself between two checks.
    varied = "".join(random.Random(start).choices(LETTERS, k=100 + start))
    token_ids = byte_ids(varied + "ab\n" * 200)
    reasons, lengths = [], []
    for run_lengths in ([1], [size + 7 for size in sizes] * 20):
        buffer = AnswerBuffer(
            Detokenizer(TOKENIZER), frozenset({EOS_ID}), (), 1000, StopReason.MAX_TOKENS, True
        )
        _, _, reason = take_all(buffer, token_ids, run_lengths)
        reasons.append(reason)
        lengths.append(len(buffer.token_ids))
    assert reasons == [StopReason.REPETITION] * 2
    assert lengths[0] == lengths[1]
    assert lengths[0] % CHECK_EVERY == 0
    assert 320 < lengths[0] < 500


def test_a_continued_answer_restarts_the_repetition_count() -> None:
    buffer = AnswerBuffer(
        Detokenizer(TOKENIZER), frozenset({EOS_ID}), (), 1000, StopReason.MAX_TOKENS, True
    )
    buffer.resume(byte_ids("ab" * 200))
    _, _, reason = take_all(buffer, byte_ids("ab" * 100), [1])
    assert reason is None


def test_the_text_is_cut_at_the_first_completed_stop_string() -> None:
    chance = random.Random(5)
    for _ in range(100):
        check_cut(chance)


def check_cut(chance: random.Random) -> None:
    text, stop = text_of(chance, 24), stops_of(chance)
    grown = answer(stop)
    _, _, reason = take_all(grown, byte_ids(text), [1])
    ends = [text.encode().find(s.encode()) + len(s.encode()) for s in stop if s in text]
    if not ends:
        assert reason is None
        grown.finish()
        assert grown.text == text
        return
    assert reason is StopReason.STOP_STRING
    assert not any(s in grown.text for s in stop)
    assert text.startswith(grown.text)
    assert len(grown.token_ids) == min(ends)


@pytest.mark.parametrize("eos_id", [EOS_ID, 2])
def test_every_eos_token_ends_the_answer_within_a_step(eos_id: int) -> None:
    grown = answer()
    kept = grown.append([*byte_ids("ab"), eos_id, *byte_ids("no")])
    assert kept.stop_reason is StopReason.EOS
    assert kept.pieces == (b"a", b"b", b"")
    assert grown.token_ids == [*byte_ids("ab"), eos_id]
    assert grown.text == "ab"


def test_a_stop_string_within_a_step_ends_it_and_is_removed_from_the_text() -> None:
    grown = answer(["b€"])
    kept = grown.append(byte_ids("ab€ab"))
    assert kept.stop_reason is StopReason.STOP_STRING
    assert len(kept.pieces) == 5  # the euro has three bytes
    assert grown.text == "a"


def test_a_possible_stop_string_across_steps_is_withheld_until_it_is_decided() -> None:
    grown = answer(["\n\nab", "\n\nb"])
    grown.append(byte_ids("a\n"))
    assert grown.text == "a"
    grown.append(byte_ids("\n"))
    assert grown.text == "a"
    grown.append(byte_ids("a"))
    assert grown.text == "a"
    grown.append(byte_ids("a"))
    assert grown.text == "a\n\naa"
    kept = grown.append(byte_ids("\n\nb"))
    assert kept.stop_reason is StopReason.STOP_STRING
    assert grown.text == "a\n\naa"


def test_withheld_text_is_shown_when_the_answer_ends_otherwise() -> None:
    for ending in ([EOS_ID], byte_ids("b")):
        grown = answer(["bbb"], max_tokens=4)
        grown.append(byte_ids("ab"))
        grown.append(byte_ids("b"))
        assert grown.text == "a"
        kept = grown.append(ending)
        assert kept.stop_reason in (StopReason.EOS, StopReason.STOP_STRING)
    grown = answer(["bbb"])
    grown.append(byte_ids("abb"))
    grown.finish()
    assert grown.text == "abb"


def test_without_stop_strings_all_of_a_steps_text_is_shown() -> None:
    target = answer()
    for run, length in ((byte_ids("ab"), 2), (byte_ids("c"), 3), (byte_ids("€")[:2], 3)):
        assert target.append(run).stop_reason is None
        assert target.num_visible_bytes == length


def test_the_token_budget_cuts_a_step_exactly() -> None:
    grown = answer(max_tokens=3)
    kept = grown.append(byte_ids("ababab"))
    assert kept.stop_reason is StopReason.MAX_TOKENS
    assert grown.text == "aba"
    assert grown.num_left == 0


def test_an_incomplete_character_at_the_end_becomes_one_replacement_character() -> None:
    grown = answer(max_tokens=2)
    kept = grown.append(byte_ids("€€"))
    assert b"".join(kept.pieces).decode() == "\ufffd" == grown.text


def test_an_empty_stop_string_stops_nothing() -> None:
    grown = answer(["", "b"])
    assert grown.append(byte_ids("a")).stop_reason is None
    assert grown.append(byte_ids("b")).stop_reason is StopReason.STOP_STRING


# The same in the engine, with runs of several tokens ----------------------------------------------

SETTINGS = GenerateSettings(
    drafter="medusa", rule="sample", temperature=1.2, seed=12, max_new_tokens=60
)
MESSAGES = user_says("when does it end")


def check_ends_alike(target: Target, settings: GenerateSettings) -> StopReason:
    """Plain decoding and long accepted runs end at the same token; returns why."""
    free = decode(target, plainly(replace(SETTINGS, max_new_tokens=80)), MESSAGES)
    truth = [*free.prompt_ids, *free.token_ids]
    plain = decode(target, plainly(settings), MESSAGES)
    for seed in range(2):
        session = Session(target)
        run = decode(
            target,
            settings,
            MESSAGES,
            session=session,
            drafter=oracle_spec(truth, seed),
            rule=rule_registry().get(settings.rule),
            after_step=lambda session: check_cache(session, target, 1e-12),
        )
        check_same_tokens(plain, run)
        # What was cut leaves no rows behind: the session ends with the answer's last token.
        assert tuple(session.token_ids) == (*run.prompt_ids, *run.token_ids)
        assert session.kv.length == len(session.token_ids) - 1
    return plain.done.stop_reason


@pytest.mark.parametrize("max_new_tokens", [1, 3, 20])
def test_a_budget_is_met_exactly_within_accepted_tokens(max_new_tokens: int, tiny: Target) -> None:
    settings = replace(SETTINGS, max_new_tokens=max_new_tokens)
    assert check_ends_alike(tiny, settings) is StopReason.MAX_TOKENS


def test_eos_within_accepted_tokens_ends_the_answer(tiny: Target) -> None:
    free = decode(tiny, plainly(SETTINGS), MESSAGES)
    eos = frozenset({free.token_ids[10], free.token_ids[15]})
    assert check_ends_alike(replace(tiny, eos_token_ids=eos), SETTINGS) is StopReason.EOS


def test_stop_strings_within_accepted_tokens_end_the_answer(tiny: Target) -> None:
    text = decode(tiny, plainly(SETTINGS), MESSAGES).done.text
    for start in (5, 9, 14):
        settings = replace(SETTINGS, stop=("\0never", text[start : start + 3]))
        assert check_ends_alike(tiny, settings) is StopReason.STOP_STRING


@pytest.mark.parametrize("room", [1, 5])
def test_the_end_of_the_context_cuts_exactly(room: int, tiny: Target) -> None:
    num_prompt = len(decode(tiny, plainly(SETTINGS), MESSAGES).prompt_ids)
    config = replace(tiny.config, context_tokens=num_prompt + room)
    short = replace(tiny, config=config)
    assert check_ends_alike(short, SETTINGS) is StopReason.CONTEXT
    run = decode(short, SETTINGS, MESSAGES)
    assert len(run.token_ids) == room
