"""Steps of a target of which some layers lie on a disk: their time, the disk's, and memory."""

from __future__ import annotations

import resource
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from medusa_core.bench.step_race import LENGTH, ROWS, OnTimed, OwnSteps
from medusa_core.errors import RequestError
from medusa_core.loading.memory.budget import GIB
from medusa_core.loading.target import Target
from medusa_core.messages import Tier
from medusa_core.runtime.offload.layer_file import (
    PIECE_BYTES,
    SUFFIX,
    open_direct,
)
from medusa_core.runtime.offload.memory import page_buffer

_TURNS = 2
_PLAIN_STEPS = 3  # of one row: the disk's rate is theirs


@dataclass(frozen=True, slots=True)
class OffloadSteps:
    """Measured times of steps, and the bytes that they read.

    Attributes:
        ours: Seconds of a step, by its rows; medians.
        peak_gib: The most that the process has held of memory so far.
        read_gb_per_s: Bytes of the layers that a step of one row brings ÷ its seconds.
        plain_reader_gb_per_s: Of the same file, read by nothing but a loop; mean of one run before
            the steps and one behind them.
        layers_here: Layers on the device.
        num_layers: All of them.
        offloaded_gib: What a step brings.
        budget_gib: Of the device's memory, what might be taken.
        planned_gib: What was planned of it.
        prefill_s: Seconds to read 512 tokens.
        load_s: Seconds that the load took.
    """

    ours: dict[str, float]
    peak_gib: float
    read_gb_per_s: float
    plain_reader_gb_per_s: float
    layers_here: int
    num_layers: int
    offloaded_gib: float
    budget_gib: float
    planned_gib: float
    prefill_s: float
    load_s: float


def measure_offload(
    target: Target, folder: Path | None, load_s: float, on_timed: OnTimed
) -> OffloadSteps:
    """Measure steps of all row counts after 512 tokens.

    Args:
        target: A loaded target with room for 576 tokens.
        folder: Where its layers lie on a disk.
        load_s: Seconds that loading it took.
        on_timed: Called with what is being measured.

    Raises:
        RequestError: No layer lies on a disk.
    """
    placement = target.plan.placement
    if placement is None or Tier.DISK not in placement.tiers or folder is None:
        raise RequestError(
            "All layers have room in memory: nothing is streamed.", "Ask for less --memory-gib."
        )
    file = max(folder.glob(f"*{SUFFIX}"), key=lambda path: path.stat().st_atime)
    steps = OwnSteps(target)
    on_timed(f"reading {LENGTH} tokens")
    prefill_s = steps.prefill_s()
    plain = [_plain_reader(file)]
    seconds: dict[int, list[float]] = {rows: [] for rows in ROWS}
    steps.step_s(1)
    for turn in range(_TURNS):
        for rows in ROWS:
            on_timed(f"turn {turn + 1} of {_TURNS}: {rows} rows")
            count = _PLAIN_STEPS if rows == 1 else 1
            seconds[rows] += [steps.step_s(rows) for _ in range(count)]
    plain.append(_plain_reader(file))
    medians = {str(rows): statistics.median(measured) for rows, measured in seconds.items()}
    plan = target.plan
    return OffloadSteps(
        ours=medians,
        peak_gib=peak_bytes() / GIB,
        read_gb_per_s=placement.offloaded_bytes / medians["1"] / 1e9,
        plain_reader_gb_per_s=statistics.fmean(plain),
        layers_here=len(placement.layers(Tier.DEVICE)),
        num_layers=len(placement.tiers),
        offloaded_gib=placement.offloaded_bytes / GIB,
        budget_gib=plan.total_bytes / GIB,
        planned_gib=(plan.total_bytes - plan.free_bytes) / GIB,
        prefill_s=prefill_s,
        load_s=load_s,
    )


def streamed_table(found: OffloadSteps) -> str:
    """Format the figures for people."""
    one = found.ours["1"]
    rates = (found.read_gb_per_s, found.plain_reader_gb_per_s)
    took = (found.prefill_s, found.load_s)
    lines = [f"{'rows':>6}{'ours':>12}   over one row"]
    lines += [f"{rows:>6}{s * 1e3:9.1f} ms{s / one:10.2f}" for rows, s in found.ours.items()]
    lines += [
        "",
        f"{found.layers_here} of {found.num_layers} layers here",
        f"a step brings {found.offloaded_gib:.2f} GiB",
        "reading: {:.2f} GB/s; a plain reader {:.2f} GB/s".format(*rates),
        f"peak {found.peak_gib:.2f} GiB; budget {found.budget_gib:.2f} GiB",
        f"of the budget {found.planned_gib:.2f} GiB are planned",
        f"reading {LENGTH} tokens: {{:.1f}} s; loaded in {{:.1f}} s".format(*took),
    ]
    return "\n".join(lines)


def _plain_reader(path: Path) -> float:
    """GB a second of a loop that reads a file past the page cache."""
    buffer = page_buffer(PIECE_BYTES).numpy().data
    with open_direct(path) as file:
        size = 0
        started = time.perf_counter()
        while count := file.readinto(buffer):
            size += count
        return size / (time.perf_counter() - started) / 1e9


def peak_bytes() -> int:
    """Return the peak resident memory of this process."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
