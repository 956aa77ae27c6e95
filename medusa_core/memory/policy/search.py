"""The search for a policy: over block sizes, and over all that the engine can do with layers.

Sheng et al. search shares by a linear program. Here whole layers lie somewhere, and so few ways are
left that all of them are compared: what is found needs no rounding.

Source: Sheng et al., "FlexGen" (2023), section 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from medusa_core.memory.policy.cost import (
    COMPUTING,
    READING,
    Seconds,
    Sides,
    disk_s,
    moved,
    streams_s,
    together_s,
    total_s,
)
from medusa_core.memory.policy.found import BatchForecast, FoundPolicy
from medusa_core.memory.policy.layouts import (
    Layouts,
    cache_layer_bytes,
    have_room,
    layers_below,
    layouts,
    passing_bytes,
    tier_of,
)
from medusa_core.memory.policy.machine import MachineRates
from medusa_core.memory.policy.rules import Rules
from medusa_core.memory.policy.work import BatchBlock, BatchWork, prompt_passes, step
from medusa_core.messages import PARTS, BlockBytes, Policy, Shares, Tier

_SLOWEST = 0.999  # of the slowest stream's time, and a stream binds as well
_NEARER = 1e-6  # of the time, for each layer that lies below without need
_ROOM = {
    Tier.DEVICE: "room on the device",
    Tier.MEMORY: "room in memory",
    Tier.DISK: "room on the disk",
}


class _Choice(NamedTuple):
    """A way to compute a block.

    Attributes:
        block: The block.
        sides: Where activations lie, and attention is computed.
        where: One layout.
        block_s: Seconds of a block.
    """

    block: BatchBlock
    sides: Sides
    where: Layouts
    block_s: float


def search(
    work: BatchWork, machine: MachineRates, rules: Rules | None = None
) -> FoundPolicy | None:
    """The policy of the most tokens a second; None where nothing has room.

    Args:
        work: What is asked.
        machine: What there is.
        rules: What may be done; None for everything.
    """
    rules = rules or Rules()
    return _best(work, machine, rules, blocks(work, rules))


def solve(
    work: BatchWork, block: BatchBlock, machine: MachineRates, rules: Rules
) -> FoundPolicy | None:
    """The best policy for a block; None where it has no room.

    Args:
        work: What is asked.
        block: The block.
        machine: What there is.
        rules: What may be done.
    """
    return _best(work, machine, rules, [block])


def expected(
    work: BatchWork, machine: MachineRates, policy: Policy, overlaps: bool = True
) -> BatchForecast:
    """What a policy should bring, whether or not it has room.

    Args:
        work: What is asked.
        machine: What there is.
        policy: The policy.
        overlaps: Moving and computing run at the same time.
    """
    fitting = [rows for rows in work.rows_at_once if rows <= policy.prompt_rows]
    sides = Sides(tier_of(policy.activations), Tier(policy.attention))
    where = Layouts(
        *(np.array([number]) for number in layers_below(policy.weights, work.num_layers)),
        *(np.array([number]) for number in layers_below(policy.cache, work.num_layers)),
    )
    tried = [
        BatchBlock(policy.batch, policy.num_batches, at_once, policy.prompt_rows)
        for at_once in fitting or [min(work.rows_at_once)]
    ]
    roomy = [block for block in tried if have_room(work, block, machine, sides.states, where).all()]
    choices = []
    for block in roomy or tried[-1:]:
        (seconds,) = _block_s(work, block, machine, where, sides, overlaps)
        choices.append(_Choice(block, sides, where, float(seconds)))
    best = min(choices, key=lambda choice: choice.block_s)
    return _forecast(work, machine, best, overlaps, ())


def blocks(work: BatchWork, rules: Rules) -> Iterator[BatchBlock]:
    """Block sizes to try: batches of powers of two, and as many of them as are of use."""
    most = min(work.num_prompts, rules.most_together)
    for batch in _powers(most):
        for num_batches in _powers(-(-most // batch)) if rules.cache_below else [1]:
            for at_once in work.rows_at_once:
                for prompt_rows in _pass_rows(work, batch * num_batches, at_once, rules):
                    yield BatchBlock(batch, num_batches, at_once, prompt_rows)


def _pass_rows(work: BatchWork, sequences: int, at_once: int, rules: Rules) -> list[int]:
    """How many rows of prompts a pass may read: at least those that are computed at once."""
    every, rows = sequences * work.prompt_tokens, [at_once]
    while rules.cache_below and rows[-1] < every:
        rows.append(min(4 * rows[-1], max(every, at_once)))
    return rows


def _powers(most: int) -> list[int]:
    """1, 2, 4, … and the number itself."""
    powers = [1]
    while 2 * powers[-1] < most:
        powers.append(2 * powers[-1])
    return [*powers, most] if most > 1 else powers


def _best(
    work: BatchWork, machine: MachineRates, rules: Rules, tried: Iterable[BatchBlock]
) -> FoundPolicy | None:
    best: tuple[float, _Choice] | None = None
    for choice in (one for block in tried for one in _choices(work, block, machine, rules)):
        seconds = choice.block_s * choice.block.num_rounds(work)
        if best is None or seconds < best[0] * (1 - 1e-9):
            best = seconds, choice
    if best is None:
        return None
    choice = best[1]
    binds = _binding_rooms(work, machine, rules, choice)
    policy = _policy(work, choice)
    return FoundPolicy(policy, _forecast(work, machine, choice, rules.overlaps, binds))


def _choices(
    work: BatchWork,
    block: BatchBlock,
    machine: MachineRates,
    rules: Rules,
) -> Iterator[_Choice]:
    """Of every choice beside a layout the best layout."""
    for sides in _sides(machine, rules):
        where = layouts(work, block, machine, sides.states, rules)
        if not len(where):
            continue
        seconds = _block_s(work, block, machine, where, sides, rules.overlaps)
        # Of layouts that take the same time, that in which more lies on the device.
        below = where.weights_below + where.cache_below + where.weights_disk + where.cache_disk
        best = int(np.argmin(seconds * (1 + _NEARER * below)))
        one = where.only(np.arange(len(where)) == best)
        yield _Choice(block, sides, one, float(seconds[best]))


def _sides(machine: MachineRates, rules: Rules) -> Iterator[Sides]:
    states = [Tier.DEVICE]
    if rules.cache_below:  # else all that a pass computes is computed at once
        states += [tier for tier in (Tier.MEMORY, Tier.DISK) if machine.room(tier)]
    for tier in states:
        yield Sides(tier)
        if rules.attended_below and rules.cache_below and machine.memory_bytes:
            yield Sides(tier, Tier.MEMORY)


def _block_s(
    work: BatchWork,
    block: BatchBlock,
    machine: MachineRates,
    where: Layouts,
    sides: Sides,
    overlaps: bool,
) -> Seconds:
    """Seconds for a block's prompts and answers. [n]"""
    prompts = streams_s(work, machine, where, sides, prompt_passes(work, block))
    steps = streams_s(work, machine, where, sides, step(work, block))
    num_steps = work.new_tokens - 1
    return total_s(prompts, machine, overlaps) + num_steps * total_s(steps, machine, overlaps)


def _binding_rooms(
    work: BatchWork, machine: MachineRates, rules: Rules, choice: _Choice
) -> tuple[str, ...]:
    """Tiers of which more room would save time for this block."""
    found = []
    for tier, label in _ROOM.items():
        if not machine.room(tier):
            continue
        roomy = machine.with_room(tier)
        least = min(one.block_s for one in _choices(work, choice.block, roomy, rules))
        if least < choice.block_s * (1 - 1e-6):
            found.append(label)
    return tuple(found)


def _policy(work: BatchWork, choice: _Choice) -> Policy:
    where, block = choice.where, choice.block
    return Policy(
        weights=_shares(where.weights_memory[0], where.weights_disk[0], work.num_layers),
        cache=_shares(where.cache_memory[0], where.cache_disk[0], work.num_layers),
        activations=Shares(*(float(choice.sides.states is tier) for tier in Tier)),
        batch=block.batch,
        num_batches=block.num_batches,
        prompt_rows=block.prompt_rows,
        attention=choice.sides.attention.value,
    )


def _shares(memory: int, disk: int, count: int) -> Shares:
    """Of so many layers, those that lie below."""
    return Shares(int(count - memory - disk) / count, int(memory) / count, int(disk) / count)


def _forecast(
    work: BatchWork,
    machine: MachineRates,
    choice: _Choice,
    overlaps: bool,
    rooms: tuple[str, ...],
) -> BatchForecast:
    block, where, sides = choice.block, choice.where, choice.sides
    kinds = (prompt_passes(work, block), step(work, block))
    alone = [streams_s(work, machine, where, sides, passes) for passes in kinds]
    prefill_s, step_s = (float(total_s(each, machine, overlaps)[0]) for each in alone)
    ended = [together_s(each, machine) if overlaps else each for each in alone]
    streams = [{name: float(seconds[0]) for name, seconds in each.items()} for each in ended]
    block_s = prefill_s + (work.new_tokens - 1) * step_s
    slowest = _SLOWEST * max(streams[1].values())
    binds = [name for name, seconds in streams[1].items() if seconds >= slowest]
    return BatchForecast(
        prefill_s=prefill_s,
        step_s=step_s,
        tokens_per_s=work.num_prompts * work.new_tokens / (block.num_rounds(work) * block_s),
        rates=_rates(work, machine, choice, streams, (prefill_s, step_s)),
        binds=(*binds, *rooms),
        sizes=BlockBytes(
            weights=work.num_layers * work.layer_bytes,
            cache=work.num_layers * cache_layer_bytes(work, block),
            activations=passing_bytes(work, block),
        ),
    )


def _rates(
    work: BatchWork,
    machine: MachineRates,
    choice: _Choice,
    streams: Sequence[Mapping[str, float]],
    times: tuple[float, float],
) -> dict[str, float]:
    """What is expected of each part: bytes a second, and seconds of a layer and of a pass."""
    block, where, sides = choice.block, choice.where, choice.sides
    prompts, one = prompt_passes(work, block), step(work, block)
    steps = work.new_tokens - 1
    of = moved(work, where, sides, one)
    weights, rows = float(of.weights[0]), float(of.rows[0])
    weights_s, rows_s = (float(seconds[0]) for seconds in disk_s(of, machine))
    if weights_s + rows_s:  # slower, as computing runs beside
        longer = streams[1][READING] / (weights_s + rows_s)
        weights_s, rows_s = longer * weights_s, longer * rows_s
    # Both are read from the same disk: of each comes half as much while the other is read.
    shared_s = min(weights_s, rows_s)
    rates = {}
    if weights:
        rates[PARTS[0]] = weights / (weights / machine.to_device + weights_s + shared_s)
    if rows:
        rates[PARTS[1]] = rows / (rows / machine.to_device + rows_s + shared_s)
    if of.fresh[0]:
        rates[PARTS[2]] = machine.to_disk if of.fresh_disk[0] else machine.from_device
    visits = work.num_layers * (prompts.num_visits + steps * one.num_visits)
    computing = streams[0][COMPUTING] + steps * streams[1][COMPUTING]
    rates[PARTS[3]] = computing / visits
    passes = prompts.num_passes + steps
    waited = times[0] + steps * times[1] - computing
    rates[PARTS[4]] = max(0.0, waited) / passes
    return rates
