"""The compiled step: as right as torch's operations, and the same to the bit however it is cut."""

import ctypes
import hashlib
import math
import os
import random
import subprocess
import sys
import threading
from array import array
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import torch
from torch import Tensor

from medusa_core.api import demo_model
from medusa_core.engine.rule import descend, rule_registry
from medusa_core.kv.cache import KvCache
from medusa_core.messages import NUM_ALTERNATIVES, GenerateSettings
from medusa_core.native import library as native
from medusa_core.native.build import SOURCES_HASH, build, hash_of_sources, main
from medusa_core.native.decoder import NativeDecoder
from medusa_core.native.library import library_suffix, native_library, open_library, system_name
from medusa_core.native.linear import NativeLinear
from medusa_core.native.pool import Pool, Workers
from medusa_core.native.summary import Summary, TorchSummary
from medusa_core.native.walk import BestWalk, best_walk
from medusa_core.quant import linear
from medusa_core.resources import native_dir
from medusa_core.runner.native import NativeRunner
from medusa_core.runner.resident import ResidentRunner
from medusa_core.target import LoadOptions, Target, load_target
from medusa_core.tree.shape import TokenTree, TreeShape
from tests.core.conftest import FAMILIES, LoadTarget
from tests.core.laws import Tie, check_same_but_for_ties, decode, user_says

NAMES = (*FAMILIES, "pebble")
IDS = [7 + (5 * i) % 290 for i in range(61)]
SHAPE = TreeShape.from_paths(
    [(0,), (1,), (2,), (0, 0), (0, 1), (1, 0), (0, 0, 0), (0, 1, 0), (0, 0, 0, 0), (2, 0), (2, 1)]
)
TREE = TokenTree(SHAPE, tuple(range(40, 40 + SHAPE.num_nodes)))
# How far a result may be from the exact one, in parts of the largest number.
TOLERANCE = {torch.float32: 2e-6, torch.bfloat16: 4e-3}


def libraries() -> list[Path]:
    """Those of this system that this CPU can run."""
    folder = native_dir() / system_name()
    names = [f"{name}{library_suffix()}" for name in native.instruction_sets()]
    return [folder / name for name in names]


def runner_of(load: LoadTarget, name: str, dtype: str) -> NativeRunner:
    runner = load(name, dtype).runner
    assert isinstance(runner, NativeRunner)
    return runner


def state(runner: NativeRunner | ResidentRunner, ids: list[int] = IDS) -> tuple[KvCache, Tensor]:
    """A cache that holds `ids`, and the states of all rows."""
    kv = runner.new_cache(128)
    return kv, runner.extend(ids, kv)


def test_this_machine_has_a_compiled_step() -> None:
    # If this fails on some machine, all else still works there, but slower.
    assert native_library() is not None
    assert all(path.is_file() for path in libraries())


def test_what_ships_was_built_from_these_sources() -> None:
    recorded = (native_dir() / SOURCES_HASH).read_text(encoding="ascii").strip()
    assert recorded == hash_of_sources(), "run python -m medusa_core.native.build, and commit"


def test_a_build_without_its_compiler_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setattr("sys.argv", ["build", "--check"])
    assert main() == 1
    assert "pip install" in capsys.readouterr().out


@pytest.mark.slow
def test_the_sources_give_the_same_bytes_again(tmp_path: Path) -> None:
    pytest.importorskip("ziglang", reason="the compiler isn't installed")
    built = build(tmp_path, system_name())
    assert built
    for path in built:
        shipped = native_dir() / path.relative_to(tmp_path)
        assert shipped.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("path", libraries(), ids=lambda path: path.stem)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    ("outputs", "inputs"), [(32, 16), (70, 34), (160, 48), (7, 256), (300, 32)]
)
def test_a_layer_is_right_and_its_rows_are_independent(
    path: Path, dtype: torch.dtype, outputs: int, inputs: int
) -> None:
    generator = torch.Generator().manual_seed(outputs)
    weight = torch.randn(outputs, inputs, generator=generator).to(dtype)
    bias = torch.randn(outputs, generator=generator).to(dtype)
    layer = NativeLinear(open_library(path), weight, bias)
    x = torch.randn(29, inputs, generator=generator)
    y = layer(x)
    exact = x.double() @ weight.double().t() + bias.double()
    assert (y - exact).abs().max() <= TOLERANCE[dtype] * exact.abs().max()
    for count in range(1, 26):  # few rows take panels side by side, many go in blocks
        start = count % 5
        assert torch.equal(layer(x[start : start + count]), y[start : start + count]), count


def rounded_rows(x: Tensor) -> Tensor:
    """Inputs as 8 bits keep them: each 64 of a row by their own largest number."""
    parts = []
    for some in x.split(64, dim=1):
        reach = some.abs().amax(dim=1, keepdim=True)
        turned = torch.where(reach > 0, 127 / reach, torch.zeros_like(reach))
        parts.append((some * turned).round().double() * (reach / 127).double())
    return torch.cat(parts, dim=1)


@pytest.mark.parametrize("path", libraries(), ids=lambda path: path.stem)
@pytest.mark.parametrize(("outputs", "inputs"), [(32, 32), (96, 64), (160, 96), (288, 416)])
def test_bytes_are_multiplied_exactly_on_every_cpu(path: Path, outputs: int, inputs: int) -> None:
    generator = torch.Generator().manual_seed(outputs)
    weight = torch.randint(-127, 128, (outputs, inputs), generator=generator, dtype=torch.int8)
    scale, bias, plus = (torch.randn(n, outputs, generator=generator) for n in (1, 1, 23))
    x = torch.randn(23, inputs, generator=generator)
    x[3, :32] *= 300  # costs the others their precision as far as they share its scale alone
    x[5] = 0
    layers = [
        NativeLinear(open_library(of), weight, bias[0], scale[0]) for of in (path, libraries()[0])
    ]
    y = layers[0](x)
    assert torch.equal(y, layers[1](x)), "whole numbers are exact everywhere"
    exact = rounded_rows(x) @ (weight.double() * scale[0].double()[:, None]).t() + bias.double()
    assert (y - exact).abs().max() <= 2e-6 * exact.abs().max()
    assert torch.equal(y[5], bias[0])
    assert torch.equal(layers[0].plus(x, plus.clone()), y + plus)
    for count in range(1, 20):
        start = count % 4
        assert torch.equal(layers[0](x[start : start + count]), y[start : start + count]), count


@pytest.mark.parametrize("path", libraries(), ids=lambda path: path.stem)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_none_of_bytes_either(path: Path, bad: float) -> None:
    weight = torch.randint(-127, 128, (64, 96), dtype=torch.int8)
    layer = NativeLinear(open_library(path), weight, None, torch.ones(64))
    x = torch.randn(4, 96)
    x[2, 70] = bad
    y = layer(x)
    assert y[2].isnan().all()
    assert y[[0, 1, 3]].isfinite().all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_it_agrees_with_the_runner_of_torch_operations(
    name: str, dtype: str, load: LoadTarget
) -> None:
    runner = runner_of(load, name, dtype)
    exact = load(name, "float64").runner
    assert isinstance(exact, ResidentRunner)
    eager = ResidentRunner(runner._model, load(name, dtype).precision)
    errors = []
    for checked in (runner, eager):
        kv, states = state(checked)
        exact_kv, exact_states = state(exact)
        rows = torch.cat([states, checked.verify(TREE, kv)]).double()
        exact_rows = torch.cat([exact_states, exact.verify(TREE, exact_kv)])
        errors.append(((rows - exact_rows).norm() / exact_rows.norm()).item())
    ours, torchs = errors
    assert ours <= (1e-5 if dtype == "float32" else 0.05)
    assert ours <= 1.5 * torchs


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_chunks_trees_and_threads_change_no_bit(name: str, dtype: str, load: LoadTarget) -> None:
    runner = runner_of(load, name, dtype)
    whole, states = state(runner)
    pieces = runner.new_cache(128)
    chunks = [runner.extend(IDS[at : at + 13], pieces) for at in range(0, len(IDS), 13)]
    assert torch.equal(torch.cat(chunks), states)
    assert torch.equal(pieces.committed(), whole.committed())
    assert torch.equal(runner.extend(IDS, runner.new_cache(61), only_last=True), states[-1:])
    before = whole.committed()
    nodes = runner.verify(TREE, whole)
    assert torch.equal(whole.committed(), before)
    for node in range(SHAPE.num_nodes):
        path = [TREE.token_ids[n] for n in SHAPE.path_to(node)]
        assert torch.equal(state(runner, IDS + path)[1][-1], nodes[node])
    try:
        runner.use_threads(2, 3)
        assert torch.equal(state(runner)[1], states)
        assert torch.equal(runner.verify(TREE, whole), nodes)
    finally:
        runner.use_threads(1, 1)


@pytest.mark.parametrize("name", NAMES)
def test_all_cpus_compute_the_same_bits_in_float32(name: str, load: LoadTarget) -> None:
    target = load(name, "float32")
    model = runner_of(load, name, "float32")._model
    found = []
    for path in libraries():
        decoder = NativeDecoder(open_library(path), model)
        found.append(state(NativeRunner(model, target.precision, decoder))[1])
    assert all(torch.equal(found[0], other) for other in found[1:])


@pytest.mark.parametrize("path", libraries(), ids=lambda path: path.stem)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("length", [1, 2, 14, 15, 16, 17, 31, 48])
def test_every_cpu_attends_alike_wherever_a_tree_begins(
    path: Path, dtype: str, length: int, load: LoadTarget
) -> None:
    """Panels of keys and pairs of values may end within the committed rows, and within a path."""
    target = load("qwen3", dtype)
    model = runner_of(load, "qwen3", dtype)._model
    library = open_library(path)
    runner = NativeRunner(model, target.precision, NativeDecoder(library, model))
    exact = load("qwen3", "float64").runner
    kv, _ = state(runner, IDS[:length])
    nodes = runner.verify(TREE, kv)
    for node in range(SHAPE.num_nodes):
        branch = [TREE.token_ids[n] for n in SHAPE.path_to(node)]
        assert torch.equal(state(runner, IDS[:length] + branch)[1][-1], nodes[node])
    exact_kv, _ = state(exact, IDS[:length])
    exact_nodes = exact.verify(TREE, exact_kv)
    error = ((nodes.double() - exact_nodes).norm() / exact_nodes.norm()).item()
    assert error <= (1e-5 if dtype == "float32" else 0.05)
    leaf = SHAPE.path_to(SHAPE.paths.index((0, 1, 0)))
    kv.commit(leaf)
    plain, _ = state(runner, IDS[:length] + [TREE.token_ids[node] for node in leaf])
    assert torch.equal(kv.committed(), plain.committed())
    kept = kv.committed()
    kv.grow(400)
    assert torch.equal(kv.committed(), kept)
    kv.commit(())
    assert torch.equal(kv.committed(), kept)
    assert torch.equal(runner.verify(TREE, kv), runner.verify(TREE, plain))


def test_a_cache_shows_the_keys_and_values_that_it_holds(load: LoadTarget) -> None:
    """Those of torch's operations, but for rounding."""
    runner = runner_of(load, "qwen3", "bfloat16")
    whole = load("qwen3", "float64").runner
    ours, exact = (state(each)[0].committed().double() for each in (runner, whole))
    assert ours.shape == exact.shape
    assert (ours - exact).norm() / exact.norm() < 0.02


def test_the_kept_rows_of_a_tree_are_those_of_its_path(load: LoadTarget) -> None:
    runner = runner_of(load, "pebble", "bfloat16")
    kv, _ = state(runner)
    runner.verify(TREE, kv)
    path = SHAPE.path_to(SHAPE.paths.index((0, 1, 0)))
    kv.commit(path)
    plain, _ = state(runner, IDS + [TREE.token_ids[node] for node in path])
    assert kv.length == plain.length
    assert torch.equal(kv.committed(), plain.committed())


@pytest.mark.parametrize("name", NAMES)
def test_heads_rank_as_their_scores_say(name: str, load: LoadTarget) -> None:
    heads = load(name, "float32").heads
    assert heads is not None
    assert heads._native is not None
    hidden = torch.randn(load(name, "float32").config.hidden_size)
    ranked = heads.ranked(hidden, 0, [9, 2])
    assert (ranked.scores - heads.logits(hidden, 0, 2)).abs().max() < 1e-4
    assert torch.tensor(ranked.columns).tolist() == ranked.scores.topk(9).indices.tolist()


@pytest.mark.parametrize("path", libraries(), ids=lambda path: path.stem)
@pytest.mark.parametrize("columns", [16, 17, 31, 33, 320, 4099])
def test_what_a_trace_keeps_of_scores_is_their_softmax(path: Path, columns: int) -> None:
    reader, plain = Summary(open_library(path)), TorchSummary()
    generator = torch.Generator().manual_seed(columns)
    scores = torch.randn(7, columns, generator=generator) * 5
    scores[2] *= 20  # so sure that most of the row is nothing
    scores[5, 3] = scores[5].max()  # two are best
    for rows in ((0,), (2, 0), (6, 5, 3, 2, 1)):
        best = scores.argmax(dim=-1)
        for choices in ([int(best[row]) for row in rows], [row % columns for row in rows]):
            ours, theirs = (each.choices(scores, rows, choices) for each in (reader, plain))
            count = len(rows) * (1 + NUM_ALTERNATIVES)
            floats = [memoryview(packed).cast("f")[:count].tolist() for packed in (ours, theirs)]
            assert floats[0] == pytest.approx(floats[1], rel=1e-5, abs=1e-9)
            others = memoryview(ours).cast("i")[count:].tolist()
            assert len(others) == len(rows) * NUM_ALTERNATIVES
            for place, (row, choice) in enumerate(zip(rows, choices, strict=True)):
                found = others[place * NUM_ALTERNATIVES : (place + 1) * NUM_ALTERNATIVES]
                left = scores[row].clone()
                left[choice] = -math.inf
                assert len({*found, choice}) == NUM_ALTERNATIVES + 1
                assert torch.equal(left[found], left.topk(NUM_ALTERNATIVES).values)
    scores[4], scores[4, 8] = 0.0, 100.0  # far above what is asked for
    places = [0, columns - 1, int(scores[2].argmin()), 5, int(scores[6].argmax())]
    at = array("i", [0, 0, 2, 4, 6])
    told = [memoryview(r.probabilities(scores, at, places)).cast("f") for r in (reader, plain)]
    assert told[0].tolist() == pytest.approx(told[1].tolist(), rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("path", libraries(), ids=lambda path: path.stem)
def test_a_walk_by_the_best_is_that_of_its_rows(path: Path) -> None:
    """And what it reads on its way is what a trace asks for afterwards."""
    library = open_library(path)
    walk, reader = BestWalk(library), Summary(library)
    draws = random.Random(3)
    lengths = set()
    for _ in range(300):
        paths = {()}
        for _ in range(draws.randrange(40)):
            parent = draws.choice(sorted(paths))
            paths.add((*parent, sum(p[:-1] == parent and p != () for p in paths)))
        shape = TreeShape.from_paths(paths - {()})
        # Few tokens, so that others than the children of a node hold the best one.
        token_ids = [draws.randrange(4) for _ in range(shape.num_nodes)]
        scores = torch.rand(shape.num_nodes, 53)
        best = [draws.randrange(4) for _ in range(shape.num_nodes)]
        scores[range(shape.num_nodes), best] = 2.0
        tree = TokenTree(shape, tuple(token_ids))
        expected = descend(tree, lambda node, _, best=best: best[node])
        met = walk(tree, scores, reads=True)
        assert met is not None
        assert met._replace(judged=b"") == expected
        run = (*(token_ids[node] for node in expected.nodes), expected.bonus_id)
        assert met.judged == reader.choices(scores, (0, *expected.nodes), run)
        unread = walk(tree, scores, reads=False)
        assert unread == expected
        assert not unread.judged
        lengths.add(len(expected.nodes))
        scores[expected.nodes[-1] if expected.nodes else 0, 50] = math.nan
        assert walk(tree, scores, reads=True) is None
    assert lengths >= {0, 1, 2, 3}


@pytest.mark.parametrize("columns", [16, 53, 64, 4096])
def test_the_best_of_equals_is_the_first_and_no_number_is_found(columns: int) -> None:
    library = native_library()
    assert library is not None
    equal = torch.zeros(1, columns)
    read = Summary(library).choices(equal, (0,), (2,))
    assert memoryview(read).cast("i")[-NUM_ALTERNATIVES:].tolist() == [0, 1, 3, 4, 5]
    scores = torch.zeros(8, columns)
    scores[0, [7, 10, columns - 1]] = 2.0
    scores[1, columns - 1] = 1.0
    scores[2] = -math.inf
    scores[2, columns // 2] = -3.0
    scores[3, columns - 1] = math.inf
    scores[4, 3], scores[4, 9] = math.nan, 9.0
    scores[5, columns - 1] = math.nan
    scores[6] = -math.inf
    walk, root_only = BestWalk(library), TokenTree(TreeShape.root_only(), (0,))
    found = [walk(root_only, scores[row : row + 1], reads=False) for row in range(8)]
    bonus = [None if met is None else met.bonus_id for met in found]
    assert bonus == [7, columns - 1, columns // 2, None, None, None, None, 0]
    assert best_walk(scores) is not None
    assert best_walk(scores.double()) is None


@pytest.mark.parametrize("name", ["qwen3", "pebble"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_heads_guess_as_those_of_torch_operations(name: str, dtype: str, load: LoadTarget) -> None:
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


def test_damaged_weights_are_noticed(load: LoadTarget) -> None:
    runner = runner_of(load, "qwen3", "bfloat16")
    norm = runner._native._kept[0]
    before = norm.clone()
    try:
        norm[3] = float("nan")
        assert runner.logits(state(runner)[1]).isnan().any(dim=-1).all()
    finally:
        norm.copy_(before)


def test_passes_of_all_kinds_have_the_same_helpers_unless_they_need_others() -> None:
    library = native_library()
    assert library is not None
    before = set(threading.enumerate())
    workers = Workers(library)
    workers.use(2, 2)
    assert workers.prefill is workers.decoding
    workers.use(1, 3)
    assert (workers.decoding.num_workers, workers.prefill.num_workers) == (1, 3)
    del workers
    for helper in set(threading.enumerate()) - before:
        helper.join(10)
        assert not helper.is_alive()


def test_a_helper_that_is_called_while_it_leaves_comes_back() -> None:
    came: list[int] = []
    again = threading.Event()

    class Library:
        def serve(self, address: int, worker: int) -> None:
            came.append(worker)
            if len(came) == 1:
                pool.awake()  # it has found nothing to do, and now there is something
            elif len(came) == 2:
                again.set()

    pool = Pool(Library(), 2)  # type: ignore[arg-type]
    pool.awake()
    assert again.wait(10)
    assert came == [1, 1]


def test_helpers_rest_and_leave() -> None:
    library = native_library()
    assert library is not None
    before = set(threading.enumerate())
    pool = Pool(library, 3)
    assert pool.awake() is not None
    helpers = set(threading.enumerate()) - before
    assert len(helpers) == 2
    del pool
    for helper in helpers:
        helper.join(10)
        assert not helper.is_alive()


def test_without_a_library_torch_runs_the_step(tmp_path: Path) -> None:
    """In a process of its own, as a library is chosen once."""
    script = (
        "from medusa_core.api import demo_model\n"
        "from medusa_core.target import load_target\n"
        "print(type(load_target(*demo_model()).runner).__name__)\n"
    )
    environment = {**os.environ, "MEDUSA_NATIVE": "0", "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == ["ResidentRunner"]


def test_torch_alone_decodes_pebble_as_well(
    load: LoadTarget,
    monkeypatch: pytest.MonkeyPatch,
    report_ties: Callable[[list[Tie]], None],
) -> None:
    monkeypatch.setattr(linear, "native_library", lambda: None)
    monkeypatch.setattr(linear, "native_linear", lambda weight, bias: None)
    dtype = "bfloat16" if linear.torch_packs_bfloat16() else "float32"
    target = load_target(*demo_model(), LoadOptions(dtype))
    assert isinstance(target.runner, ResidentRunner)
    settings, greedy = GenerateSettings(max_new_tokens=60), rule_registry().get("greedy")
    plain = decode(target, replace(settings, drafter="none"), user_says("Tell me a story."))
    drafted = decode(target, settings, user_says("Tell me a story."))
    tie = check_same_but_for_ties(plain, drafted, target, load("pebble", "float64"), greedy)
    report_ties([] if tie is None else [tie])
    assert drafted.done.num_steps < plain.done.num_steps


def test_a_library_that_can_not_be_loaded_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / system_name()
    folder.mkdir()
    for name in native.instruction_sets():
        (folder / f"{name}{library_suffix()}").write_bytes(b"no library")
    monkeypatch.setattr(native, "native_dir", lambda: tmp_path)
    assert native_library.__wrapped__() is None
    assert "can't be loaded" in caplog.text


def test_a_name_that_no_library_has_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MEDUSA_NATIVE", "avx512_bf16")
    assert native_library.__wrapped__() is None
    assert "avx512_bf16 names no compiled step; there are: " in caplog.text
    assert libraries()[0].stem in caplog.text


X86 = {f"avx512_{name}": True for name in ("f", "bw", "cd", "dq", "vl")} | {
    "avx2": True,
    "fma3": True,
}


@pytest.mark.parametrize(
    ("capabilities", "names"),
    [
        ({"avx2": True}, []),
        ({"avx2": True, "fma3": True}, ["avx2"]),
        ({"avx2": True, "fma3": True, "avx_vnni": True}, ["avx2vnni", "avx2"]),
        (X86, ["avx512", "avx2"]),
        (X86 | {"avx512_vl": False}, ["avx2"]),
        (X86 | {"avx512_vnni": True}, ["avx512vnni", "avx512", "avx2"]),
        (
            X86 | {"avx512_vnni": True, "avx512_bf16": True},
            ["avx512bf16", "avx512vnni", "avx512", "avx2"],
        ),
    ],
)
def test_a_cpu_gets_the_libraries_that_it_can_run(
    capabilities: dict[str, bool], names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "system_name", lambda: "linux-x86_64")
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    assert native.instruction_sets() == names
    monkeypatch.setattr(native, "system_name", lambda: "linux-aarch64")
    assert native.instruction_sets() == ["neon"]


class Multiplier:
    """Stands for a library whose product takes a while, by a clock of its own."""

    now = 0.0

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def linear(self, *_: object) -> None:
        Multiplier.now += self._seconds


def test_of_two_libraries_the_clearly_faster_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native.time, "perf_counter", lambda: Multiplier.now)
    slow, less, fast = (cast("ctypes.CDLL", Multiplier(s)) for s in (4e-3, 3.8e-3, 1e-3))
    assert native.fastest([]) is None
    assert native.fastest([slow]) is slow
    assert native.fastest([slow, fast]) is fast
    assert native.fastest([fast, slow]) is fast
    assert native.fastest([slow, less]) is slow  # such a difference may be chance


@pytest.mark.parametrize("path", libraries(), ids=lambda path: path.stem)
def test_every_library_can_be_compared(path: Path) -> None:
    first, again = open_library(path), open_library(path)
    assert native.fastest([first, again]) in (first, again)


def test_systems_have_names() -> None:
    assert system_name("linux", "x86_64") == "linux-x86_64"
    assert system_name("win32", "AMD64") == "windows-x86_64"
    assert system_name("darwin", "arm64") == "macos-aarch64"


def test_the_hash_tells_sources_apart(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int a;")
    first = hash_of_sources(tmp_path)
    (tmp_path / "a.c").write_text("int b;")
    assert first != hash_of_sources(tmp_path)
    assert len(first) == len(hashlib.sha256().hexdigest())


def test_a_target_too_narrow_for_it_runs_without(load: LoadTarget) -> None:
    target: Target = load("grouped", "float32")  # heads of 8 numbers
    assert isinstance(target.runner, ResidentRunner)
