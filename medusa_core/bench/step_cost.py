"""Time the parts of a step, and compare its memory bandwidth with a plain copy's.

T(n) is measured as in calibration; the parts of a step are means over some answers. Bytes are those
that a step must read at least once: all weights, the heads that it runs, and the cache.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from medusa_core.engine.direct import generate
from medusa_core.heads.medusa import MedusaHeads
from medusa_core.heads.ranked import Ranked
from medusa_core.loading.memory.estimate import read_bytes
from medusa_core.loading.target import Target
from medusa_core.messages import ChatMessage, GenerateSettings, Role, StepDone
from medusa_core.speculation.drafters.sources.heads_source import medusa_heads
from medusa_core.speculation.tuning.calibration import measure_costs
from medusa_core.speculation.tuning.row_policy import RowPolicy
from medusa_core.speculation.tuning.step_costs import StepCosts
from medusa_core.system import cuda

_COPIED_BYTES = 256 << 20
_COPIES = 7
_ANSWERS = 5


@dataclass(frozen=True, slots=True)
class Parts:
    """Mean microseconds of a step's parts.

    Attributes:
        rows: Mean rows of a tree.
        tokens_per_step: Mean acceptance length.
        draft_us: Drafting: the heads, and building the tree.
        verify_us: The target's forward pass, logits included.
        accept_us: The acceptance rule.
        commit_us: Commit of the accepted KV rows.
        step_us: The whole step.
        around_us: Everything but the forward passes of target and heads: rule, cache, text, events,
            and Python around the drafter.
        around_share: `around_us` ÷ `step_us`.
    """

    rows: float
    tokens_per_step: float
    draft_us: float
    verify_us: float
    accept_us: float
    commit_us: float
    step_us: float
    around_us: float
    around_share: float


@dataclass(frozen=True, slots=True)
class StepReport:
    """Costs of a step.

    Attributes:
        costs: T(n) and draft costs.
        parts: Mean parts of a step by mode.
        weights_bytes: Bytes of the weights that a step reads.
        cache_bytes: Bytes of the KV cache that it reads at the shortest measured length.
        copy_gb_per_s: Bandwidth of a plain copy, reads and writes together.
        reached_gb_per_s: Bytes of a step of one row ÷ its seconds.
        roofline: `reached_gb_per_s` ÷ `copy_gb_per_s`; above 1 the weights fit the CPU's cache.
    """

    costs: StepCosts
    parts: dict[str, Parts]
    weights_bytes: int
    cache_bytes: int
    copy_gb_per_s: float
    reached_gb_per_s: float
    roofline: float


def measure_step_report(target: Target, modes: Sequence[str], num_tokens: int) -> StepReport:
    """Measure T(n), the parts of steps, and bandwidths.

    Args:
        target: A loaded target.
        modes: Drafters whose steps are timed part by part.
        num_tokens: Length of the answers.
    """
    costs = measure_costs(target)
    row_policy = RowPolicy(target, costs)
    length = costs.lengths[0]
    cache_bytes = length * target.caches.row_bytes
    weights = read_bytes(target.config, target.formats, rows=1)
    reached = (weights + cache_bytes) / costs.step_s(1, length) / 1e9
    copied = copy_gb_per_s(target.precision.device)
    return StepReport(
        costs=costs,
        parts={mode: _parts(target, row_policy, mode, num_tokens) for mode in modes},
        weights_bytes=weights,
        cache_bytes=cache_bytes,
        copy_gb_per_s=copied,
        reached_gb_per_s=reached,
        roofline=reached / copied,
    )


def step_table(report: StepReport) -> str:
    """Format the report for a terminal."""
    costs = report.costs
    lines = [f"{'rows':>6}" + "".join(f"{f'T(n) at {length}':>16}" for length in costs.lengths)]
    for index, rows in enumerate(costs.rows):
        cells = [f"{seconds[index] * 1e6:13.0f} us" for seconds in costs.seconds]
        lines.append(f"{rows:6}" + "".join(cells))
    for name, source_costs in costs.source_costs.items():
        drafts = ", ".join(f"{seconds * 1e6:.0f}" for seconds in source_costs.greedy)
        lines.append(f"drafting by {name}, one level to all: {drafts} us")
    lines.append("")
    titles = ("rows", "tau", "draft", "verify", "accept", "commit", "step", "around", "share")
    lines.append(f"{'us of a step':14}" + "".join(f"{title:>9}" for title in titles))
    for mode, parts in report.parts.items():
        micros = (parts.draft_us, parts.verify_us, parts.accept_us, parts.commit_us, parts.step_us)
        lines.append(
            f"{mode:14}{parts.rows:9.1f}{parts.tokens_per_step:9.2f}"
            + "".join(f"{value:9.0f}" for value in (*micros, parts.around_us))
            + f"{parts.around_share:9.2f}"
        )
    lines += ["", _bandwidth(report)]
    return "\n".join(lines)


def _bandwidth(report: StepReport) -> str:
    """The sentence about bytes and bandwidth."""
    return (
        f"a step of one row reads {report.weights_bytes / 1e6:.1f} MB of weights and "
        f"{report.cache_bytes / 1e6:.1f} MB of cache: {report.reached_gb_per_s:.1f} GB/s; "
        f"a copy moves {report.copy_gb_per_s:.1f} GB/s; {report.roofline:.2f} of it"
    )


def as_json(report: StepReport) -> dict[str, object]:
    """Return the fields of `--json`."""
    return asdict(report)


def _parts(target: Target, row_policy: RowPolicy, mode: str, num_tokens: int) -> Parts:
    """Mean parts of a step of a drafter, after some answers from which its row policy learned."""
    settings = GenerateSettings(drafter=mode, max_new_tokens=num_tokens)
    own = medusa_heads(target)
    heads = None if own is None else TimedHeads(own)
    target = replace(
        target,
        heads=heads or target.heads,
        eos_token_ids=frozenset(),  # a ban of EOS would cost time itself
    )
    messages = (ChatMessage(Role.USER, "Tell me a story about a village by the sea."),)
    learning = RowPolicy(target, row_policy.costs)
    for _ in range(_ANSWERS):  # calibrates which trees pay
        generate(target, messages, settings, row_policy=learning)
    if heads is not None:
        heads.seconds = 0.0
    decoded: list[StepDone] = []
    for _ in range(_ANSWERS):
        steps: list[StepDone] = []
        done = generate(target, messages, settings, on_step=steps.append, row_policy=learning)
        decoded += steps[1:]
    parts = zip(*((*step.times[:4], step.step_s) for step in decoded), strict=True)
    names = ("draft", "verify", "accept", "commit", "step")
    means = {name: statistics.fmean(s) * 1e6 for name, s in zip(names, parts, strict=True)}
    heads_us = 0.0 if heads is None else heads.seconds / len(decoded) * 1e6
    around = means["step"] - means["verify"] - heads_us
    return Parts(
        rows=statistics.fmean(step.num_rows for step in decoded),
        tokens_per_step=done.mean_acceptance_length,
        **{f"{name}_us": value for name, value in means.items()},
        around_us=around,
        around_share=around / means["step"],
    )


class TimedHeads(MedusaHeads):
    """A target's heads with a clock.

    Attributes:
        seconds: Time of all calls so far.
    """

    def __init__(self, heads: MedusaHeads) -> None:
        vars(self).update(vars(heads))
        self.seconds = 0.0

    def ranked(self, *args: Any, **options: Any) -> Ranked:
        """Time a call; see `MedusaHeads.ranked`."""
        started = time.perf_counter()
        ranked = super().ranked(*args, **options)
        self.seconds += time.perf_counter() - started
        return ranked


def copy_gb_per_s(device: torch.device) -> float:
    """Return the bandwidth of a copy of a large buffer, reads and writes together."""
    source = torch.zeros(_COPIED_BYTES, dtype=torch.uint8, device=device)
    to = torch.empty_like(source)
    seconds = []
    for _ in range(_COPIES):
        cuda.wait(device)
        started = time.perf_counter()
        to.copy_(source)
        cuda.wait(device)
        seconds.append(time.perf_counter() - started)
    return 2 * _COPIED_BYTES / statistics.median(seconds[1:]) / 1e9
