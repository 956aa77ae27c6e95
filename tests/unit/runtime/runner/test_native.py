"""The compiled step: as right as torch's operations, and the same to the bit however it is cut."""

import threading
from collections.abc import Callable
from ctypes import addressof
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from medusa_core.api import demo_model
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings, LoadOptions
from medusa_core.models.precision import Precision
from medusa_core.models.quant import linear
from medusa_core.runtime.backends.native_blocks import NativeDecoder
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.quantized import pack_blocks, unpack_blocks
from medusa_core.runtime.runner.native import NativeRunner
from medusa_core.runtime.runner.resident import ResidentRunner
from medusa_core.runtime.runner.runner import PlacedTree
from medusa_core.runtime.tree.shape import (
    TokenTree,
    TreeShape,
)
from medusa_core.speculation.rules.rule import rule_registry
from medusa_core.system.native.binding import (
    native_library,
    open_library,
)
from medusa_core.system.native.structs import PoolStruct
from tests.support.engine.fixtures import LoadTarget
from tests.support.engine.laws import Tie, check_same_but_for_ties, decode, user_says
from tests.support.engine.tree_paths import path_to
from tests.support.models.natives import each_library, libraries
from tests.support.models.targets import FAMILIES

NAMES = (*FAMILIES, "pebble")
IDS = [7 + (5 * i) % 290 for i in range(61)]
SHAPE = TreeShape.from_paths(
    [(0,), (1,), (2,), (0, 0), (0, 1), (1, 0), (0, 0, 0), (0, 1, 0), (0, 0, 0, 0), (2, 0), (2, 1)]
)
TREE = TokenTree(SHAPE, tuple(range(40, 40 + SHAPE.num_nodes)))


def precision_of(load: LoadTarget, name: str, dtype: str) -> Precision:
    """Precision of a target; a dtype of the cache may follow the dtype that computes."""
    compute, _, cache = dtype.partition(" ")
    return replace(load(name, compute).precision, cache_format=cache)


def runner_of(load: LoadTarget, name: str, dtype: str) -> NativeRunner:
    runner = load(name, dtype.partition(" ")[0]).runner
    assert isinstance(runner, NativeRunner)
    if " " not in dtype:
        return runner
    return NativeRunner(runner._model, precision_of(load, name, dtype), runner._native)


def state(runner: NativeRunner | ResidentRunner, ids: list[int] = IDS) -> tuple[KvCache, Tensor]:
    """A cache that holds `ids`, and the states of all rows."""
    kv = runner.new_cache(128)
    return kv, runner.extend(ids, kv)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_compiled_runner_agrees_with_torch(name: str, dtype: str, load: LoadTarget) -> None:
    runner = runner_of(load, name, dtype)
    exact = load(name, "float64").runner
    assert isinstance(exact, ResidentRunner)
    eager = ResidentRunner(runner._model, load(name, dtype).precision)
    errors = []
    for checked in (runner, eager):
        kv, states = state(checked)
        exact_kv, exact_states = state(exact)
        rows = torch.cat([states, checked.verify(PlacedTree(TREE, kv))]).double()
        exact_rows = torch.cat([exact_states, exact.verify(PlacedTree(TREE, exact_kv))])
        errors.append(((rows - exact_rows).norm() / exact_rows.norm()).item())
    ours, torchs = errors
    assert ours <= (1e-5 if dtype == "float32" else 0.05)
    assert ours <= 1.5 * torchs


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float32 q8_0"])
def test_chunks_trees_and_threads_change_no_bit(name: str, dtype: str, load: LoadTarget) -> None:
    runner = runner_of(load, name, dtype)
    whole, states = state(runner)
    pieces = runner.new_cache(128)
    chunks = [runner.extend(IDS[at : at + 13], pieces) for at in range(0, len(IDS), 13)]
    assert torch.equal(torch.cat(chunks), states)
    assert torch.equal(pieces.committed(), whole.committed())
    assert torch.equal(runner.extend(IDS, runner.new_cache(61), only_last=True), states[-1:])
    before = whole.committed()
    nodes = runner.verify(PlacedTree(TREE, whole))
    assert torch.equal(whole.committed(), before)
    for node in range(SHAPE.num_nodes):
        path = [TREE.token_ids[n] for n in path_to(SHAPE, node)]
        assert torch.equal(state(runner, IDS + path)[1][-1], nodes[node])
    try:
        runner.use_threads(2, 3)
        assert torch.equal(state(runner)[1], states)
        assert torch.equal(runner.verify(PlacedTree(TREE, whole)), nodes)
    finally:
        runner.use_threads(1, 1)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float32", "float32 q8_0"])
def test_all_cpus_compute_the_same_bits_in_float32(name: str, dtype: str, load: LoadTarget) -> None:
    model, precision = runner_of(load, name, dtype)._model, precision_of(load, name, dtype)
    found = []
    for path in libraries():
        decoder = NativeDecoder(open_library(path), model)
        found.append(state(NativeRunner(model, precision, decoder))[1])
    assert all(torch.equal(found[0], other) for other in found[1:])


@each_library
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bfloat16 q8_0"])
@pytest.mark.parametrize("length", [1, 2, 14, 15, 16, 17, 31, 48])
def test_every_cpu_attends_equally_wherever_a_tree_begins(
    path: Path, dtype: str, length: int, load: LoadTarget
) -> None:
    """Panels of keys and pairs of values may end within the committed rows, and within a path."""
    model, precision = runner_of(load, "qwen3", dtype)._model, precision_of(load, "qwen3", dtype)
    library = open_library(path)
    runner = NativeRunner(model, precision, NativeDecoder(library, model))
    exact = load("qwen3", "float64").runner
    kv, _ = state(runner, IDS[:length])
    nodes = runner.verify(PlacedTree(TREE, kv))
    for node in range(SHAPE.num_nodes):
        branch = [TREE.token_ids[n] for n in path_to(SHAPE, node)]
        assert torch.equal(state(runner, IDS[:length] + branch)[1][-1], nodes[node])
    exact_kv, _ = state(exact, IDS[:length])
    exact_nodes = exact.verify(PlacedTree(TREE, exact_kv))
    error = ((nodes.double() - exact_nodes).norm() / exact_nodes.norm()).item()
    assert error <= (1e-5 if dtype == "float32" else 0.05)
    leaf = path_to(SHAPE, SHAPE.paths.index((0, 1, 0)))
    kv.commit(leaf)
    plain, _ = state(runner, IDS[:length] + [TREE.token_ids[node] for node in leaf])
    assert torch.equal(kv.committed(), plain.committed())
    kept = kv.committed()
    larger = runner.new_cache(400)
    larger.take_over(kv)
    kv = larger
    assert torch.equal(kv.committed(), kept)
    kv.commit(())
    assert torch.equal(kv.committed(), kept)
    assert torch.equal(runner.verify(PlacedTree(TREE, kv)), runner.verify(PlacedTree(TREE, plain)))


@each_library
@pytest.mark.parametrize("dtype", ["bfloat16", "float32 q8_0"])
def test_many_rows_attend_to_a_long_cache_as_one_row_does(
    path: Path, dtype: str, load: LoadTarget
) -> None:
    """Many rows share dequantized keys and values, a piece of the cache at a time."""
    model, precision = runner_of(load, "qwen3", dtype)._model, precision_of(load, "qwen3", dtype)
    runner = NativeRunner(model, precision, NativeDecoder(open_library(path), model))
    ids = [7 + (5 * i) % 290 for i in range(300)]
    at_once = runner.extend(ids, runner.new_cache(320))
    kv = runner.new_cache(320)
    runner.extend(ids[:250], kv)
    alone = torch.cat([runner.extend([token_id], kv) for token_id in ids[250:]])
    assert torch.equal(alone, at_once[250:])


@pytest.mark.parametrize("name", NAMES)
def test_a_cache_in_8_bits_holds_what_torch_quantizes(name: str, load: LoadTarget) -> None:
    """And attention to it is as right as that of torch's operations."""
    runner = runner_of(load, name, "float32 q8_0")
    kv, states = state(runner)
    plain, exact = state(runner_of(load, name, "float32"))
    rows = plain.committed()[0]  # those of the first layer: no attention comes before them
    assert torch.equal(kv.committed()[0], unpack_blocks(pack_blocks(rows), rows.shape[-1]))
    assert kv.nbytes < 0.4 * plain.nbytes
    eager = ResidentRunner(runner._model, precision_of(load, name, "float32 q8_0"))
    torchs = state(eager)[1]
    assert (torchs - states).norm() / exact.norm() < 0.003
    assert (states - exact).norm() / exact.norm() < 0.02


def test_keys_and_values_of_a_cache_can_be_read(load: LoadTarget) -> None:
    """Those of torch's operations, but for rounding."""
    runner = runner_of(load, "qwen3", "bfloat16")
    whole = load("qwen3", "float64").runner
    ours, exact = (state(each)[0].committed().double() for each in (runner, whole))
    assert ours.shape == exact.shape
    assert (ours - exact).norm() / exact.norm() < 0.02


def test_the_rows_kept_of_a_tree_are_those_of_its_path(load: LoadTarget) -> None:
    runner = runner_of(load, "pebble", "bfloat16")
    kv, _ = state(runner)
    runner.verify(PlacedTree(TREE, kv))
    path = path_to(SHAPE, SHAPE.paths.index((0, 1, 0)))
    kv.commit(path)
    plain, _ = state(runner, IDS + [TREE.token_ids[node] for node in path])
    assert kv.length == plain.length
    assert torch.equal(kv.committed(), plain.committed())


@pytest.mark.parametrize("name", NAMES)
def test_heads_rank_by_their_logits(name: str, load: LoadTarget) -> None:
    heads = load(name, "float32").heads
    assert heads is not None
    assert heads._native is not None
    hidden = torch.randn(load(name, "float32").config.hidden_size)
    ranked = heads.ranked(hidden, 0, [9, 2])
    assert (ranked.scores - heads.logits(hidden, 0, 2)).abs().max() < 1e-4
    assert torch.tensor(ranked.columns).tolist() == ranked.scores.topk(9).indices.tolist()


@pytest.mark.parametrize("name", ["qwen3", "pebble"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_compiled_heads_draft_like_torch(name: str, dtype: str, load: LoadTarget) -> None:
    """Those of Pebble read the root's vector and draft from half the vocabulary."""
    target = load(name, dtype)
    heads = target.heads
    assert heads is not None
    generator = torch.Generator().manual_seed(4)
    for root_id in (0, 7, target.config.vocab_size - 1):
        hidden = torch.randn(target.config.hidden_size, generator=generator)
        for most in (1, 2, 16, 17, 64):
            ranked = heads.ranked(hidden, root_id, [most] * heads.num_heads)
            exact = heads.logits(hidden, root_id, heads.num_heads).float()
            error = ((ranked.scores - exact).norm() / exact.norm()).item()
            assert error < (0.03 if dtype == "bfloat16" else 1e-5)
            assert ranked.scores.topk(most).indices.tolist() == ranked.columns
            chances = ranked.scores.softmax(dim=-1).topk(most).values
            assert list(ranked.chances()) == pytest.approx(chances.flatten().tolist(), rel=1e-5)
            shape = TreeShape.from_paths([(0,), (most - 1,)][: min(most, 2)])
            given = ranked.odds(shape).of_drafts(shape.num_nodes - 1)
            assert given == tuple(ranked.chances()[rank] for _, rank in shape.places)


def test_damaged_weights_are_detected(load: LoadTarget) -> None:
    runner = runner_of(load, "qwen3", "bfloat16")
    norm = runner._native._kept[0]
    before = norm.clone()
    try:
        norm[3] = float("nan")
        assert runner.logits(state(runner)[1]).isnan().any(dim=-1).all()
    finally:
        norm.copy_(before)


def test_torch_decodes_pebble_as_well(
    load: LoadTarget,
    monkeypatch: pytest.MonkeyPatch,
    report_ties: Callable[[list[Tie]], None],
) -> None:
    monkeypatch.setattr(linear, "native_library", lambda: None)
    monkeypatch.setattr(linear, "native_linear", lambda weight, bias: None)
    dtype = "bfloat16" if linear.torch_packs_bfloat16() else "float32"
    target = load_target(*demo_model(), LoadOptions(dtype))
    assert isinstance(target.runner, ResidentRunner)
    settings, greedy = (
        GenerateSettings(drafter="medusa", max_new_tokens=60),
        rule_registry().get("greedy"),
    )
    plain = decode(target, replace(settings, drafter="none"), user_says("Tell me a story."))
    drafted = decode(target, settings, user_says("Tell me a story."))
    tie = check_same_but_for_ties(plain, drafted, target, load("pebble", "float64"), greedy)
    report_ties([] if tie is None else [tie])
    assert drafted.done.num_steps < plain.done.num_steps


def test_a_target_too_narrow_for_the_compiled_step_runs_in_torch(load: LoadTarget) -> None:
    target: Target = load("grouped", "float32")  # heads of 8 numbers
    assert isinstance(target.runner, ResidentRunner)


def test_worker_threads_live_as_long_as_a_pass() -> None:
    library = native_library()
    if library is None:
        pytest.skip("nothing is compiled for this machine")
    pool = PoolStruct(busy=1)
    helper = threading.Thread(target=library.run_worker, args=(addressof(pool), 1))
    helper.start()
    helper.join(0.2)
    assert helper.is_alive(), "the caller works alone for a while"
    pool.busy = 0
    helper.join(60)
    assert not helper.is_alive(), "nothing has come"
