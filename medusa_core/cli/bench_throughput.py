"""A block of prompts through layers that come from below: its rate, overlap, and the forecast."""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from medusa_core.bench.disk_offload import OffloadRow, accelerate_row
from medusa_core.bench.random_target import random_target
from medusa_core.bench.step_race import OnTimed
from medusa_core.cli.load_arguments import (
    disk_of,
    options_of,
    placing_of,
    ready,
)
from medusa_core.engine.batch.room import sessions_for
from medusa_core.engine.several import answer_all
from medusa_core.errors import MedusaError, RequestError
from medusa_core.loading.target import Target
from medusa_core.memory.heap import trim_heap
from medusa_core.memory.policy.found import BatchForecast
from medusa_core.memory.policy.here import (
    MEASURED,
    PolicyRequest,
    Rates,
    machine_for,
    work_of,
)
from medusa_core.memory.policy.rules import Rules
from medusa_core.memory.policy.search import (
    solve,
)
from medusa_core.memory.policy.work import BatchBlock
from medusa_core.memory.probe import below_device, live_budget
from medusa_core.memory.tiers import limited
from medusa_core.messages import ChatMessage, Generate, GenerateSettings, GenerationDone, Role, Tier
from medusa_core.runtime.offload.layer_stream import NUM_BUFFERS
from medusa_core.runtime.runner.offload import OffloadRunner
from medusa_core.runtime.runner.offload_native import OffloadNativeRunner
from medusa_core.runtime.runner.runner import PlacedTree
from medusa_core.runtime.tree.shape import (
    TokenTree,
    TreeShape,
)
from medusa_core.speculation.tuning.tuner import Tuner
from medusa_core.system.files.measurement_files import MeasurementFiles
from medusa_core.system.resources import calibrations_dir

_PEER_TOKENS = 8
_ALONE_TOKENS = 6  # of one prompt at a time: every step takes as long
_OVERLAP_ROWS = (1, 4, 8, 16, 32)
_WORDS = "the quick brown fox jumps over the lazy dog and runs into the green forest"


@dataclass(frozen=True, slots=True)
class ThroughputReport:
    """What a block brings.

    Attributes:
        prompts: Prompts in the block.
        prompt_tokens: Of each, mean.
        new_tokens: Of each answer.
        tokens_per_s: Of all answers, reading prompts included.
        one_tokens_per_s: Of one prompt at a time, likewise: a model loaded for one.
        over_one: The one ÷ the other.
        forecast_tokens_per_s: By the cost model, from rates measured in the same run.
        over_forecast: Measured ÷ forecast.
        overlap: Seconds of a step by its rows, loading and computing at once.
        no_overlap: Likewise, one after the other.
        overlap_gain: The second ÷ the first, by rows.
        layers_here: Layers on the device, with the block and with one prompt.
        offloaded_gib: What a step brings.
        accelerate: Accelerate's disk offload in 16 bits, one prompt; None unless it is asked for.
    """

    prompts: int
    prompt_tokens: float
    new_tokens: int
    tokens_per_s: float
    one_tokens_per_s: float
    over_one: float
    forecast_tokens_per_s: float
    over_forecast: float
    overlap: dict[str, float]
    no_overlap: dict[str, float]
    overlap_gain: dict[str, float]
    layers_here: tuple[int, int]
    offloaded_gib: float
    accelerate: OffloadRow | None = None


def run_throughput(args: argparse.Namespace, report_line: OnTimed) -> dict[str, Any]:
    """Measure, print, and return the report.

    Raises:
        RequestError: The arguments make no sense.
        MedusaError: It can't be loaded.
    """
    count, new_tokens = args.throughput, args.max_new_tokens
    if not args.shape or not 2 <= count <= 256:
        raise RequestError(
            "A block needs a shape and 2 to 256 prompts.", "Say --shape vicuna-7b --throughput 32."
        )
    disk = disk_of(args)
    if disk is None and "accelerate" in args.peers:
        raise RequestError("Accelerate's layers need a disk.", "Name a folder with --tier-disk.")
    args.lm_head_quant = args.lm_head_quant or args.quant
    requests = _requests(count, new_tokens)
    report_line("loading for the block")
    block = _target(args, requests, count)
    prompt_tokens = statistics.fmean(map(len, _prompts(block, requests)))
    report_line("measuring rates")
    policy = _forecast(args, block, count, round(prompt_tokens), new_tokens, report_line)
    overlap = _steps(block, count, report_line)
    report_line(f"answering {count} prompts at once")
    tokens_per_s = _rate(block, requests, count)
    here, offloaded_gib = _here(block)
    del block
    gc.collect()
    trim_heap()
    report_line("loading for one prompt at a time")
    one = _target(args, requests[:1], 1)
    one_rate = _rate_alone(one, requests[0], new_tokens)
    report = ThroughputReport(
        prompts=count,
        prompt_tokens=prompt_tokens,
        new_tokens=new_tokens,
        tokens_per_s=tokens_per_s,
        one_tokens_per_s=one_rate,
        over_one=tokens_per_s / one_rate,
        forecast_tokens_per_s=policy.tokens_per_s,
        over_forecast=tokens_per_s / policy.tokens_per_s,
        overlap=overlap[0],
        no_overlap=overlap[1],
        overlap_gain={rows: overlap[1][rows] / overlap[0][rows] for rows in overlap[0]},
        layers_here=(here, _here(one)[0]),
        offloaded_gib=offloaded_gib,
    )
    if disk is not None and "accelerate" in args.peers:
        del one
        gc.collect()
        memory = round(args.memory_gib * (1 << 30))
        row = accelerate_row(args.shape, disk, memory, _PEER_TOKENS, report_line)
        report = replace(report, accelerate=row)
    report_line(_text(report))
    return asdict(report)


def _requests(count: int, new_tokens: int) -> list[Generate]:
    settings = GenerateSettings(drafter="none", rule="greedy", max_new_tokens=new_tokens)
    texts = (f"{_WORDS}, number {number}" for number in range(count))
    request = ((ChatMessage(Role.USER, text),) for text in texts)
    return [Generate(str(n), "", messages, settings) for n, messages in enumerate(request)]


def _prompts(target: Target, requests: Sequence[Generate]) -> list[list[int]]:
    encode, render = target.tokenizer.encode_prompt, target.template.render
    return [encode(render(request.messages)) for request in requests]


def _target(args: argparse.Namespace, requests: Sequence[Generate], together: int) -> Target:
    """Random weights with room for so many of the requests."""
    new_tokens = requests[0].settings.max_new_tokens
    length = 48 + new_tokens  # more than the prompts have
    sessions = sessions_for([length] * together, together, length)
    options = replace(options_of(args), context_tokens=length, sessions=sessions)
    return ready(args, random_target(args.shape, options, 0))


def _forecast(
    args: argparse.Namespace,
    target: Target,
    count: int,
    prompt_tokens: int,
    new_tokens: int,
    report_line: OnTimed,
) -> BatchForecast:
    """What the cost model expects of this block."""
    request = PolicyRequest(
        target.config, target.formats, target.precision, count, prompt_tokens, new_tokens
    )
    budget = limited(live_budget(args.device), args.memory_gib)
    rates = Rates(MeasurementFiles(calibrations_dir()), report_line, MEASURED)
    machine = machine_for(request, budget, below_device(placing_of(args)), rates)
    # What is loaded already is free to be taken by what is planned.
    room = round(args.memory_gib * (1 << 30)) if args.memory_gib else machine.device_bytes
    machine = replace(machine, device_bytes=max(machine.device_bytes, room))
    rows = target.chunk_rows
    found = solve(work_of(request), BatchBlock(count, 1, rows, rows), machine, Rules(False))
    if found is None:
        raise RequestError("The cost model finds no room for this block.", "Give it more memory.")
    return found.forecast


def _rate(target: Target, requests: Sequence[Generate], together: int) -> float:
    """Tokens a second of all answers."""
    tuner, num_tokens = Tuner(target), 0
    started = time.perf_counter()
    for answered in answer_all(target, requests, tuner, together):
        num_tokens += len(_done(answered.done).token_ids)
    return num_tokens / (time.perf_counter() - started)


def _rate_alone(target: Target, request: Generate, new_tokens: int) -> float:
    """Tokens a second of one prompt: its first token, then steps that all take as long."""
    few = replace(request, settings=replace(request.settings, max_new_tokens=_ALONE_TOKENS))
    (answered,) = answer_all(target, [few], Tuner(target), 1)
    done = _done(answered.done)
    step_s = done.decode_s / (len(done.token_ids) - 1)
    return new_tokens / (done.prefill_s + (new_tokens - 1) * step_s)


def _done(done: GenerationDone | MedusaError) -> GenerationDone:
    if isinstance(done, MedusaError):
        raise done
    return done


def _steps(
    target: Target, count: int, report_line: OnTimed
) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds of steps with loading beside computing, and without."""
    runner = target.runner
    if not isinstance(runner, OffloadRunner | OffloadNativeRunner):
        return {}, {}
    found: list[dict[str, float]] = []
    for num_buffers in (NUM_BUFFERS, 1):
        runner.tiers.weights.read_ahead(num_buffers)
        report_line("steps " + ("with overlap" if num_buffers > 1 else "without overlap"))
        rows = [number for number in _OVERLAP_ROWS if number <= count]
        found.append({str(number): _step_s(target, number) for number in rows})
    runner.tiers.weights.read_ahead(NUM_BUFFERS)
    return found[0], found[1]


@torch.inference_mode()
def _step_s(target: Target, count: int) -> float:
    """The least seconds of a few steps of so many conversations."""
    root = TokenTree(TreeShape.root_only(), (1,))
    caches = [target.allocate_cache(32) for _ in range(count)]
    for kv in caches:
        kv.fill(24)
    placed = [PlacedTree(root, kv) for kv in caches]
    times = []
    for _ in range(2):
        started = time.perf_counter()
        target.runner.verify(*placed)
        times.append(time.perf_counter() - started)
    for kv in caches:
        target.caches.release(kv)
    return min(times)


def _here(target: Target) -> tuple[int, float]:
    """Layers on the device, and GiB that a step brings."""
    placement = target.plan.placement
    if placement is None:
        return target.config.num_layers, 0.0
    return len(placement.layers(Tier.DEVICE)), placement.offloaded_bytes / (1 << 30)


def _text(report: ThroughputReport) -> str:
    """For people."""
    lines = [
        f"{report.prompts} prompts at once: {report.tokens_per_s:.2f} tokens/s",
        f"one at a time: {report.one_tokens_per_s:.3f} tokens/s; {report.over_one:.1f} × as many",
        f"forecast {report.forecast_tokens_per_s:.2f}; measured {report.over_forecast:.2f} of it",
        f"layers here {report.layers_here[0]}; a step brings {report.offloaded_gib:.2f} GiB",
        f"{'rows':>6}{'overlap':>12}{'without':>12}{'gain':>8}",
    ]
    for rows, gain in report.overlap_gain.items():
        times = f"{report.overlap[rows]:>10.2f} s{report.no_overlap[rows]:>10.2f} s"
        lines.append(f"{rows:>6}{times}{gain:>8.2f}")
    if (row := report.accelerate) is not None:
        note = row.note or f"{row.tokens_per_s:.3f} tokens/s, {row.layers_here} layers in memory"
        lines.append(f"accelerate, disk offload in 16 bits, one prompt: {note}")
    return "\n".join(lines)
