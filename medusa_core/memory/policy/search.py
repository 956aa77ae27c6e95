"""The search for a policy: over block sizes, a linear program for the shares.

Source: Sheng et al., "FlexGen" (2023), section 4.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from medusa_core.memory.policy.cost import (
    Costs,
    Sum,
    TierShare,
    costs_of,
)
from medusa_core.memory.policy.machine import MachineRates
from medusa_core.memory.policy.program import (
    Placed,
    Rules,
    place,
)
from medusa_core.memory.policy.work import (
    BatchBlock,
    BatchWork,
)

_SLOWEST = 0.999  # of the slowest stream's time, and a stream binds as well


@dataclass(frozen=True, slots=True)
class FoundPolicy:
    """A placement, and what it brings.

    Attributes:
        block: Sequences that share each loaded layer.
        shares: Of weights, cache and states on each tier.
        prefill_s: Seconds for the prompts of a block.
        step_s: Seconds of a decoding step of a block.
        tokens_per_s: Of answers, the prompts' time included.
        binds: What would have to be faster or larger.
    """

    block: BatchBlock
    shares: Mapping[TierShare, float]
    prefill_s: float
    step_s: float
    tokens_per_s: float
    binds: tuple[str, ...]


def search(
    work: BatchWork, machine: MachineRates, rules: Rules | None = None
) -> FoundPolicy | None:
    """The policy of the most tokens a second; None where nothing has room.

    Args:
        work: What is asked.
        machine: What there is.
        rules: What a placement may do; None for everything.
    """
    found = (solve(work, block, machine, rules or Rules()) for block in blocks(work.num_prompts))
    possible = [policy for policy in found if policy is not None]
    return max(possible, key=lambda policy: policy.tokens_per_s, default=None)


def blocks(num_prompts: int) -> Iterator[BatchBlock]:
    """Block sizes to try: batches of powers of two, and as many of them as are of use."""
    for batch in _powers(num_prompts):
        for num_batches in _powers(-(-num_prompts // batch)):
            yield BatchBlock(batch, num_batches)


def _powers(most: int) -> list[int]:
    """1, 2, 4, … and the number itself."""
    powers = [1]
    while 2 * powers[-1] < most:
        powers.append(2 * powers[-1])
    return [*powers, most] if most > 1 else powers


def solve(
    work: BatchWork, block: BatchBlock, machine: MachineRates, rules: Rules
) -> FoundPolicy | None:
    """The best policy for a block; None where it has no room.

    Args:
        work: What is asked.
        block: The block.
        machine: What there is.
        rules: What a placement may do.
    """
    room = {
        "device": machine.device_bytes,
        "memory": machine.memory_bytes,
        "disk": machine.disk_bytes,
    }
    found = []
    # Where all layers stay, none needs a buffer.
    for streams in {False, rules.streams}:
        costs = costs_of(work, block, machine, streams)
        allowed = replace(rules, streams=streams)
        placed = place(costs, room, work.new_tokens - 1, allowed)
        if placed is not None:
            found.append(_policy(work, block, costs, placed, rules.overlaps))
    return max(found, key=lambda policy: policy.tokens_per_s, default=None)


def _policy(
    work: BatchWork, block: BatchBlock, costs: Costs, placed: Placed, overlaps: bool
) -> FoundPolicy:
    shares = placed.shares
    prefill_s = costs.prefill_rest_s + pass_s(work, costs.prefill, shares, overlaps)
    step_s = costs.step_rest_s + pass_s(work, costs.step, shares, overlaps)
    block_s = prefill_s + (work.new_tokens - 1) * step_s
    times = {name: stream.at(shares) for name, stream in costs.step.items()}
    slowest = _SLOWEST * max(times.values())
    binds = (name for name, time_s in times.items() if time_s >= slowest)
    return FoundPolicy(
        block=block,
        shares=shares,
        prefill_s=prefill_s,
        step_s=step_s,
        tokens_per_s=work.num_prompts * work.new_tokens / (block.num_rounds(work) * block_s),
        binds=(*binds, *placed.binds),
    )


def pass_s(
    work: BatchWork,
    streams: Mapping[str, Sum],
    shares: Mapping[TierShare, float],
    overlaps: bool = True,
) -> float:
    """Seconds of all layers of a pass.

    Args:
        work: What is asked.
        streams: Seconds of each stream for one layer.
        shares: Where everything lies.
        overlaps: The slowest stream counts; else all do.
    """
    times = [stream.at(shares) for stream in streams.values()]
    return work.num_layers * (max(times) if overlaps else sum(times))
