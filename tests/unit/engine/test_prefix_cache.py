"""A prompt begins with rows of another conversation, and its answer stays the same."""

import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import save_file

from medusa_core.engine.session import Session
from medusa_core.errors import OutOfMemoryError
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import (
    Cancel,
    Failed,
    Generate,
    GenerationDone,
    LoadModel,
    LoadOptions,
    ModelLoaded,
)
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.runner.native import NativeRunner
from medusa_core.speculation.drafters.source import num_common
from tests.support.engine.conversations import (
    FIRST,
    GREEDY,
    OTHER,
    SYSTEM,
    Open,
    alone,
    answers_equal,
    asks,
    committed,
)
from tests.support.engine.fixtures import LoadTarget
from tests.support.engine.harness import EngineHarness
from tests.support.engine.laws import decode
from tests.support.models.targets import Folders, folder_of, options_of
from tests.support.models.tiny import TinySpec, config_of, random_weights, write_tiny


def test_conversations_with_different_salts_share_no_rows(tiny: Target, open_all: Open) -> None:
    chats = open_all(tiny)
    chats.answer("a", asks(FIRST), GREEDY, salt="one client")
    assert chats.answer("b", asks(FIRST), GREEDY, salt="another").num_cached_tokens == 0
    assert chats.answer("c", asks(FIRST), GREEDY, salt="another").num_cached_tokens > 0


def test_rows_are_shared_while_their_conversation_prefills_and_decodes(
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


# Shared rows ----


@pytest.fixture(scope="module")
def attention(tmp_path_factory: pytest.TempPathFactory) -> Target:
    """A compiled model with windows in some layers."""
    spec = TinySpec("gemma2", 4, hidden_size=64, intermediate_size=96, is_tied=True, seed=8)
    folder, weights = write_tiny(tmp_path_factory.mktemp("windows"), spec), random_weights(spec)
    norms = [name for name in weights if "layernorm" in name]
    for name in norms:  # one more before and after the MLP
        weights[name.replace("input_layernorm", "pre_feedforward_layernorm")] = weights[name]
        later = name.replace("post_attention_layernorm", "post_feedforward_layernorm")
        weights[later] = weights[name]
    save_file({name: one.clone() for name, one in weights.items()}, folder / "model.safetensors")
    own = {"sliding_window": 16, "head_dim": 16, "hidden_act": "gelu_pytorch_tanh"}
    config = config_of(spec) | own
    (folder / "config.json").write_text(json.dumps(config))
    target = load_target(folder, None, LoadOptions("float32", context_tokens=512, sessions=5))
    assert isinstance(target.runner, NativeRunner)
    return target


LONG = asks(FIRST, system=SYSTEM * 2)


def rows_of(target: Target) -> int:
    """Rows that all caches take."""
    return sum(map(len, target.caches._allocated.values()))


def test_conversations_with_one_prefix_use_its_memory_once(
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
def test_truncation_within_shared_rows_keeps_those_of_others(
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


def test_shared_rows_may_be_shared_again(attention: Target, open_all: Open) -> None:
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


def test_rows_are_moved_if_there_is_no_room_for_a_copy(narrow: Target, open_all: Open) -> None:
    chats = open_all(narrow)
    chats.answer("a", asks(FIRST), GREEDY)
    done = chats.answer("b", asks(OTHER), GREEDY)
    assert done.num_cached_tokens > done.num_prompt_tokens // 2
    assert len(chats.sessions) == 1
    chats.close()
    assert done.token_ids == alone(narrow, OTHER).token_ids


def test_a_busy_conversation_keeps_its_rows_if_there_is_no_room_for_a_copy(
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


def test_one_missing_row_is_detected(
    attention: Target, open_all: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = KvCache.copy_prefix

    def one_short(self: KvCache, other: KvCache, num_rows: int) -> None:
        copy(self, other, num_rows - 32)
        self.length = num_rows

    target = attention
    assert answers_equal(open_all(target))
    monkeypatch.setattr(KvCache, "copy_prefix", one_short)
    assert not answers_equal(open_all(target))


# At the same time ----


def test_concurrent_prompts_with_one_prefix_are_prefilled_once(folders: Folders) -> None:
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
