"""A prompt begins with rows of another conversation: for caches of all kinds, and all drafters."""

import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch

from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import LoadOptions, WeightFormats
from medusa_core.runtime.kv.states import RecurrentStates
from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.speculation.drafters.source import num_common
from tests.support.engine.by_turns import by_turns
from tests.support.engine.conversations import (
    FIRST,
    GREEDY,
    OTHER,
    SAMPLED,
    Open,
    alone,
    answers_equal,
    asks,
    committed,
)
from tests.support.models.targets import FAMILIES, TARGET_NAMES, folder_of, options_of
from tests.support.models.tiny import write_text_files
from tests.support.models.transformers_files import write_model
from tests.support.models.wide_peers import FULLEST, wide_peer

HYBRIDS = ("falcon_h1", "granitemoehybrid", "lfm2", "nemotron_h", "qwen3_5")
# Of every kind of cache a model: torch's in float64, the compiled step's of every family, rows in
# bfloat16 and in few bits, and transformers' with rows alone, and with states that can't be cut.
EXACT = ("grouped", "gemma4", "pebble", *FAMILIES, *HYBRIDS)
COMPILED = [*(f"compiled {name}" for name in FULLEST), "q8_0 gemma 3, longer"]
OTHERS = ("half gemma 3, longer", "q4 grouped", "through stablelm", "through jamba")
KINDS = (*EXACT, *COMPILED, *OTHERS)


def usually(*kinds: str) -> list[object]:
    """Return parameters in which all but the given kinds are slow tests."""
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
    dtype = {"half": "bfloat16", "through": "float64"}.get(how, "float32")
    formats = WeightFormats(cache=how if how == "q8_0" else "")
    options = LoadOptions(dtype, "cpu", formats, context_tokens=512, sessions=5)
    return load_target(folder, None, options)


@pytest.fixture(scope="module")
def roomy_target(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Target]:
    """Models by their kinds."""
    folder = cache(tmp_path_factory.mktemp)
    return lambda kind: roomy(kind, folder(kind.replace(" ", "-").replace(",", "")))


@pytest.mark.parametrize("kind", usually("grouped", "gemma4", "lfm2", "qwen3_5", *OTHERS))
def test_another_question_after_the_same_system_prompt_reuses_its_rows_and_gives_the_same_answer(
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
def test_every_drafter_works_after_rows_of_another_conversation(
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


@pytest.mark.parametrize("kind", ["pebble", "falcon_h1", "qwen3_5"])
def test_an_edited_question_and_a_foreign_answer_reuse_the_rows_before_them(
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


@pytest.mark.parametrize("kind", usually("compiled gemma 3, longer", "qwen3_5"))
def test_any_order_of_questions_edits_cancels_and_evictions_gives_the_answers_of_each_alone(
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
    for _ in range(60):
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


@pytest.mark.parametrize("kind", ["compiled qwen 3.5", "compiled nemotron h with biases"])
def test_a_wrong_recurrent_state_is_detected(
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
