"""The cost model: what each part of passes takes, for many layouts at once.

Weights come once a pass; cached rows below the device come as often as they are attended to, or
attention is computed where they lie. All this runs beside computing. Activations below the device
go and come between two computations. So passes take what the slowest of these streams takes, each
slowed down by what runs beside it.

Source: Sheng et al., "FlexGen" (2023), appendix A.3, for streams that run at the same time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from medusa_core.memory.policy.layouts import Counts, Layouts
from medusa_core.memory.policy.machine import MachineRates, seconds, seconds_at
from medusa_core.memory.policy.work import BatchWork, Passes
from medusa_core.messages import Tier

Seconds = NDArray[np.float64]
COMPUTING, READING = "computing", "reading from disk"


@dataclass(frozen=True, slots=True)
class Sides:
    """Choices beside a layout.

    Attributes:
        states: Where what goes from one layer to the next lies.
        attention: Where attention to rows below the device is computed.
    """

    states: Tier = Tier.DEVICE
    attention: Tier = Tier.DEVICE


@dataclass(frozen=True, slots=True)
class Moved:
    """Bytes that passes move. [n]

    Attributes:
        weights: Of layers that come.
        weights_disk: Those of them that come from the disk.
        rows: Of cached rows that come.
        rows_disk: Those of them that come from the disk.
        weights_reads: Reads of the disk for layers.
        rows_reads: Reads of the disk for cached rows.
        attended_below: Of cached rows that are attended to where they lie.
        fresh: Of new rows that go below.
        fresh_disk: Those of them that go to the disk.
        states: Of activations that go, and come back.
    """

    weights: Seconds
    weights_disk: Seconds
    rows: Seconds
    rows_disk: Seconds
    weights_reads: Seconds
    rows_reads: Seconds
    attended_below: Seconds
    fresh: Seconds
    fresh_disk: Seconds
    states: float


def moved(work: BatchWork, where: Layouts, sides: Sides, passes: Passes) -> Moved:
    """What passes move."""
    read, fresh = passes.rows_read * work.row_bytes, passes.num_rows * work.row_bytes
    weights, is_brought = passes.num_passes * work.layer_bytes, sides.attention is Tier.DEVICE
    goes = sides.states is not Tier.DEVICE
    return Moved(
        weights=_times(where.weights_below, weights),
        weights_disk=_times(where.weights_disk, weights),
        rows=_times(where.cache_below, read * is_brought),
        rows_disk=_times(where.cache_disk, read),
        weights_reads=_times(where.weights_disk, passes.num_passes),
        rows_reads=_times(where.cache_disk, passes.num_reads),
        attended_below=_times(where.cache_below, read * (not is_brought)),
        fresh=_times(where.cache_below, fresh),
        fresh_disk=_times(where.cache_disk, fresh),
        states=goes * work.num_layers * float(passes.num_rows * work.state_bytes),
    )


def streams_s(
    work: BatchWork, machine: MachineRates, where: Layouts, sides: Sides, passes: Passes
) -> dict[str, Seconds]:
    """Seconds of each stream of passes through all layers. [n] each"""
    of, none = moved(work, where, sides, passes), np.zeros(len(where))
    states_s = of.states * (1 / machine.to_device + 1 / machine.from_device)
    if sides.states is Tier.DISK:
        states_s += of.states * (1 / machine.from_disk + 1 / machine.to_disk)
    weights_s, rows_s = disk_s(of, machine)
    copied = of.rows_disk / machine.copied  # from where they were read into their places
    computing = none + computing_s(work, machine, passes)
    computing += of.attended_below / machine.cache_in_memory
    computing += copied / machine.num_cores + of.fresh_disk / machine.copied + states_s
    computing += of.rows_reads * machine.visit_s  # entering and leaving them
    return {
        "link to the device": (of.weights + of.rows) / machine.to_device + none,
        "link from the device": of.fresh / machine.from_device + none,
        READING: weights_s + rows_s,
        "bringing cached rows": rows_s + copied,
        "writing to disk": of.fresh_disk / machine.to_disk,
        COMPUTING: computing,
    }


def disk_s(of: Moved, machine: MachineRates) -> tuple[Seconds, Seconds]:
    """Seconds of reading the disk alone: for layers, and for cached rows. [n], [n]"""
    return (
        of.weights_disk / machine.from_disk + of.weights_reads * machine.read_s,
        of.rows_disk / machine.from_disk + of.rows_reads * machine.read_s,
    )


def computing_s(work: BatchWork, machine: MachineRates, passes: Passes) -> float:
    """Seconds of computing alone, attention to rows on the device included."""
    at_once = passes.num_rows / passes.num_visits
    layer = passes.num_visits * (machine.visit_s + seconds_at(machine.layer_s, at_once))
    attended = seconds(passes.rows_read * work.row_bytes, machine.cache_on_device)
    among = seconds(passes.row_pairs * work.row_bytes, machine.cache_of_prompts)
    head = passes.num_passes * seconds_at(machine.head_s, passes.num_scored)
    return work.num_layers * (layer + attended + among) + head


def together_s(streams: Mapping[str, Seconds], machine: MachineRates) -> dict[str, Seconds]:
    """Seconds until each stream has ended where all begin at the same time.

    Computing and what moves beside it share a processor and its memory: both are slower until one
    of them has ended.

    Args:
        streams: Seconds of each alone. [n] each
        machine: Whose rates say how much slower.
    """
    computing = streams[COMPUTING]
    beside = {name: alone for name, alone in streams.items() if name != COMPUTING}
    moving = np.stack(list(beside.values())).max(axis=0)
    computing_pace, moving_pace = machine.computing_beside, machine.reading_beside
    both = np.minimum(computing / computing_pace, moving / moving_pace)
    longer = 1 + (1 - moving_pace) * both / np.where(moving > 0, moving, 1)
    found = {name: alone * longer for name, alone in beside.items()}
    return found | {COMPUTING: computing + (1 - computing_pace) * both}


def total_s(streams: Mapping[str, Seconds], machine: MachineRates, overlaps: bool) -> Seconds:
    """Seconds of passes: until the last stream has ended, or of one after the other."""
    if not overlaps:
        alone: Seconds = np.stack(list(streams.values())).sum(axis=0)
        return alone
    found: Seconds = np.stack(list(together_s(streams, machine).values())).max(axis=0)
    return found


def _times(counts: Counts, each: float) -> Seconds:
    return counts.astype(np.float64) * each
