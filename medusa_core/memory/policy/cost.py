"""The cost model: what each part of a pass takes, as sums over the shares of a placement.

Six transfers and the computing run at the same time, so a layer takes what the slowest of them
takes. Attention is computed where the cache lies; only states travel.

Source: Sheng et al., "FlexGen" (2023), appendix A.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from medusa_core.memory.placement import NUM_BUFFERS
from medusa_core.memory.policy.machine import (
    MachineRates,
    seconds,
    seconds_at,
)
from medusa_core.memory.policy.work import (
    BatchBlock,
    BatchWork,
)

WHAT = ("weights", "cache", "states")
TIERS = ("device", "memory", "disk")
# The nine shares, in the order of the linear program's variables.
SHARES = tuple((what, tier) for what in WHAT for tier in TIERS)

TierShare = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Sum:
    """A number that grows linearly with shares.

    Attributes:
        constant: What it is without them.
        by_share: What a whole share adds.
    """

    constant: float
    by_share: Mapping[TierShare, float]

    def at(self, shares: Mapping[TierShare, float]) -> float:
        """Its value for a placement."""
        return self.constant + sum(each * shares[share] for share, each in self.by_share.items())


@dataclass(frozen=True, slots=True)
class Costs:
    """What a block costs.

    Attributes:
        prefill: Seconds of each stream for one layer, all prompts of the block read.
        step: Seconds of each stream for one layer of a decoding step.
        bytes: What each tier holds.
        prefill_rest_s: What a prefill takes besides its layers.
        step_rest_s: What a step takes besides its layers.
    """

    prefill: Mapping[str, Sum]
    step: Mapping[str, Sum]
    bytes: Mapping[str, Sum]
    prefill_rest_s: float
    step_rest_s: float


def costs_of(work: BatchWork, block: BatchBlock, machine: MachineRates, streams: bool) -> Costs:
    """The costs of a block.

    Args:
        work: What is asked.
        block: Its sequences.
        machine: What computes.
        streams: Layers are loaded, so that the device has buffers for them.
    """
    sequences, passes = block.num_sequences, block.num_prompt_passes(work)
    rows = sequences * work.prompt_tokens
    prompt_curve = seconds_at(machine.layer_s, rows / passes) * passes
    step_curve = seconds_at(machine.layer_s, block.batch) * block.num_batches
    head = seconds_at(machine.head_s, block.batch) * block.num_batches
    return Costs(
        prefill=_streams(work, machine, sequences, passes, rows, prompt_curve, 0.0),
        step=_streams(work, machine, sequences, 1, sequences, step_curve, work.mean_tokens),
        bytes=_bytes(work, block, streams, machine.memory_bytes > 0),
        prefill_rest_s=head,
        step_rest_s=head,
    )


def _streams(
    work: BatchWork,
    machine: MachineRates,
    sequences: int,
    passes: int,
    rows: int,
    compute_s: float,
    behind: float,
) -> dict[str, Sum]:
    """Seconds of each stream for one layer, with `rows` new rows behind `behind` tokens each."""
    weights, states = passes * work.layer_bytes, rows * work.state_bytes
    fresh = rows * work.row_bytes
    read = sequences * behind * work.row_bytes
    in_s, out_s = 1 / machine.to_device, 1 / machine.from_device
    read_s, write_s = 1 / machine.from_disk, 1 / machine.to_disk
    offloaded_states = {("states", tier): states for tier in ("memory", "disk")}
    offloaded_fresh = {("cache", tier): fresh for tier in ("memory", "disk")}
    offloaded_weights = {("weights", tier): weights for tier in ("memory", "disk")}
    in_memory_s = seconds(read, machine.cache_in_memory)
    return {
        "link to the device": _times(offloaded_weights | offloaded_states, in_s),
        "link from the device": _times(offloaded_states | offloaded_fresh, out_s),
        "reading from disk": _times(
            {("weights", "disk"): weights, ("cache", "disk"): read, ("states", "disk"): states},
            read_s,
        ),
        "writing to disk": _times({("cache", "disk"): fresh, ("states", "disk"): states}, write_s),
        "computing": Sum(
            compute_s,
            {
                ("cache", "device"): seconds(read, machine.cache_on_device),
                ("cache", "memory"): in_memory_s,
                ("cache", "disk"): in_memory_s,
            },
        ),
    }


def _times(by_share: Mapping[TierShare, float], factor: float) -> Sum:
    return Sum(0.0, {share: each * factor for share, each in by_share.items()})


def _bytes(work: BatchWork, block: BatchBlock, streams: bool, has_memory: bool) -> dict[str, Sum]:
    """What each tier holds at the worst moment, which is while prompts are read."""
    sequences, layers = block.num_sequences, work.num_layers
    size = {
        "weights": layers * work.layer_bytes,
        "cache": layers * sequences * work.total_tokens * work.row_bytes,
        "states": sequences * work.prompt_tokens * work.state_bytes,
    }
    rows = max(block.batch, work.prompt_rows)
    on_device = work.fixed_bytes + rows * work.scratch_row_bytes
    on_device += NUM_BUFFERS * work.layer_bytes * streams
    # What lies on the disk passes through a buffer, a layer at a time.
    passing: dict[TierShare, float] = {("cache", "disk"): NUM_BUFFERS * size["cache"] / layers}
    if has_memory:
        passing["weights", "disk"] = NUM_BUFFERS * work.layer_bytes
    sums = {}
    for tier in TIERS:
        held: dict[TierShare, float] = {(what, tier): float(size[what]) for what in WHAT}
        passes_here = tier == ("memory" if has_memory else "device")
        sums[tier] = Sum(
            on_device if tier == "device" else 0, held | (passing if passes_here else {})
        )
    return sums
