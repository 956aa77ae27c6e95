"""A prompt begins with rows of another conversation, and its answer stays the same."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch

from medusa_core.engine.session import Session
from medusa_core.errors import OutOfMemoryError
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import (
    Cancel,
    Failed,
    Generate,
    GenerateSettings,
    GenerationDone,
    LoadModel,
    LoadOptions,
    ModelLoaded,
    WeightFormats,
)
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.states import RecurrentStates
from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.speculation.drafters.source import num_common
from tests.support.engine.by_turns import by_turns
from tests.support.engine.conversations import SYSTEM, Conversations, asks
from tests.support.engine.fixtures import LoadTarget
from tests.support.engine.harness import EngineHarness
from tests.support.engine.laws import Run, decode
from tests.support.models.targets import FAMILIES, TARGET_NAMES, Folders, folder_of, options_of
from tests.support.models.tiny import write_text_files
from tests.support.models.transformers_files import write_model
from tests.support.models.wide_peers import FULLEST, wide_peer

GREEDY = GenerateSettings(drafter="suffix", rule="greedy", max_new_tokens=12, banned=(1,))
SAMPLED = replace(GREEDY, rule="sample", temperature=1.1, seed=4)
FIRST, OTHER = "When does it open?", "May I bring a sandwich?"
HYBRIDS = ("falcon_h1", "granitemoehybrid", "lfm2", "nemotron_h", "qwen3_5")
# Of every kind of cache a model: torch's in float64, the compiled step's of every family, rows in
# bfloat16 and in 4 bits, and transformers' with rows alone, and with states that can't be cut.
EXACT = ("grouped", "gemma4", "pebble", *FAMILIES, *HYBRIDS)
COMPILED = [f"compiled {name}" for name in FULLEST]
OTHERS = ("half gemma 3, longer", "q4 grouped", "through stablelm", "through jamba")
KINDS = (*EXACT, *COMPILED, *OTHERS)
Open = Callable[[Target], Conversations]


def usually(*kinds: str) -> list[object]:
    """All kinds; others than these are slow tests."""
    others = (kind for kind in KINDS if kind not in kinds)
    return [*kinds, *(pytest.param(kind, marks=pytest.mark.slow) for kind in others)]


@cache
def roomy(kind: str, folder: Path) -> Target:
    """A model with room for several conversations."""
    how, _, name = kind.partition(" ")
    if kind in TARGET_NAMES:
        options = options_of(kind, "float64", "cpu")
        return load_target(*folder_of(kind), replace(options, sessions=5))
    if how == "q4":
        options = replace(options_of(name, "float64", "cpu"), formats=WeightFormats(cache="q4"))
        return load_target(*folder_of(name), replace(options, sessions=5))
    if how == "through":
        write_model(folder, name)
    else:
        wide_peer(name).save_pretrained(folder)
        write_text_files(folder)
    dtype = {"compiled": "float32", "half": "bfloat16", "through": "float64"}[how]
    return load_target(folder, None, LoadOptions(dtype, "cpu", context_tokens=512, sessions=5))


@pytest.fixture(scope="module")
def roomy_target(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Target]:
    """Models by their kinds."""
    folder = cache(tmp_path_factory.mktemp)
    return lambda kind: roomy(kind, folder(kind.replace(" ", "-").replace(",", "")))


@pytest.fixture
def open_all() -> Iterator[Open]:
    """Opens conversations that are closed behind the test."""
    opened: list[Conversations] = []

    def begin(target: Target) -> Conversations:
        opened.append(Conversations(target))
        return opened[-1]

    yield begin
    for each in opened:
        each.close()


def alone(target: Target, *texts: str, settings: GenerateSettings = GREEDY) -> Run:
    """The answer of a conversation that shares nothing."""
    session = Session(target)
    run = decode(target, settings, asks(*texts), session=session)
    session.close()
    return run


def committed(target: Target, token_ids: list[int]) -> torch.Tensor:
    """What a fresh cache holds of some tokens."""
    with torch.inference_mode():
        kv = target.allocate_cache(len(token_ids) + 1)
        target.runner.extend(token_ids, kv)
        found = kv.committed()
    target.caches.release(kv)
    return found


@pytest.mark.parametrize("kind", usually(*EXACT[:3], *HYBRIDS, *COMPILED[1::3], *OTHERS))
def test_another_question_behind_the_same_system_prompt_gets_its_rows_and_the_same_answer(
    kind: str, roomy_target: Callable[[str], Target], open_all: Open
) -> None:
    target = roomy_target(kind)
    chats = open_all(target)
    settings = replace(GREEDY, drafter="none") if kind == "through jamba" else GREEDY
    chats.answer("a", asks(FIRST), settings)
    kept = chats.of("a").kv.committed()
    done = chats.answer("b", asks(OTHER), settings)
    fresh = alone(target, OTHER, settings=settings)
    assert done.token_ids == fresh.token_ids
    common = num_common(chats.of("a").token_ids, list(fresh.prompt_ids))
    if kind == "through jamba":  # its states can't be saved
        assert done.num_cached_tokens == 0
    else:
        # States are saved before the last token of what is common.
        is_saved = bool(target.config.state_layers)
        assert common - is_saved <= done.num_cached_tokens <= common
        assert done.num_cached_tokens > len(fresh.prompt_ids) // 2
    assert chats.of("a").kv.committed().equal(kept)
    rows, expected = chats.of("b").kv.committed(), committed(target, chats.of("b").token_ids[:-1])
    if kind in COMPILED:
        assert rows.equal(expected)
    elif "half" not in kind and "q4" not in kind:
        # Some families of transformers have parts in 32 bits.
        error = 1e-5 if "through" in kind else 1e-9
        torch.testing.assert_close(rows, expected, atol=error, rtol=error)


@pytest.mark.parametrize(
    ("drafter", "rule"), by_turns(drafter_registry().names, ["greedy", "sample"])
)
def test_every_drafter_goes_on_behind_rows_of_another_conversation(
    drafter: str, rule: str, target_of: Callable[[str], Target], open_all: Open
) -> None:
    target = target_of(drafter)
    settings = replace(GREEDY if rule == "greedy" else SAMPLED, drafter=drafter)
    chats = open_all(target)
    chats.answer("a", asks(FIRST), settings)
    done = chats.answer("b", asks(OTHER), settings)
    chats.close()
    fresh = alone(target, OTHER, settings=settings)
    assert done.token_ids == fresh.token_ids
    assert done.num_cached_tokens > done.num_prompt_tokens // 2
    # What drafts with memories of their own know isn't worse than what they read themselves.
    assert len(done.accept_lengths) == len(fresh.done.accept_lengths)


@pytest.mark.parametrize("kind", ["pebble", *HYBRIDS])
def test_an_edited_question_and_a_foreign_answer_reuse_what_lies_before_them(
    kind: str, roomy_target: Callable[[str], Target], open_all: Open
) -> None:
    target = roomy_target(kind)
    chats = open_all(target)
    chats.answer("a", asks(FIRST), GREEDY)
    texts = (FIRST, "At nine.", OTHER)
    done = chats.answer("b", asks(*texts), GREEDY)
    fresh = alone(target, *texts)
    assert done.token_ids == fresh.token_ids
    first = alone(target, FIRST)
    # All of the first prompt, or all but what a template writes behind the question.
    assert done.num_cached_tokens >= 0.9 * len(first.prompt_ids)
    edited = (FIRST, "At nine.", "Never on a Sunday?")
    again = chats.answer("c", asks(*edited), GREEDY)
    expected = alone(target, *edited)
    assert again.token_ids == expected.token_ids
    common = num_common(fresh.prompt_ids, expected.prompt_ids)
    assert again.num_cached_tokens >= common - bool(target.config.state_layers)


def test_conversations_with_another_salt_share_nothing(tiny: Target, open_all: Open) -> None:
    chats = open_all(tiny)
    chats.answer("a", asks(FIRST), GREEDY, salt="one client")
    assert chats.answer("b", asks(FIRST), GREEDY, salt="another").num_cached_tokens == 0
    assert chats.answer("c", asks(FIRST), GREEDY, salt="another").num_cached_tokens > 0


def test_rows_are_taken_while_their_conversation_reads_and_writes(
    load: LoadTarget, open_all: Open
) -> None:
    target = load("pebble", "float32")
    expected = {text: alone(target, text).token_ids for text in (FIRST, OTHER)}
    for steps in range(6):
        chats = open_all(target)
        chats.begin("a", asks(FIRST), GREEDY)
        for _ in range(steps):
            chats.step()
        chats.begin("b", asks(OTHER), GREEDY)
        ends: list[GenerationDone] = []
        while chats.running:
            ends += chats.step()
        found = {done.session_id: done for done in ends}
        assert found["a"].token_ids == expected[FIRST]
        assert found["b"].token_ids == expected[OTHER]
        assert (found["b"].num_cached_tokens > 0) == (steps > 0)
        chats.close()


@pytest.mark.parametrize("kind", usually("compiled gemma 3, longer", "q4 grouped", "qwen3_5"))
def test_any_order_of_questions_edits_cancels_and_evictions_answers_as_alone(
    kind: str, roomy_target: Callable[[str], Target], open_all: Open
) -> None:
    target = roomy_target(kind)
    if kind == "through jamba":
        pytest.skip("it drafts nothing")
    chats, chance = open_all(target), random.Random(kind)
    texts = [(FIRST,), (OTHER,), (FIRST, "At nine.", OTHER), (FIRST, "At ten.", "Why?"), ("Why?",)]
    settings = [GREEDY, SAMPLED, replace(GREEDY, drafter="none")]
    known: dict[tuple[int, int], tuple[int, ...]] = {}
    asked: dict[str, tuple[int, int]] = {}
    num_checked = num_reused = 0
    for _ in range(80):
        name = chance.choice("abcd")
        match chance.randrange(8):
            case 0:
                chats.cancel(name)
            case 1:
                chats.sessions.evict()
            case 2 if name not in chats.sessions._busy_ids():
                chats.sessions.close(name)
            case 3 | 4 | 5 if name not in chats.sessions._busy_ids():
                asked[name] = chance.randrange(len(texts)), chance.randrange(len(settings))
                question, how = asked[name]
                chats.begin(name, asks(*texts[question]), settings[how])
        for done in chats.step() if chats.running else ():
            question, how = key = asked[done.session_id]
            if key not in known:
                known[key] = alone(target, *texts[question], settings=settings[how]).token_ids
            assert done.token_ids == known[key]
            num_checked += 1
            num_reused += done.num_cached_tokens > 0
    assert num_checked > 4
    assert num_reused > 1


# Shared rows ----


@pytest.fixture
def attention(roomy_target: Callable[[str], Target]) -> Target:
    """A compiled model with windows in some layers."""
    return roomy_target("compiled gemma 3, longer")


LONG = asks(FIRST, system=SYSTEM * 2)


def rows_of(target: Target) -> int:
    """Rows that all caches take."""
    return sum(map(len, target.caches._allocated.values()))


def test_conversations_with_one_beginning_take_its_memory_once(
    attention: Target, open_all: Open
) -> None:
    chats = open_all(attention)
    chats.answer("a", LONG, GREEDY)
    chats.sessions.trim()
    alone_rows, answers = rows_of(attention), {}
    for name in "bcdefgh":
        messages = asks(f"Question {name}?", system=SYSTEM * 2)
        answers[name] = chats.answer(name, messages, GREEDY)
        assert answers[name].num_cached_tokens > 0.9 * answers[name].num_prompt_tokens
    chats.sessions.trim()
    assert len(chats.sessions) == 8
    assert rows_of(attention) < 2 * alone_rows
    # They stay as long as somebody shares them.
    kept = chats.of("h").kv.committed()
    for name in "abcdefg":
        chats.sessions.close(name)
    assert chats.of("h").kv.committed().equal(kept)
    assert alone_rows - 64 <= rows_of(attention) <= alone_rows + 64
    chats.close()
    assert rows_of(attention) == 0
    for name, done in answers.items():
        run = decode(attention, GREEDY, asks(f"Question {name}?", system=SYSTEM * 2))
        assert done.token_ids == run.token_ids


@pytest.mark.parametrize("num_rows", [1, 15, 16, 17, 140, 200, 300])
def test_a_cut_within_shared_rows_leaves_those_of_others(
    num_rows: int, attention: Target, open_all: Open
) -> None:
    chats = open_all(attention)
    chats.answer("a", LONG, GREEDY)
    chats.answer("b", asks(OTHER, system=SYSTEM * 2), GREEDY)
    a, b = chats.of("a"), chats.of("b")
    assert a.kv.prefix is b.kv.prefix is not None
    kept, num_shared = a.kv.committed(), b.kv.num_shared
    assert num_shared >= 128
    b.cut(num_rows)
    assert b.kv.length == min(num_rows, len(b.token_ids))
    same = min(num_rows, num_shared)
    assert b.kv.committed()[:, :, :, :same].equal(kept[:, :, :, :same])
    b.make_room(b.kv.length + 40, 8)
    attention.runner.extend(list(range(40, 70)), b.kv)
    expected = committed(attention, [*b.token_ids, *range(40, 70)])
    assert b.kv.committed().equal(expected)
    assert a.kv.committed().equal(kept)


def test_shared_rows_may_share_theirs(attention: Target, open_all: Open) -> None:
    chats = open_all(attention)
    chats.answer("a", asks(FIRST), GREEDY)
    chats.answer("b", asks(OTHER), GREEDY)
    for name in "cdef":
        messages = asks(OTHER, "No. " + SYSTEM, f"And {name}?", system=SYSTEM)
        done = chats.answer(name, messages, GREEDY)
        assert done.token_ids == decode(attention, GREEDY, messages).token_ids
    deep = chats.of("f").kv
    assert deep.prefix is not None
    assert deep.prefix.prefix is not None
    assert deep.rows_of(1, 5)[0].equal(committed_rows(attention, chats.of("f"), 1, 5))


def committed_rows(target: Target, session: Session, layer: int, first: int) -> torch.Tensor:
    """Keys of a fresh cache of the same tokens."""
    with torch.inference_mode():
        kv = target.allocate_cache(len(session.token_ids))
        target.runner.extend(session.token_ids[:-1], kv)
        keys = kv.rows_of(layer, first)[0].clone()  # type: ignore[attr-defined]
    target.caches.release(kv)
    return keys


# Room ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def narrow() -> Target:
    """A target whose cache holds one context, and no copy of a long prompt."""
    options = replace(options_of("grouped", "float64", "cpu"), context_tokens=256)
    return load_target(*folder_of("grouped"), options)


def test_rows_move_where_there_is_no_room_for_a_copy(narrow: Target, open_all: Open) -> None:
    chats = open_all(narrow)
    chats.answer("a", asks(FIRST), GREEDY)
    done = chats.answer("b", asks(OTHER), GREEDY)
    assert done.num_cached_tokens > done.num_prompt_tokens // 2
    assert len(chats.sessions) == 1
    chats.close()
    assert done.token_ids == alone(narrow, OTHER).token_ids


def test_a_busy_conversation_keeps_its_rows_where_there_is_no_room_for_a_copy(
    narrow: Target, open_all: Open
) -> None:
    chats = open_all(narrow)
    chats.begin("a", asks(FIRST), replace(GREEDY, max_new_tokens=200))
    for _ in range(3):
        chats.step()
    with pytest.raises(OutOfMemoryError):
        chats.begin("b", asks(OTHER), replace(GREEDY, max_new_tokens=200))
    chats.sessions.close("b")
    ends: list[GenerationDone] = []
    while chats.running:
        ends += chats.step()
    assert len(ends) == 1


# Faults that must be caught -----------------------------------------------------------------------


def answers_equal(chats: Conversations) -> bool:
    chats.answer("a", asks(FIRST), GREEDY)
    done = chats.answer("b", asks(FIRST, "At nine.", OTHER), GREEDY)
    target = chats.target
    rows, expected = chats.of("b").kv.committed(), committed(target, chats.of("b").token_ids[:-1])
    same = rows.equal(expected)
    return same and done.token_ids == alone(target, FIRST, "At nine.", OTHER).token_ids


def test_a_row_too_few_is_noticed(
    roomy_target: Callable[[str], Target], open_all: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = KvCache.copy_prefix

    def one_short(self: KvCache, other: KvCache, num_rows: int) -> None:
        copy(self, other, num_rows - 32)
        self.length = num_rows

    target = roomy_target("compiled gemma 3, longer")
    assert answers_equal(open_all(target))
    monkeypatch.setattr(KvCache, "copy_prefix", one_short)
    assert not answers_equal(open_all(target))


@pytest.mark.parametrize("kind", ["compiled qwen 3.5", "compiled nemotron h with biases"])
def test_a_wrong_state_is_noticed(
    kind: str,
    roomy_target: Callable[[str], Target],
    open_all: Open,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = roomy_target(kind)
    assert answers_equal(open_all(target))

    def no_cut(self: RecurrentStates, length: int, committed: int) -> int:
        return length

    monkeypatch.setattr(RecurrentStates, "truncate", no_cut)
    assert not answers_equal(open_all(target))


# At the same time ----


def test_prompts_that_come_at_once_are_read_once(folders: Folders) -> None:
    engine = EngineHarness()
    try:
        options = LoadOptions("float32", "cpu", context_tokens=1024, sessions=6)
        command = LoadModel("", engine.name_request(), *folders["pebble"], options)
        assert isinstance(engine.load(command), ModelLoaded)
        settings = replace(GREEDY, max_new_tokens=6)
        messages = {name: asks(f"Question {name}?", system=SYSTEM * 5) for name in "abcdef"}
        for name, turns in messages.items():
            engine.submit(Generate(name, name, turns, settings))
        engine.submit(Cancel("c", "c"))
        ends = [engine.wait(name, GenerationDone, Failed) for name in messages]
        answers = [end for end in ends if isinstance(end, GenerationDone)]
        assert len(answers) >= 5
        shares = [done.num_cached_tokens / done.num_prompt_tokens for done in answers]
        assert sum(share > 0.9 for share in shares) >= 4
        for name in "df":
            request = engine.name_request()
            engine.submit(Generate(request, request, messages[name], settings, cache_salt=name))
            fresh, done = (engine.wait(one, GenerationDone) for one in (request, name))
            assert isinstance(fresh, GenerationDone)
            assert isinstance(done, GenerationDone)
            assert fresh.num_cached_tokens == 0
            assert done.token_ids == fresh.token_ids
    finally:
        engine.close()


# Common prefixes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 1, 2, 3, 100, 101])
def test_the_longest_common_prefix_is_found_wherever_it_ends(length: int) -> None:
    text = list(range(100))
    other = [*text[:length], -1, -2]
    assert num_common(text, other) == num_common(other, text) == min(length, 100)
    assert num_common(text, list(text)) == 100
