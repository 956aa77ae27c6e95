"""The policy's search against brute force, and what it says of machines whose answer is plain."""

import itertools
import json
import math
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from medusa_core.__main__ import main
from medusa_core.cli.plan import shape_config
from medusa_core.errors import RequestError
from medusa_core.loading.measure import machine as measuring
from medusa_core.loading.memory.budget import GIB
from medusa_core.loading.policy.machine_rates import MachineRates, seconds_at
from medusa_core.loading.policy.policy_file import found_as_json, read_policy
from medusa_core.loading.policy.request import PolicyRequest, workload_of
from medusa_core.loading.policy.result import FoundPolicy
from medusa_core.loading.policy.rules import Rules, check_policy, rules_of
from medusa_core.loading.policy.search import (
    _best,
    blocks,
    forecast_policy,
    search,
)
from medusa_core.loading.policy.workload import BatchBlock, Workload
from medusa_core.messages import Policy, Shares, Tier, WeightFormats
from medusa_core.models.precision import precision_of
from medusa_core.models.quant.choice import resolve_formats
from medusa_core.models.quant.format import Hardware
from medusa_core.runtime.kv.size import row_bytes, staging_bytes
from tests.support.engine.policies import MACHINE

WORK = Workload(
    num_layers=32,
    layer_bytes=114 << 20,
    piece_bytes=114 << 20,
    fixed_bytes=300 << 20,
    row_bytes=16384,
    slots=(208,),
    most_slots=256,
    state_bytes=16384,
    scratch_bytes=10 << 20,
    scratch_row_bytes=200_000,
    scored_row_bytes=256_000,
    num_prompts=48,
    prompt_tokens=128,
    new_tokens=64,
    rows_at_once=(256, 64),
)


def best_for(block: BatchBlock, machine: MachineRates, rules: Rules) -> FoundPolicy | None:
    return _best(WORK, machine, rules, [block])


def synthetic(seed: int) -> tuple[Workload, MachineRates]:
    """A machine and a model drawn over orders of magnitude."""
    draw = random.Random(seed)

    def about(low: float, high: float) -> float:
        return math.exp(draw.uniform(math.log(low), math.log(high)))

    layer, prompt, new = round(about(5e7, 1e9)), round(about(32, 600)), round(about(16, 300))
    work = replace(
        WORK,
        num_layers=draw.choice((5, 7)),
        layer_bytes=layer,
        piece_bytes=layer + 4096,
        row_bytes=round(about(1e4, 2e5)),
        slots=(-(-(prompt + new) // 16) * 16 + 32, -(-(prompt + new) // 16) * 16),
        most_slots=-(-(prompt + new) // 16) * 16 + 64,
        num_prompts=draw.choice((4, 6, 24)),
        prompt_tokens=prompt,
        new_tokens=new,
    )
    first = about(2e-4, 2e-2)
    has_card = seed % 3 > 0
    machine = MachineRates(
        device_bytes=round(work.fixed_bytes + 4 * layer + about(2e8, 4e9)),
        memory_bytes=round(about(5e8, 2e10)) if has_card else 0,
        disk_bytes=round(about(2e10, 1e12)),
        to_device=about(4e9, 5e10) if has_card else math.inf,
        from_device=about(4e9, 5e10) if has_card else math.inf,
        from_disk=about(3e8, 7e9),
        read_s=about(1e-5, 1e-3),
        to_disk=about(2e8, 4e9),
        copied=about(2e9, 1e10),
        num_cores=draw.choice((2, 8)),
        cache_on_device=about(2e10, 1e12),
        cache_of_prompts=about(2e10, 1e12),
        cache_in_memory=about(5e9, 5e10),
        visit_s=about(1e-5, 1e-3),
        layer_s=((1, first), (32, first * about(1, 3)), (512, first * about(5, 60))),
        head_s=((1, first / 4), (512, first * 3)),
        computing_beside=draw.uniform(0.3, 1.0),
        reading_beside=draw.uniform(0.3, 1.0),
    )
    return work, machine


def shares_of_layers(count: int) -> NDArray[np.int64]:
    """Return all divisions of weights and cache of layers over memory and disk. [n, 4]"""
    one = [(m, k) for m in range(count + 1) for k in range(count + 1 - m)]
    return np.array([(*weights, *cache) for weights, cache in itertools.product(one, one)])


class ByHand:
    """The cost model once more, written plainly for many placements at once."""

    def __init__(
        self,
        work: Workload,
        block: BatchBlock,
        machine: MachineRates,
        states: Tier,
        attention: Tier,
    ) -> None:
        self.work, self.block, self.machine = work, block, machine
        self.states, self.attention = states, attention

    def block_s(self, x: NDArray[np.int64]) -> NDArray[np.float64]:
        """Seconds for numbers of layers [n, 4]; infinite where they have no room."""
        w, block = self.work, self.block
        n, prompt = block.batch * block.num_batches, w.prompt_tokens
        chunks = math.ceil(prompt / block.at_once)
        passes = max(chunks, math.ceil(n * prompt / block.prompt_rows))
        rows = n * prompt / passes
        visits = max(
            math.ceil(rows / block.at_once),
            math.ceil(math.ceil(rows * chunks / prompt) / block.batch),
        )
        each = self.machine.visit_s + seconds_at(self.machine.layer_s, rows / visits)
        pairs = n * prompt * prompt / 2 * w.row_bytes / self.machine.cache_of_prompts
        compute = w.num_layers * (passes * visits * each + pairs)
        compute += passes * seconds_at(self.machine.head_s, n / passes)
        prefill = self._pass_s(
            x, passes, n * prompt, compute, n * prompt * (chunks - 1) / 2, n * (chunks - 1)
        )
        each = self.machine.visit_s + seconds_at(self.machine.layer_s, block.batch)
        each *= block.num_batches
        compute = w.num_layers * each + seconds_at(self.machine.head_s, n)
        behind = n * max(0, prompt + w.new_tokens / 2 - 7.5)
        step = self._pass_s(x, 1, n, compute, behind, n)
        return np.where(self._fits(x), prefill + (w.new_tokens - 1) * step, np.inf)

    def _pass_s(
        self,
        x: NDArray[np.int64],
        passes: int,
        rows: int,
        compute: float,
        behind: float,
        reads: int,
    ) -> NDArray[np.float64]:
        w, m = self.work, self.machine
        w_m, w_k, c_m, c_k = x.T
        weights, fresh, cached = passes * w.layer_bytes, rows * w.row_bytes, behind * w.row_bytes
        states = w.num_layers * rows * w.state_bytes * (self.states is not Tier.DEVICE)
        moving = states / m.to_device + states / m.from_device
        if self.states is Tier.DISK:
            moving += states / m.from_disk + states / m.to_disk
        brought = (c_m + c_k) * cached * (self.attention is Tier.DEVICE)
        in_memory = (c_m + c_k) * cached * (self.attention is Tier.MEMORY)
        below, on_device = (c_m + c_k) * fresh, w.num_layers * cached / m.cache_on_device
        moved = [
            ((w_m + w_k) * weights + brought) / m.to_device,
            below / m.from_device,
            (w_k * weights + c_k * cached) / m.from_disk + (w_k * passes + c_k * reads) * m.read_s,
            c_k * cached / m.from_disk + c_k * reads * m.read_s + c_k * cached / m.copied,
            c_k * fresh / m.to_disk,
        ]
        computed = (
            compute
            + on_device
            + in_memory / m.cache_in_memory
            + c_k * cached / m.copied / m.num_cores
            + c_k * fresh / m.copied
            + c_k * reads * m.visit_s
            + moving
        )
        read = np.maximum.reduce(moved)
        # Both at once, each at its slower pace; then the rest of one of them alone.
        computed_s, read_s = computed / m.computing_beside, read / m.reading_beside
        return np.where(
            computed_s < read_s,
            computed_s + read - computed_s * m.reading_beside,
            read_s + computed - read_s * m.computing_beside,
        )

    def _fits(self, x: NDArray[np.int64]) -> NDArray[np.bool_]:
        w, block, m = self.work, self.block, self.machine
        w_m, w_k, c_m, c_k = x.T
        n, count = block.batch * block.num_batches, w.num_layers
        slots = w.slots[0] + (n - 1) * w.slots[-1]
        cache = math.ceil(slots / w.most_slots) * w.most_slots * w.row_bytes
        ring = 3 * block.batch * w.most_slots * w.row_bytes
        ring += 2 * staging_bytes(w.row_bytes, w.most_slots)
        rows = max(block.batch, block.at_once)
        states = max(n, min(block.prompt_rows, n * w.prompt_tokens)) * w.state_bytes
        device = w.fixed_bytes + w.scratch_bytes + rows * w.scratch_row_bytes
        device += (n + 4) * w.scored_row_bytes + states * (self.states is Tier.DEVICE)
        device = device + (count - w_m - w_k) * w.layer_bytes + (count - c_m - c_k) * cache
        device = device + (w_m + w_k > 0) * 3 * w.piece_bytes + (c_m > 0) * ring
        device = device + (c_k > 0) * ring
        tails = c_k * n * 16 * w.row_bytes
        memory = w_m * w.layer_bytes + c_m * cache + states * (self.states is Tier.MEMORY)
        if m.memory_bytes:
            memory = memory + (w_k > 0) * 3 * w.piece_bytes + (c_k > 0) * ring + tails
        else:
            device = device + tails
        disk = (w_k > 0) * count * w.layer_bytes + c_k * cache + states * (self.states is Tier.DISK)
        return (device <= m.device_bytes) & (memory <= m.memory_bytes) & (disk <= m.disk_bytes)


def brute_force(work: Workload, machine: MachineRates) -> float:
    """Return the highest tokens per second of all placements and blocks."""
    x = shares_of_layers(work.num_layers)
    best = math.inf
    for block in blocks(work, Rules()):
        for states, attention in itertools.product(Tier, (Tier.DEVICE, Tier.MEMORY)):
            if attention is Tier.MEMORY and not machine.memory_bytes:
                continue
            seconds = ByHand(work, block, machine, states, attention).block_s(x).min()
            best = min(best, block.num_rounds(work) * float(seconds))
    return work.num_prompts * work.new_tokens / best


@pytest.mark.parametrize("seed", range(10))
def test_the_policy_search_finds_the_optimum_of_brute_force(seed: int) -> None:
    work, machine = synthetic(seed)
    found = search(work, machine, Rules(cpu_attention=True))
    assert found is not None
    assert found.forecast.tokens_per_s == pytest.approx(brute_force(work, machine), rel=1e-4)
    # What is expected of a policy that somebody else names is the same.
    again = forecast_policy(work, machine, found.policy)
    assert again.tokens_per_s == pytest.approx(found.forecast.tokens_per_s)
    assert again.rates == pytest.approx(found.forecast.rates)


def test_a_model_that_fits_is_resident_and_bound_by_computation() -> None:
    roomy = replace(MACHINE, device_bytes=80 * GIB)
    found = search(WORK, roomy)
    assert found is not None
    assert (found.policy.weights, found.policy.cache) == (Shares(), Shares())
    assert found.policy.activations == Shares()
    assert found.forecast.binds == ("computing",)
    assert found.policy.num_sequences == WORK.num_prompts


def test_a_model_that_fits_nowhere_has_no_policy() -> None:
    tiny = replace(MACHINE, device_bytes=GIB, memory_bytes=0, disk_bytes=GIB)
    assert search(WORK, tiny) is None
    assert search(WORK, replace(tiny, device_bytes=WORK.fixed_bytes)) is None


def test_layers_are_offloaded_if_a_resident_model_has_no_room() -> None:
    found, forced = search(WORK, MACHINE), search(WORK, MACHINE, Rules(must_offload=True))
    assert found is not None
    assert forced is not None
    assert not found.policy.weights.below + found.policy.cache.below
    assert forced.policy.weights.below + forced.policy.cache.below > 0


def test_a_slow_disk_is_the_bottleneck_and_a_larger_block_shares_its_reads() -> None:
    slow = replace(MACHINE, device_bytes=2 * GIB, memory_bytes=0, from_disk=3e8)
    found = search(WORK, slow, Rules(may_offload_cache=False))
    assert found is not None
    assert "reading from disk" in found.forecast.binds
    assert "room on the device" in found.forecast.binds
    assert found.policy.cache == Shares()
    one = best_for(BatchBlock(1, 1, 256, 256), slow, Rules(may_offload_cache=False))
    assert one is not None
    assert found.forecast.tokens_per_s > 3 * one.forecast.tokens_per_s


def test_reads_beside_computation_are_slower() -> None:
    slow = replace(MACHINE, device_bytes=2 * GIB, memory_bytes=0, from_disk=3e8)
    alone = replace(slow, to_device=math.inf, from_device=math.inf)
    beside = replace(alone, reading_beside=0.5)
    found = search(WORK, alone, Rules(may_offload_cache=False))
    assert found is not None
    first, later = (forecast_policy(WORK, machine, found.policy) for machine in (alone, beside))
    assert later.step_s > first.step_s
    # The disk binds: what a step needs comes in its time.
    brought = [forecast.rates["weights read"] * forecast.step_s for forecast in (first, later)]
    assert brought[1] == pytest.approx(brought[0])


def test_a_cache_is_offloaded_if_that_lets_more_prompts_share_a_layer() -> None:
    tight = replace(MACHINE, device_bytes=2 * GIB, memory_bytes=0)
    first, found = search(WORK, tight, Rules(may_offload_cache=False)), search(WORK, tight)
    assert first is not None
    assert found is not None
    assert found.policy.cache.disk > 0
    assert found.policy.num_sequences > first.policy.num_sequences
    assert found.forecast.tokens_per_s > 1.3 * first.forecast.tokens_per_s


def test_offloaded_activations_are_copied_between_computations() -> None:
    machine = replace(MACHINE, memory_bytes=0, to_device=math.inf, from_device=math.inf)
    here = Policy(batch=1, num_batches=4, prompt_rows=512)
    below = replace(here, activations=Shares(0.0, 0.0, 1.0))
    took = [forecast_policy(WORK, machine, policy).prefill_s for policy in (here, below)]
    moved = WORK.num_layers * 4 * WORK.prompt_tokens * WORK.state_bytes
    assert took[1] - took[0] == pytest.approx(moved * (1 / machine.from_disk + 1 / machine.to_disk))


def test_without_overlap_all_components_add_up() -> None:
    block, machine = BatchBlock(8, 1, 64, 64), replace(MACHINE, device_bytes=3 * GIB)
    both = [best_for(block, machine, Rules(False, overlaps)) for overlaps in (True, False)]
    assert both[0] is not None
    assert both[1] is not None
    assert both[0].forecast.tokens_per_s > both[1].forecast.tokens_per_s


def test_a_rate_curve_is_interpolated_and_extrapolated_linearly() -> None:
    curve = ((1, 2.0), (3, 4.0), (5, 8.0))
    assert [seconds_at(curve, rows) for rows in (0, 1, 2, 4, 5, 6)] == [2, 2, 3, 6, 8, 10]


def test_the_command_prints_the_policy_and_writes_its_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found_machine = replace(MACHINE, device_bytes=2 * GIB, memory_bytes=0, from_disk=1e9)
    reported = tmp_path / "told.json"
    sizes = ["--prompts", "32", "--length", "128", "--new-tokens", "64"]
    monkeypatch.setattr(measuring, "measure_machine", lambda *_: found_machine)
    shape = ["--shape", "vicuna-7b", "--quant", "q4_0", "--cache-type", "q4"]
    assert main(["plan", "--throughput", *shape, *sizes, "--json", str(reported)]) == 0
    printed = capsys.readouterr().out
    assert "reading from disk" in printed
    assert "tokens/s expected" in printed
    found = json.loads(reported.read_text(encoding="utf-8"))
    assert {"best", "weights_first", "without_overlap", "one_at_a_time"} <= {*found}
    rate = {name: of["forecast"]["tokens_per_s"] for name, of in found.items() if "forecast" in of}
    assert rate["weights_first"] > 10 * rate["one_at_a_time"]
    assert rate["best"] >= rate["weights_first"] * 0.999
    assert sum(found["best"]["policy"]["weights"].values()) == pytest.approx(1)
    assert found["best"]["policy"]["cache_format"] == "q4"
    assert read_policy(reported).weights.disk == found["best"]["policy"]["weights"]["disk"]


def test_recurrent_states_are_not_cache_per_token() -> None:
    config = shape_config("qwen3.5-4b")
    formats = resolve_formats(WeightFormats("q4"), "", Hardware("cpu", compiles=True))
    precision = precision_of(formats.compute, torch.device("cpu"))
    item = precision.compute.itemsize
    besides = []
    for length in (128, 16384):
        work = workload_of(PolicyRequest(config, formats, precision, 1, length - 64, 64, 1))
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
    ],
)
def test_senseless_numbers_are_refused(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--throughput", "--shape", "vicuna-7b", *more]) == 1
    assert "error:" in capsys.readouterr().err


def test_a_block_of_too_few_prompts_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--throughput", "1", "--shape", "vicuna-7b"]) == 1
    assert "2 to 256" in capsys.readouterr().err


POLICY = Policy(Shares(0.25, 0.0, 0.75), Shares(0.5, 0.0, 0.5), batch=8, num_batches=4)


def write_policy(path: Path, **changes: object) -> Path:
    found = best_for(BatchBlock(8, 1, 64, 64), MACHINE, Rules())
    assert found is not None
    raw = found_as_json(FoundPolicy(POLICY, found.forecast))["policy"]
    assert isinstance(raw, dict)
    path.write_text(json.dumps(raw | changes), encoding="utf-8")
    return path


def test_a_policy_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read_policy(write_policy(tmp_path / "policy.json")) == POLICY


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"weights": {"device": 0.5}}, "weights"),
        ({"weights": {"device": float("nan")}}, "weights"),
        ({"weights": {"device": -1.0, "disk": 2.0}}, "weights"),
        ({"cache": 1}, "cache"),
        ({"activations": {"device": 0.5, "disk": 0.5}}, "one place"),
        ({"batch": 0}, "batch"),
        ({"batch": 512}, "256"),
        ({"batch": True}, "batch"),
        ({"num_batches": "many"}, "num_batches"),
        ({"prompt_rows": 0}, "prompt_rows"),
        ({"cache_format": "q5"}, "cache_format"),
        ({"attended": -1}, "attended"),
        ({"attention": "disk"}, "attention"),
        ({"colour": "green"}, "colour"),
    ],
)
def test_a_file_that_holds_no_policy_is_refused(
    changes: dict[str, object], told: str, tmp_path: Path
) -> None:
    with pytest.raises(RequestError, match=told) as refused:
        read_policy(write_policy(tmp_path / "policy.json", **changes))
    assert refused.value.hint


@pytest.mark.parametrize("content", ["", "[]", "{" * 9999, '{"best": {}}', '{"best": 3}', None])
def test_a_policy_file_that_is_no_object_is_refused(content: str | None, tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(RequestError, match="holds no policy"):
        read_policy(path)


def test_policies_that_the_engine_cannot_run_are_refused_and_not_searched(tmp_path: Path) -> None:
    plain = shape_config("vicuna-7b")
    check_policy(POLICY, plain, "cpu", has_disk=True)
    assert rules_of(plain, "cpu").may_offload_cache
    refused = [
        (POLICY, plain, False, "on a disk"),
        (replace(POLICY, cache=Shares(0.0, 1.0)), plain, True, "memory is the device"),
        (replace(POLICY, attention="memory"), plain, True, "anyhow"),
        (POLICY, shape_config("qwen3.5-4b"), True, "recurrent"),
    ]
    for policy, config, has_disk, told in refused:
        with pytest.raises(RequestError, match=told) as error:
            check_policy(policy, config, "cpu", has_disk=has_disk)
        assert error.value.hint
    assert not rules_of(shape_config("qwen3.5-4b"), "cpu").may_offload_cache
    assert not rules_of(plain, "cpu", has_adapter=True).may_offload_cache
