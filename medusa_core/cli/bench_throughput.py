"""`bench --throughput`: rate of a block of prompts under a policy, its overlap and forecast."""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from medusa_core.bench.step_race import OnTimed
from medusa_core.cli.plan_throughput import found_lines
from medusa_core.cli.throughput_case import ThroughputCase
from medusa_core.engine.batch_generate import answer_all
from medusa_core.errors import MedusaError, PlanError, RequestError
from medusa_core.loading.policy.policy_file import found_as_json, read_policy
from medusa_core.loading.policy.policy_search import PolicySearch
from medusa_core.loading.policy.result import FoundPolicy
from medusa_core.loading.target import Target
from medusa_core.messages import Generate, GenerationDone, Tier
from medusa_core.runtime.offload.layer_entries import NUM_BUFFERS
from medusa_core.runtime.runner.offload import OffloadRunner
from medusa_core.runtime.runner.offload_native import OffloadNativeRunner
from medusa_core.runtime.runner.runner import PlacedTree
from medusa_core.runtime.tree.shape import (
    TokenTree,
    TreeShape,
)
from medusa_core.speculation.tuning.row_policy import RowPolicy
from medusa_core.system.garbage import trim_heap

_ALONE_TOKENS = 6  # of one prompt: all steps take equally long
_FEW_STEPS = 4
_OVERLAP_ROWS = (1, 4, 8, 16, 32)


@dataclass(frozen=True, slots=True)
class ThroughputReport:
    """Measured rates of a block.

    Attributes:
        prompts: Prompts in the block.
        prompt_tokens: Mean tokens of a prompt.
        new_tokens: Tokens of each answer.
        tokens_per_s: Throughput of the block, with prefill.
        one_tokens_per_s: Throughput of one prompt at a time, loaded for a batch of one.
        over_one: `tokens_per_s` / `one_tokens_per_s`.
        forecast_tokens_per_s: Forecast of the cost model, from rates measured in the same run.
        over_forecast: `tokens_per_s` / `forecast_tokens_per_s`.
        overlap: Seconds of a step by rows, with overlapped loading.
        no_overlap: Seconds of a step by rows, without overlap.
        overlap_gain: `no_overlap` / `overlap`, by rows.
        layers_here: Layers on the device, for the block and for one prompt.
        offloaded_gib: GiB that a step loads.
        policy: The policy and its forecast.
        weights_first_tokens_per_s: Throughput with cache and activations on the device; None if
            the policy has them there, or they do not fit.
        over_weights_first: `tokens_per_s` / `weights_first_tokens_per_s`.
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
    policy: dict[str, Any]
    weights_first_tokens_per_s: float | None = None
    over_weights_first: float | None = None


def run_throughput(args: argparse.Namespace, report_line: OnTimed) -> dict[str, Any]:
    """Measure, print, and return the report.

    Raises:
        RequestError: The arguments are invalid.
        MedusaError: The model can't be loaded.
    """
    if not (args.shape or args.model) or not 2 <= args.throughput <= 256:
        raise RequestError(
            "A block needs a shape or a model, and 2 to 256 prompts.",
            "Say --shape vicuna-7b --throughput 32.",
        )
    if args.shape:
        args.lm_head_quant = args.lm_head_quant or args.quant
    given = None if args.policy is None else read_policy(args.policy)
    case = ThroughputCase.of(args)
    searching = case.policy_search(report_line)
    forecast = None if given is None else searching.forecast(given)
    report_line("measuring rates and loading for the block")
    found, block = case.load_best(searching, forecast)
    report_line("\n".join(found_lines(case.config.num_layers, found)))
    overlap = _steps(block, found, report_line)
    report_line(f"answering {args.throughput} prompts, {found.policy.num_sequences} at once")
    tokens_per_s = _throughput(block, case.requests, found.policy.num_sequences)
    here, offloaded_gib = _here(block)
    del block
    _free()
    report_line("loading for one prompt at a time")
    _, one = case.load_best(searching.one_prompt())
    one_rate = _rate_alone(one, case.requests[0], case.new_tokens)
    one_here = _here(one)[0]
    del one
    _free()
    report = ThroughputReport(
        prompts=args.throughput,
        prompt_tokens=case.prompt_tokens,
        new_tokens=case.new_tokens,
        tokens_per_s=tokens_per_s,
        one_tokens_per_s=one_rate,
        over_one=tokens_per_s / one_rate,
        forecast_tokens_per_s=found.forecast.tokens_per_s,
        over_forecast=tokens_per_s / found.forecast.tokens_per_s,
        overlap=overlap[0],
        no_overlap=overlap[1],
        overlap_gain={rows: overlap[1][rows] / overlap[0][rows] for rows in overlap[0]},
        layers_here=(here, one_here),
        offloaded_gib=offloaded_gib,
        policy=found_as_json(found),
    )
    if found.policy.cache.below:
        report = _beside_weights_first(case, searching, report, report_line)
    report_line(_text(report))
    return asdict(report)


def _beside_weights_first(
    case: ThroughputCase, searching: PolicySearch, report: ThroughputReport, report_line: OnTimed
) -> ThroughputReport:
    """Add the throughput with cache and activations on the device."""
    report_line("loading with cache and activations on the device")
    try:
        first, target = case.load_best(searching.resident_cache())
    except PlanError as error:
        report_line(error.message)
        return report
    report_line("\n".join(found_lines(case.config.num_layers, first)))
    rate = _estimate_throughput(target, case, first.policy.num_sequences)
    del target
    _free()
    over = report.tokens_per_s / rate
    return replace(report, weights_first_tokens_per_s=rate, over_weights_first=over)


def _free() -> None:
    """Return freed memory to the system, so that the next load may use it."""
    gc.collect()
    trim_heap()


def _throughput(target: Target, requests: Sequence[Generate], max_batch: int) -> float:
    """Answer all requests and measure the throughput. [tokens/s]"""
    row_policy, num_tokens = RowPolicy(target), 0
    started = time.perf_counter()
    for answered in answer_all(target, requests, row_policy, max_batch):
        num_tokens += len(_done(answered.done).token_ids)
    return num_tokens / (time.perf_counter() - started)


def _estimate_throughput(target: Target, case: ThroughputCase, max_batch: int) -> float:
    """Estimate the throughput from the prefill and a few steps. [tokens/s]"""
    some = case.requests[:max_batch]
    started, ends = time.perf_counter(), list[float]()  # of full steps, and of the one before

    def after_step(num_tokens: int) -> None:
        """Note when each step ends; stop after a few of full size."""
        if num_tokens < len(some):
            ends.clear()
        ends.append(time.perf_counter())
        if len(ends) > _FEW_STEPS:
            raise _Enough

    num_tokens = 0
    try:
        for answered in answer_all(target, some, RowPolicy(target), max_batch, after_step):
            num_tokens += len(_done(answered.done).token_ids)
    except _Enough:
        rounds = len(case.requests) / len(some)
        step_s = (ends[-1] - ends[0]) / _FEW_STEPS
        block_s = ends[0] - started + (case.new_tokens - 1) * step_s
        return len(case.requests) * case.new_tokens / (rounds * block_s)
    return num_tokens / (time.perf_counter() - started)


class _Enough(Exception):  # noqa: N818 - nothing went wrong
    """Stops a measurement that has enough steps."""


def _rate_alone(target: Target, request: Generate, new_tokens: int) -> float:
    """Estimate the throughput of one prompt from its prefill and a few steps."""
    few = replace(request, settings=replace(request.settings, max_new_tokens=_ALONE_TOKENS))
    (answered,) = answer_all(target, [few], RowPolicy(target), 1)
    done = _done(answered.done)
    step_s = done.decode_s / (len(done.token_ids) - 1)
    return new_tokens / (done.prefill_s + (new_tokens - 1) * step_s)


def _done(done: GenerationDone | MedusaError) -> GenerationDone:
    """Return the end of an answer; raise its error."""
    if isinstance(done, MedusaError):
        raise done
    return done


def _steps(
    target: Target, found: FoundPolicy, report_line: OnTimed
) -> tuple[dict[str, float], dict[str, float]]:
    """Measure steps with and without overlap; empty for policies with an offloaded cache."""
    runner, count = target.runner, found.policy.num_sequences
    if found.policy.cache.below or not isinstance(runner, OffloadRunner | OffloadNativeRunner):
        return {}, {}
    steps: list[dict[str, float]] = []
    for num_buffers in (NUM_BUFFERS, 1):
        runner.tiers.weights.set_buffers(num_buffers)
        report_line("steps " + ("with overlap" if num_buffers > 1 else "without overlap"))
        rows = [number for number in _OVERLAP_ROWS if number <= count]
        steps.append({str(number): _step_s(target, number) for number in rows})
    runner.tiers.weights.set_buffers(NUM_BUFFERS)
    return steps[0], steps[1]


@torch.inference_mode()
def _step_s(target: Target, count: int) -> float:
    """Return the least seconds of a step of `count` conversations."""
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
    """Return the number of layers on the device, and the GiB that a step loads."""
    placement = target.plan.placement
    if placement is None:
        return target.config.num_layers, 0.0
    return len(placement.layers(Tier.DEVICE)), placement.offloaded_bytes / (1 << 30)


def _text(report: ThroughputReport) -> str:
    """Format the report."""
    lines = [
        f"{report.prompts} prompts at once: {report.tokens_per_s:.2f} tokens/s",
        f"one at a time: {report.one_tokens_per_s:.3f} tokens/s; {report.over_one:.1f} × as many",
        f"forecast {report.forecast_tokens_per_s:.2f}; measured {report.over_forecast:.2f} of it",
        f"layers here {report.layers_here[0]}; a step brings {report.offloaded_gib:.2f} GiB",
    ]
    if report.weights_first_tokens_per_s is not None:
        rate, over = report.weights_first_tokens_per_s, report.over_weights_first
        lines.append(f"cache on the device: {rate:.2f} tokens/s; {over:.2f} × as many")
    if report.overlap_gain:
        lines.append(f"{'rows':>6}{'overlap':>12}{'without':>12}{'gain':>8}")
    for rows, gain in report.overlap_gain.items():
        times = f"{report.overlap[rows]:>10.2f} s{report.no_overlap[rows]:>10.2f} s"
        lines.append(f"{rows:>6}{times}{gain:>8.2f}")
    return "\n".join(lines)
