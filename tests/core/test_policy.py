"""The policy's search against brute force, and what it says of machines whose answer is plain."""

import itertools
import json
import math
import random
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from medusa_core.__main__ import main
from medusa_core.cli.plan import shape_config
from medusa_core.memory import bandwidth
from medusa_core.memory.budget import Budget
from medusa_core.memory.policy import measure
from medusa_core.memory.policy.cost import SHARES
from medusa_core.memory.policy.here import (
    PolicyRequest,
    Rates,
    machine_for,
    work_of,
)
from medusa_core.memory.policy.machine import (
    MachineRates,
    seconds_at,
)
from medusa_core.memory.policy.program import Rules
from medusa_core.memory.policy.search import (
    blocks,
    search,
    solve,
)
from medusa_core.memory.policy.work import (
    BatchBlock,
    BatchWork,
)
from medusa_core.memory.tiers import Below
from medusa_core.messages import WeightFormats
from medusa_core.models.precision import hardware_of, precision_of
from medusa_core.models.quant.choice import settle_formats
from medusa_core.models.quant.format import Hardware
from medusa_core.runtime.kv.size import row_bytes
from medusa_core.system.files.measurement_files import MeasurementFiles
from tests.core.peer_files import write_peer

GIB = 1 << 30
_MOVES = 1500
SMALL = {
    "num_layers": 2,
    "hidden_size": 64,
    "intermediate_size": 96,
    "vocab_size": 256,
    "num_heads": 4,
    "num_kv_heads": 2,
    "head_dim": 16,
}
WORK = BatchWork(
    num_layers=32,
    layer_bytes=114 << 20,
    fixed_bytes=300 << 20,
    row_bytes=16384,
    state_bytes=8192,
    scratch_row_bytes=200_000,
    num_prompts=48,
    prompt_tokens=128,
    new_tokens=64,
    prompt_rows=512,
)
MACHINE = MachineRates(
    device_bytes=8 * GIB,
    memory_bytes=32 * GIB,
    disk_bytes=400 * GIB,
    to_device=12e9,
    from_device=12e9,
    from_disk=2e9,
    to_disk=1e9,
    cache_on_device=3e11,
    cache_in_memory=2e10,
    layer_s=((1, 5e-4), (64, 9e-4), (512, 4e-3)),
    head_s=((1, 1e-3), (512, 3e-3)),
)


def synthetic(seed: int) -> tuple[BatchWork, MachineRates]:
    """A machine and a model drawn over orders of magnitude."""
    draw = random.Random(seed)

    def about(low: float, high: float) -> float:
        return math.exp(draw.uniform(math.log(low), math.log(high)))

    work = replace(
        WORK,
        num_layers=draw.choice((16, 32, 48, 80)),
        layer_bytes=round(about(5e7, 1e9)),
        row_bytes=round(about(1e3, 2e4)),
        num_prompts=draw.choice((8, 24, 64)),
        prompt_tokens=round(about(32, 1000)),
        new_tokens=round(about(16, 300)),
    )
    first = about(2e-4, 2e-2)
    has_card = seed % 3 > 0
    machine = MachineRates(
        device_bytes=round(work.fixed_bytes + 4 * work.layer_bytes + about(1e9, 4e10)),
        memory_bytes=round(about(4e9, 1e11)) if has_card else 0,
        disk_bytes=round(about(2e11, 1e12)),
        to_device=about(4e9, 5e10) if has_card else math.inf,
        from_device=about(4e9, 5e10) if has_card else math.inf,
        from_disk=about(3e8, 7e9),
        to_disk=about(2e8, 4e9),
        cache_on_device=about(2e10, 1e12),
        cache_in_memory=about(5e9, 5e10),
        layer_s=((1, first), (32, first * about(1, 3)), (512, first * about(5, 60))),
        head_s=((1, first / 4), (512, first * 3)),
    )
    return work, machine


class ByHand:
    """The cost model once more, written plainly for many placements at once."""

    def __init__(self, work: BatchWork, block: BatchBlock, machine: MachineRates) -> None:
        self.work, self.block, self.machine = work, block, machine

    def block_s(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Seconds for shares [n, 9]; infinite where they have no room."""
        w, block = self.work, self.block
        head = block.num_batches * seconds_at(self.machine.head_s, block.batch)
        prompts = block.num_sequences * w.prompt_tokens
        passes = math.ceil(prompts / w.prompt_rows)
        compute = passes * seconds_at(self.machine.layer_s, prompts / passes)
        prefill = self._layer_s(x, passes, prompts, compute, 0.0)
        compute = block.num_batches * seconds_at(self.machine.layer_s, block.batch)
        behind = block.num_sequences * (w.prompt_tokens + w.new_tokens / 2)
        step = self._layer_s(x, 1, block.num_sequences, compute, behind)
        total = w.num_layers * (prefill + (w.new_tokens - 1) * step) + w.new_tokens * head
        return np.where(self._fits(x), total, np.inf)

    def _layer_s(
        self, x: NDArray[np.float64], passes: int, rows: int, compute: float, behind: float
    ) -> NDArray[np.float64]:
        w, m = self.work, self.machine
        (_, w_m, w_k), (c_d, c_m, c_k), (_, h_m, h_k) = x[:, :3].T, x[:, 3:6].T, x[:, 6:].T
        weights, states, fresh = passes * w.layer_bytes, rows * w.state_bytes, rows * w.row_bytes
        cached = behind * w.row_bytes
        return np.maximum.reduce(
            [
                ((w_m + w_k) * weights + (h_m + h_k) * states) / m.to_device,
                ((h_m + h_k) * states + (c_m + c_k) * fresh) / m.from_device,
                (w_k * weights + c_k * cached + h_k * states) / m.from_disk,
                (c_k * fresh + h_k * states) / m.to_disk,
                compute
                + c_d * cached / m.cache_on_device
                + (c_m + c_k) * cached / m.cache_in_memory,
            ]
        )

    def _fits(self, x: NDArray[np.float64]) -> NDArray[np.bool_]:
        w, block, m = self.work, self.block, self.machine
        prompts = block.num_sequences * w.prompt_tokens
        sizes = (
            w.num_layers * w.layer_bytes,
            w.num_layers * block.num_sequences * (w.prompt_tokens + w.new_tokens) * w.row_bytes,
            prompts * w.state_bytes,
        )
        held = [sum(size * x[:, 3 * i + tier] for i, size in enumerate(sizes)) for tier in range(3)]
        rows = max(block.batch, w.prompt_rows)
        device = held[0] + w.fixed_bytes + rows * w.scratch_row_bytes
        device = device + (x[:, 0] < 1) * 3 * w.layer_bytes
        passing = x[:, 5] * 3 * sizes[1] / w.num_layers
        memory = held[1]
        if m.memory_bytes:
            memory = memory + passing + x[:, 2] * 3 * w.layer_bytes
        else:
            device = device + passing
        slack = 1 + 1e-9
        return (
            (device <= slack * m.device_bytes)
            & (memory <= slack * m.memory_bytes)
            & (held[2] <= slack * m.disk_bytes)
        )


def simplex(step: int) -> NDArray[np.float64]:
    """All shares of three tiers in so many parts."""
    parts = [(a, b, step - a - b) for a in range(step + 1) for b in range(step + 1 - a)]
    return np.array(parts) / step


GRID = np.array([np.concatenate(p) for p in itertools.product(*map(simplex, (8, 8, 2)))])


def brute_force(work: BatchWork, machine: MachineRates) -> float:
    """Most tokens a second over a grid, made finer around what is best for the best blocks."""
    coarse = []
    for block in blocks(work.num_prompts):
        by_hand = ByHand(work, block, machine)
        times = by_hand.block_s(GRID) * block.num_rounds(work)
        coarse.append((times.min(), times, by_hand))
    found = [
        min(refined(by_hand, GRID[start]) for start in np.argsort(times)[:2])
        * by_hand.block.num_rounds(work)
        for _, times, by_hand in sorted(coarse, key=lambda one: one[0])[:4]
    ]
    return work.num_prompts * work.new_tokens / min(found)


def refined(by_hand: ByHand, best: NDArray[np.float64]) -> float:
    """Least seconds near a placement, by moves that become smaller."""
    draw = np.random.default_rng(1)
    best_s, size = float(by_hand.block_s(best[None])[0]), 1 / 8
    while size > 1e-4:
        moves = draw.normal(size=(_MOVES, 3, 3)) * draw.integers(0, 2, size=(_MOVES, 3, 1))
        moves *= draw.exponential(size=(_MOVES, 3, 1))
        moves -= moves.mean(axis=2, keepdims=True)
        near = np.clip(best + size * moves.reshape(-1, 9), 0, 1).reshape(-1, 3, 3)
        near = (near / near.sum(axis=2, keepdims=True)).reshape(-1, 9)
        times = by_hand.block_s(near)
        if times.min() < best_s * (1 - 1e-5):
            best, best_s = near[np.argmin(times)], float(times.min())
        else:
            size *= 0.8
    return best_s


@pytest.mark.parametrize("seed", range(10))
def test_the_search_finds_what_brute_force_finds(seed: int) -> None:
    work, machine = synthetic(seed)
    policy = search(work, machine)
    assert policy is not None
    assert policy.tokens_per_s == pytest.approx(brute_force(work, machine), rel=0.03)
    x = np.array([[policy.shares[share] for share in SHARES]])
    hand_s = ByHand(work, policy.block, machine).block_s(x)[0]
    rounds = policy.block.num_rounds(work)
    assert work.num_prompts * work.new_tokens / (rounds * hand_s) == pytest.approx(
        policy.tokens_per_s, rel=1e-4
    )


def test_what_fits_the_device_lies_there_and_computing_binds() -> None:
    roomy = replace(MACHINE, device_bytes=80 * GIB)
    policy = search(WORK, roomy)
    assert policy is not None
    assert policy.shares["weights", "device"] == pytest.approx(1)
    assert policy.binds == ("computing",)
    assert policy.block.num_sequences == WORK.num_prompts


def test_what_fits_nowhere_has_no_policy() -> None:
    tiny = replace(MACHINE, device_bytes=GIB, memory_bytes=0, disk_bytes=GIB)
    assert search(WORK, tiny) is None
    assert search(WORK, replace(tiny, device_bytes=WORK.fixed_bytes)) is None


def test_a_slow_disk_binds_and_a_larger_block_shares_what_is_read() -> None:
    slow = replace(MACHINE, device_bytes=2 * GIB, memory_bytes=0, from_disk=3e8)
    policy = search(WORK, slow, Rules(stays=True))
    assert policy is not None
    assert "reading from disk" in policy.binds
    assert "room on the device" in policy.binds
    assert policy.shares["cache", "device"] == pytest.approx(1)
    one = solve(WORK, BatchBlock(1, 1), slow, Rules(stays=True))
    assert one is not None
    assert policy.tokens_per_s > 3 * one.tokens_per_s


def test_without_overlap_all_that_is_done_adds_up() -> None:
    block, machine = BatchBlock(8, 1), replace(MACHINE, device_bytes=3 * GIB)
    both = [
        solve(WORK, block, machine, Rules(stays=True, overlaps=overlaps))
        for overlaps in (True, False)
    ]
    assert both[0] is not None
    assert both[1] is not None
    assert both[0].tokens_per_s > both[1].tokens_per_s


def test_a_curve_is_straight_between_its_points_and_goes_on_behind_them() -> None:
    curve = ((1, 2.0), (3, 4.0), (5, 8.0))
    assert [seconds_at(curve, rows) for rows in (0, 1, 2, 4, 5, 6)] == [2, 2, 3, 6, 8, 10]


def write_machine(path: Path, machine: MachineRates) -> Path:
    path.write_text(json.dumps(asdict(machine)), encoding="utf-8")
    return path


def test_the_command_prints_the_policy_and_writes_what_it_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = replace(MACHINE, device_bytes=2 * GIB, memory_bytes=0, from_disk=1e9)
    reported = tmp_path / "told.json"
    sizes = ["--prompts", "32", "--length", "128", "--new-tokens", "64"]
    how = ["--machine", str(write_machine(tmp_path / "machine.json", machine))]
    shape = ["--shape", "vicuna-7b", "--quant", "q4_0", "--cache-quant", "q4"]
    assert main(["plan", "--throughput", *shape, *sizes, *how, "--json", str(reported)]) == 0
    printed = capsys.readouterr().out
    assert "reading from disk" in printed
    assert "tokens/s expected" in printed
    found = json.loads(reported.read_text(encoding="utf-8"))
    assert {"work", "machine", "best", "batch", "without_overlap", "one_at_a_time"} <= {*found}
    assert found["batch"]["block"] == 32
    assert found["batch"]["tokens_per_s"] > 10 * found["one_at_a_time"]["tokens_per_s"]
    assert found["best"]["tokens_per_s"] >= found["batch"]["tokens_per_s"] * 0.999
    assert sum(found["best"]["weights"].values()) == pytest.approx(1)
    # What was found describes the machine well enough to be asked about it again.
    again = tmp_path / "again.json"
    again.write_text(json.dumps(found["machine"]), encoding="utf-8")
    assert main(["plan", "--throughput", *shape, *sizes, "--machine", str(again)]) == 0


@pytest.mark.parametrize("name", ["qwen 3.5", "gemma 4 E2B", "lfm 2"])
def test_layers_that_hold_states_or_heads_of_their_own_are_measured(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model"
    write_peer(name, model, tmp_path / "heads")
    wanted = ["plan", str(model), "--throughput", "--prompts", "4", "--length", "64", "--measure"]
    assert main([*wanted, "--json"]) == 0
    printed = capsys.readouterr().out
    assert "tokens/s expected" in printed


def test_states_are_no_cache_of_a_token() -> None:
    config = shape_config("qwen3.5-4b")
    formats = settle_formats(WeightFormats("q4"), "", Hardware("cpu", compiles=True))
    precision = precision_of(formats.compute, torch.device("cpu"))
    item = precision.compute.itemsize
    besides = []
    for length in (128, 16384):
        work = work_of(PolicyRequest(config, formats, precision, 1, length - 64, 64))
        held = work.row_bytes * config.num_layers * length
        besides.append(held - length * row_bytes(config, item))
    # What a sequence holds besides its rows is the same for any length.
    assert besides[0] == pytest.approx(besides[1], rel=0.05)
    assert 0 < besides[0] < 400 << 20


@pytest.mark.parametrize(
    "more",
    [
        ["--prompts", "0"],
        ["--length", "1"],
        ["--length", "100000"],
        ["--new-tokens", "512"],
        ["--machine", "missing.json"],
    ],
)
def test_numbers_that_make_no_sense_are_told(
    more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "--throughput", "--shape", "vicuna-7b", *more]) == 1
    assert "error:" in capsys.readouterr().err


def test_rates_of_this_machine_are_measured_once_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bandwidth, "_NBYTES", bandwidth.PIECE_BYTES)
    monkeypatch.setattr(measure, "_MOVED_BYTES", 1 << 20)
    monkeypatch.setattr(measure, "_MEASURED_S", 0.01)
    config = replace(shape_config("smollm2-1.7b"), **SMALL)
    device = torch.device("cpu")
    formats = settle_formats(WeightFormats(cache="q4"), "float32", hardware_of(device))
    precision = precision_of(formats.compute, device, formats.cache_format)
    requested = PolicyRequest(config, formats, precision, 8, 16, 16)
    budget = Budget("a small device", Hardware("cpu"), 64 << 20, 0, 0, is_live=True)
    reported: list[str] = []
    kept = MeasurementFiles(tmp_path / "kept")

    def found(anew: bool = False) -> MachineRates:
        rates = Rates(kept, reported.append, anew)
        return machine_for(requested, budget, Below(0, tmp_path / "tiers"), rates)

    first = found()
    assert len(reported) == 2
    assert replace(found(), disk_bytes=first.disk_bytes) == first  # others write meanwhile
    assert len(reported) == 2
    found(anew=True)
    assert len(reported) == 4
    assert (first.device_bytes, first.memory_bytes) == (64 << 20, 0)
    assert 0 < first.from_disk < 1e12
    assert 0 < first.cache_on_device < 1e13
    work = work_of(requested)
    assert work.row_bytes * config.num_layers == row_bytes(config, 4, "q4")
    policy = search(work, first)
    assert policy is not None
    assert policy.tokens_per_s > 0
    assert list((tmp_path / "tiers").iterdir()) == []  # nothing is left of what was written


def test_a_block_of_too_few_prompts_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--throughput", "1", "--shape", "vicuna-7b"]) == 1
    assert "2 to 256" in capsys.readouterr().err
