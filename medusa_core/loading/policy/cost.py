"""The cost model: seconds of each part of a pass, for many layouts at once.

Weights are transferred once a pass. Offloaded KV rows are transferred as often as they are attended
to, or the CPU attends to them in host memory. All this overlaps with computing. Offloaded
activations are moved between two computations. So a pass takes as long as the slowest of these
streams, each slowed down by those that run at the same time.

Source: Sheng et al., "FlexGen" (2023), appendix A.3, for streams that overlap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from medusa_core.loading.policy.layouts import Counts, Layouts
from medusa_core.loading.policy.machine_rates import MachineRates, seconds_at, transfer_s
from medusa_core.loading.policy.workload import Passes, Workload, single_pass
from medusa_core.messages import Shares, Tier

Seconds = NDArray[np.float64]
COMPUTING, READING = "computing", "reading from disk"


@dataclass(frozen=True, slots=True)
class ComputePlacement:
    """Tiers that a layout doesn't decide.

    Attributes:
        activations: Tier of the activations between two layers.
        attention: Tier whose processor attends to offloaded KV rows.
    """

    activations: Tier = Tier.DEVICE
    attention: Tier = Tier.DEVICE


@dataclass(frozen=True, slots=True)
class BytesMoved:
    """Bytes that passes move. [n] each

    Attributes:
        weights: Weights to the device.
        weights_disk: The part of `weights` that is on the disk.
        rows: KV rows to the device.
        rows_disk: KV rows that are read from the disk.
        weights_reads: Number of reads of the disk for weights.
        rows_reads: Number of reads of the disk for KV rows.
        attended_in_memory: KV rows that the CPU attends to in host memory.
        fresh: New KV rows to the lower tiers.
        fresh_disk: The part of `fresh` that is written to the disk.
        activations: Activations to a lower tier, and as many back.
    """

    weights: Seconds
    weights_disk: Seconds
    rows: Seconds
    rows_disk: Seconds
    weights_reads: Seconds
    rows_reads: Seconds
    attended_in_memory: Seconds
    fresh: Seconds
    fresh_disk: Seconds
    activations: float


def bytes_moved(
    workload: Workload, layout: Layouts, compute: ComputePlacement, passes: Passes
) -> BytesMoved:
    """Return the bytes that passes transfer between tiers, in each layout."""
    read, fresh = passes.rows_read * workload.row_bytes, passes.num_rows * workload.row_bytes
    weights = passes.num_passes * workload.layer_bytes
    is_transferred = compute.attention is Tier.DEVICE
    moves = compute.activations is not Tier.DEVICE
    return BytesMoved(
        weights=_times(layout.offloaded_weights, weights),
        weights_disk=_times(layout.weights_disk, weights),
        rows=_times(layout.offloaded_cache, read * is_transferred),
        rows_disk=_times(layout.cache_disk, read),
        weights_reads=_times(layout.weights_disk, passes.num_passes),
        rows_reads=_times(layout.cache_disk, passes.num_reads),
        attended_in_memory=_times(layout.offloaded_cache, read * (not is_transferred)),
        fresh=_times(layout.offloaded_cache, fresh),
        fresh_disk=_times(layout.cache_disk, fresh),
        activations=moves * workload.num_layers * float(passes.num_rows * workload.state_bytes),
    )


def streams_s(
    workload: Workload,
    machine: MachineRates,
    layout: Layouts,
    compute: ComputePlacement,
    passes: Passes,
) -> dict[str, Seconds]:
    """Return the seconds of each stream alone. [n] each"""
    moved, none = bytes_moved(workload, layout, compute, passes), np.zeros(len(layout))
    states_s = moved.activations * (1 / machine.to_device + 1 / machine.from_device)
    if compute.activations is Tier.DISK:
        states_s += moved.activations * (1 / machine.from_disk + 1 / machine.to_disk)
    weights_s, rows_s = disk_s(moved, machine)
    copied = moved.rows_disk / machine.copied  # out of the buffer that was read
    computing = none + computing_s(workload, machine, passes)
    computing += moved.attended_in_memory / machine.cache_in_memory
    computing += copied / machine.num_cores + moved.fresh_disk / machine.copied + states_s
    computing += moved.rows_reads * machine.visit_s
    return {
        "link to the device": (moved.weights + moved.rows) / machine.to_device + none,
        "link from the device": moved.fresh / machine.from_device + none,
        READING: weights_s + rows_s,
        "bringing cached rows": rows_s + copied,
        "writing to disk": moved.fresh_disk / machine.to_disk,
        COMPUTING: computing,
    }


def disk_s(moved: BytesMoved, machine: MachineRates) -> tuple[Seconds, Seconds]:
    """Return the seconds of reading weights and KV rows from the disk. [n], [n]"""
    return (
        moved.weights_disk / machine.from_disk + moved.weights_reads * machine.read_s,
        moved.rows_disk / machine.from_disk + moved.rows_reads * machine.read_s,
    )


def computing_s(workload: Workload, machine: MachineRates, passes: Passes) -> float:
    """Return the compute seconds, including attention to KV rows on the device."""
    at_once = passes.num_rows / passes.num_visits
    layer = passes.num_visits * (machine.visit_s + seconds_at(machine.layer_s, at_once))
    attention = transfer_s(passes.rows_read * workload.row_bytes, machine.cache_on_device)
    prefill = transfer_s(passes.row_pairs * workload.row_bytes, machine.cache_of_prompts)
    head = passes.num_passes * seconds_at(machine.head_s, passes.num_scored)
    return workload.num_layers * (layer + attention + prefill) + head


def overlapped_s(streams: Mapping[str, Seconds], machine: MachineRates) -> dict[str, Seconds]:
    """Return the seconds until each stream ends if all begin at the same time.

    Computing and transfers share a processor and its memory: both are slower until one of them
    ends.

    Args:
        streams: Seconds of each stream alone. [n] each
        machine: Rates of the machine.
    """
    computing = streams[COMPUTING]
    others = {name: alone for name, alone in streams.items() if name != COMPUTING}
    moving = np.stack(list(others.values())).max(axis=0)
    computing_pace, moving_pace = machine.computing_beside, machine.reading_beside
    both = np.minimum(computing / computing_pace, moving / moving_pace)
    longer = 1 + (1 - moving_pace) * both / np.where(moving > 0, moving, 1)
    found = {name: alone * longer for name, alone in others.items()}
    return found | {COMPUTING: computing + (1 - computing_pace) * both}


def total_s(streams: Mapping[str, Seconds], machine: MachineRates, overlaps: bool) -> Seconds:
    """Return the seconds of passes: until the last stream ends, or of one after another. [n]"""
    if overlaps:
        streams = overlapped_s(streams, machine)
    each = np.stack(list(streams.values()))
    total: Seconds = each.max(axis=0) if overlaps else each.sum(axis=0)
    return total


def pass_s(
    num_layers: int, layer_bytes: float, machine: MachineRates, weights: Shares, rows: int
) -> float:
    """Return the seconds of a pass of `rows` rows without a context.

    Args:
        num_layers: Layers of the model.
        layer_bytes: Mean bytes of an offloaded layer.
        machine: The machine.
        weights: Shares of the layers in each tier.
        rows: Rows of the pass.
    """
    workload = Workload(num_layers=num_layers, layer_bytes=round(layer_bytes))
    layout = Layouts.of_one(weights, Shares(), num_layers)
    streams = streams_s(workload, machine, layout, ComputePlacement(), single_pass(rows))
    return float(total_s(streams, machine, overlaps=True)[0])


def _times(counts: Counts, each: float) -> Seconds:
    """Numbers of layers times the bytes of each, as float64. [n]"""
    return counts.astype(np.float64) * each
