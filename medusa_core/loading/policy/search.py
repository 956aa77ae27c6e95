"""Search a policy: over block sizes, and over everything that the engine can do with layers.

Sheng et al. search shares by a linear program. Here whole layers are placed, which leaves so few
layouts that all of them are compared, and nothing has to be rounded.

Source: Sheng et al., "FlexGen" (2023), section 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from medusa_core.loading.policy.cost import (
    COMPUTING,
    READING,
    ComputePlacement,
    Seconds,
    bytes_moved,
    disk_s,
    overlapped_s,
    streams_s,
    total_s,
)
from medusa_core.loading.policy.layouts import Layouts, have_room, layouts
from medusa_core.loading.policy.machine_rates import MachineRates
from medusa_core.loading.policy.result import BatchForecast, FoundPolicy
from medusa_core.loading.policy.rules import Rules, tier_of
from medusa_core.loading.policy.workload import BatchBlock, Workload, decode_step, prefill_passes
from medusa_core.messages import PARTS, BlockBytes, Policy, Shares, Tier

_BINDING_SHARE = 0.999  # of the slowest stream's time, from which another stream binds as well
_TIE_PENALTY = 1e-6  # of the time for each offloaded layer: ties keep more on the device
_ROOM = {
    Tier.DEVICE: "room on the device",
    Tier.MEMORY: "room in memory",
    Tier.DISK: "room on the disk",
}


class _Choice(NamedTuple):
    """A way to compute a block.

    Attributes:
        block: The block.
        compute: Tier of activations and of attention.
        layout: The layout, as the only one.
        block_s: Seconds of a block.
    """

    block: BatchBlock
    compute: ComputePlacement
    layout: Layouts
    block_s: float


def search(
    workload: Workload, machine: MachineRates, rules: Rules | None = None
) -> FoundPolicy | None:
    """Find the policy of the most tokens per second.

    Args:
        workload: Sizes of the model and of the prompts.
        machine: The machine.
        rules: Restrictions; None for none.

    Returns:
        None if the model fits nowhere.
    """
    rules = rules or Rules()
    return _best(workload, machine, rules, blocks(workload, rules))


def forecast_policy(workload: Workload, machine: MachineRates, policy: Policy) -> BatchForecast:
    """Forecast a given policy, whether or not it fits.

    Args:
        workload: Sizes of the model and of the prompts.
        machine: The machine.
        policy: The policy.
    """
    fitting = [rows for rows in workload.rows_at_once if rows <= policy.prompt_rows]
    compute = ComputePlacement(tier_of(policy.activations), Tier(policy.attention))
    layout = Layouts.of_one(policy.weights, policy.cache, workload.num_layers)
    tried = [
        BatchBlock(policy.batch, policy.num_batches, at_once, policy.prompt_rows)
        for at_once in fitting or [min(workload.rows_at_once)]
    ]
    roomy = [
        block
        for block in tried
        if have_room(workload, block, machine, compute.activations, layout)[0]
    ]
    choices = []
    for block in roomy or tried[-1:]:
        (seconds,) = _block_s(workload, block, machine, layout, compute, overlaps=True)
        choices.append(_Choice(block, compute, layout, float(seconds)))
    best = min(choices, key=lambda choice: choice.block_s)
    return _forecast(workload, machine, best, overlaps=True, rooms=())


def blocks(workload: Workload, rules: Rules) -> Iterator[BatchBlock]:
    """Yield block sizes to try: batches of powers of two, and as many of them as are of use."""
    most = min(workload.num_prompts, rules.max_sequences)
    for batch in _powers(most):
        for num_batches in _powers(-(-most // batch)) if rules.may_offload_cache else [1]:
            for at_once in workload.rows_at_once:
                for prompt_rows in _pass_rows(workload, batch * num_batches, at_once, rules):
                    yield BatchBlock(batch, num_batches, at_once, prompt_rows)


def _pass_rows(workload: Workload, sequences: int, at_once: int, rules: Rules) -> list[int]:
    """Prompt rows of a pass to try: at least those that are computed at once."""
    every, rows = sequences * workload.prompt_tokens, [at_once]
    while rules.may_offload_cache and rows[-1] < every:
        rows.append(min(4 * rows[-1], max(every, at_once)))
    return rows


def _powers(most: int) -> list[int]:
    """Powers of two below `most`, and `most` itself."""
    powers = [1]
    while 2 * powers[-1] < most:
        powers.append(2 * powers[-1])
    return [*powers, most] if most > 1 else powers


def _best(
    workload: Workload, machine: MachineRates, rules: Rules, tried: Iterable[BatchBlock]
) -> FoundPolicy | None:
    """The fastest way to compute all prompts among some block sizes; None if none fits."""
    best: tuple[float, _Choice] | None = None
    for choice in (one for block in tried for one in _choices(workload, block, machine, rules)):
        seconds = choice.block_s * choice.block.num_rounds(workload)
        if best is None or seconds < best[0] * (1 - 1e-9):
            best = seconds, choice
    if best is None:
        return None
    choice = best[1]
    binds = _binding_rooms(workload, machine, rules, choice)
    policy = _policy(workload, choice)
    return FoundPolicy(policy, _forecast(workload, machine, choice, rules.overlaps, binds))


def _choices(
    workload: Workload, block: BatchBlock, machine: MachineRates, rules: Rules
) -> Iterator[_Choice]:
    """Yield the best layout for each placement of activations and attention."""
    for compute in _compute_placements(machine, rules):
        layout = layouts(workload, block, machine, compute.activations, rules)
        if not len(layout):
            continue
        seconds = _block_s(workload, block, machine, layout, compute, rules.overlaps)
        offloaded = layout.offloaded_weights + layout.offloaded_cache
        offloaded = offloaded + layout.weights_disk + layout.cache_disk
        best = int(np.argmin(seconds * (1 + _TIE_PENALTY * offloaded)))
        one = layout.only(np.arange(len(layout)) == best)
        yield _Choice(block, compute, one, float(seconds[best]))


def _compute_placements(machine: MachineRates, rules: Rules) -> Iterator[ComputePlacement]:
    """Yield the tiers of activations and attention that the rules allow."""
    activations = [Tier.DEVICE]
    if rules.may_offload_cache:  # a block of one batch has no activations that wait
        activations += [tier for tier in (Tier.MEMORY, Tier.DISK) if machine.room(tier)]
    for tier in activations:
        yield ComputePlacement(tier)
        if rules.cpu_attention and rules.may_offload_cache and machine.memory_bytes:
            yield ComputePlacement(tier, Tier.MEMORY)


def _block_s(
    workload: Workload,
    block: BatchBlock,
    machine: MachineRates,
    layout: Layouts,
    compute: ComputePlacement,
    overlaps: bool,
) -> Seconds:
    """Seconds in which a batch block's prompts are prefilled and its answers decoded. [n]"""
    prompts = streams_s(workload, machine, layout, compute, prefill_passes(workload, block))
    steps = streams_s(workload, machine, layout, compute, decode_step(workload, block))
    num_steps = workload.new_tokens - 1
    return total_s(prompts, machine, overlaps) + num_steps * total_s(steps, machine, overlaps)


def _binding_rooms(
    workload: Workload, machine: MachineRates, rules: Rules, choice: _Choice
) -> tuple[str, ...]:
    """Names of the tiers whose size limits the speed of this block."""
    found = []
    for tier, label in _ROOM.items():
        if not machine.room(tier):
            continue
        roomy = machine.with_room(tier)
        least = min(one.block_s for one in _choices(workload, choice.block, roomy, rules))
        if least < choice.block_s * (1 - 1e-6):
            found.append(label)
    return tuple(found)


def _policy(workload: Workload, choice: _Choice) -> Policy:
    """The policy of a chosen layout."""
    layout, block = choice.layout, choice.block
    return Policy(
        weights=_shares(layout.weights_memory[0], layout.weights_disk[0], workload.num_layers),
        cache=_shares(layout.cache_memory[0], layout.cache_disk[0], workload.num_layers),
        activations=Shares(*(float(choice.compute.activations is tier) for tier in Tier)),
        batch=block.batch,
        num_batches=block.num_batches,
        prompt_rows=block.prompt_rows,
        attention=choice.compute.attention.value,
    )


def _shares(memory: int, disk: int, count: int) -> Shares:
    """Fractions of layers per tier from numbers of layers."""
    return Shares(int(count - memory - disk) / count, int(memory) / count, int(disk) / count)


def _forecast(
    workload: Workload,
    machine: MachineRates,
    choice: _Choice,
    overlaps: bool,
    rooms: tuple[str, ...],
) -> BatchForecast:
    """The forecast of a chosen layout."""
    block, layout = choice.block, choice.layout
    kinds = (prefill_passes(workload, block), decode_step(workload, block))
    alone = [streams_s(workload, machine, layout, choice.compute, passes) for passes in kinds]
    prefill_s, step_s = (float(total_s(each, machine, overlaps)[0]) for each in alone)
    ended = [overlapped_s(each, machine) if overlaps else each for each in alone]
    streams = [{name: float(seconds[0]) for name, seconds in each.items()} for each in ended]
    block_s = prefill_s + (workload.new_tokens - 1) * step_s
    slowest = _BINDING_SHARE * max(streams[1].values())
    binds = [name for name, seconds in streams[1].items() if seconds >= slowest]
    return BatchForecast(
        prefill_s=prefill_s,
        step_s=step_s,
        tokens_per_s=workload.num_prompts
        * workload.new_tokens
        / (block.num_rounds(workload) * block_s),
        rates=_rates(workload, machine, choice, streams, (prefill_s, step_s)),
        binds=(*binds, *rooms),
        sizes=BlockBytes(
            weights=workload.num_layers * workload.layer_bytes,
            cache=workload.num_layers * block.cache_layer_bytes(workload),
            activations=block.activation_bytes(workload),
        ),
    )


def _rates(
    workload: Workload,
    machine: MachineRates,
    choice: _Choice,
    streams: Sequence[Mapping[str, float]],
    times: tuple[float, float],
) -> dict[str, float]:
    """Expected rate of each part: bytes per second, seconds of a layer, waiting of a pass.

    Args:
        workload: Sizes of the model and of the prompts.
        machine: The machine.
        choice: The way to compute a block.
        streams: Seconds of the streams of prefill and of a step.
        times: Seconds of prefill and of a step.
    """
    prompts, one = prefill_passes(workload, choice.block), decode_step(workload, choice.block)
    steps = workload.new_tokens - 1
    moved = bytes_moved(workload, choice.layout, choice.compute, one)
    weights, rows = float(moved.weights[0]), float(moved.rows[0])
    weights_s, rows_s = (float(seconds[0]) for seconds in disk_s(moved, machine))
    if weights_s + rows_s:  # overlap with computing slows reads down
        longer = streams[1][READING] / (weights_s + rows_s)
        weights_s, rows_s = longer * weights_s, longer * rows_s
    # While both are read from one disk, each gets half of its rate.
    shared_s = min(weights_s, rows_s)
    rates = {}
    if weights:
        rates[PARTS[0]] = weights / (weights / machine.to_device + weights_s + shared_s)
    if rows:
        rates[PARTS[1]] = rows / (rows / machine.to_device + rows_s + shared_s)
    if moved.fresh[0]:
        rates[PARTS[2]] = machine.to_disk if moved.fresh_disk[0] else machine.from_device
    visits = workload.num_layers * (prompts.num_visits + steps * one.num_visits)
    computing = streams[0][COMPUTING] + steps * streams[1][COMPUTING]
    rates[PARTS[3]] = computing / visits
    passes = prompts.num_passes + steps
    waited = times[0] + steps * times[1] - computing
    rates[PARTS[4]] = max(0.0, waited) / passes
    return rates
