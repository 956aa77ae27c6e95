"""Where everything of a block may lie: all ways in which it has room, as whole layers.

Keys and values are tried on every tier, layer by layer. Given where they lie, weights lie as near
to the device as there is room: nearer ones are never slower.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from medusa_core.memory.placement import NUM_BUFFERS
from medusa_core.memory.policy.machine import MachineRates
from medusa_core.memory.policy.rules import Rules
from medusa_core.memory.policy.work import JUDGED_ROWS, BatchBlock, BatchWork
from medusa_core.messages import Shares, Tier
from medusa_core.runtime.kv.size import RING_UNITS, staging_bytes, tail_slots

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Layouts:
    """Numbers of layers; each place is another layout. [n]

    Attributes:
        weights_memory: Layers whose weights lie in memory below the device.
        weights_disk: Likewise on the disk.
        cache_memory: Layers whose keys and values lie in memory below the device.
        cache_disk: Likewise on the disk.
    """

    weights_memory: Counts
    weights_disk: Counts
    cache_memory: Counts
    cache_disk: Counts

    @property
    def weights_below(self) -> Counts:
        """Layers whose weights don't lie on the device."""
        return self.weights_memory + self.weights_disk

    @property
    def cache_below(self) -> Counts:
        """Layers whose keys and values don't."""
        return self.cache_memory + self.cache_disk

    def only(self, which: NDArray[np.bool_]) -> Layouts:
        """Some of them."""
        return Layouts(*(getattr(self, one.name)[which] for one in fields(self)))

    def __len__(self) -> int:
        return len(self.weights_memory)


def layouts(
    work: BatchWork, block: BatchBlock, machine: MachineRates, states: Tier, rules: Rules
) -> Layouts:
    """All ways in which a block has room.

    Args:
        work: What is asked.
        block: The block.
        machine: What there is.
        states: Where what goes from one layer to the next lies.
        rules: What may be done.
    """
    cache_memory, cache_disk = _caches(work, machine, rules)
    room = rooms(work, block, machine, states, cache_memory, cache_disk)
    layer, buffers = work.layer_bytes, NUM_BUFFERS * work.piece_bytes
    whole = work.num_layers * layer
    lacking = whole - room[Tier.DEVICE]
    needed = -(-(lacking + buffers) // layer)
    below = np.where(lacking > 0, needed, 0)
    if rules.lies_below:
        is_here = cache_memory + cache_disk == 0
        below = np.where(is_here, np.maximum(needed, 1), below)
    passing = buffers if machine.memory_bytes else 0  # of what comes from a disk to a card
    fits_memory = room[Tier.MEMORY] >= below * layer
    some = np.maximum(0, (room[Tier.MEMORY] - passing) // layer)
    memory = np.minimum(below, np.where(fits_memory, below, some))
    if not machine.memory_bytes:
        memory = np.zeros_like(below)
    found = Layouts(memory, below - memory, cache_memory, cache_disk)
    return found.only(have_room(work, block, machine, states, found))


def have_room(
    work: BatchWork, block: BatchBlock, machine: MachineRates, states: Tier, where: Layouts
) -> NDArray[np.bool_]:
    """Which layouts have room; see `layouts`. [n]"""
    room = rooms(work, block, machine, states, where.cache_memory, where.cache_disk)
    layer, buffers = work.layer_bytes, NUM_BUFFERS * work.piece_bytes
    passing = buffers if machine.memory_bytes else 0  # of what comes from a disk to a card
    below, whole = where.weights_below, work.num_layers * layer
    here = whole - below * layer + buffers * (below > 0)
    in_memory = where.weights_memory * layer + passing * (where.weights_disk > 0)
    stored = whole * (where.weights_disk > 0)  # the file holds all layers
    found: NDArray[np.bool_] = (
        (below <= work.num_layers)
        & (room[Tier.DEVICE] >= here)
        & (room[Tier.MEMORY] >= in_memory)
        & (room[Tier.DISK] >= stored)
    )
    return found


def rooms(
    work: BatchWork,
    block: BatchBlock,
    machine: MachineRates,
    states: Tier,
    cache_memory: Counts,
    cache_disk: Counts,
) -> dict[Tier, Counts]:
    """Bytes that are left for weights on each tier. [n]"""
    of_layer = cache_layer_bytes(work, block)
    below, on_card = cache_memory + cache_disk, machine.memory_bytes > 0
    ring = RING_UNITS * block.batch * work.most_slots * work.row_bytes
    ring += 2 * staging_bytes(work.row_bytes, work.most_slots)
    tails = block.num_sequences * tail_slots(tree_rows=1) * work.row_bytes
    from_disk = np.where(cache_disk > 0, ring, 0) + cache_disk * tails
    on_device = fixed_bytes(work, block) + (work.num_layers - below) * of_layer
    held = {Tier.DISK: cache_disk * of_layer}
    if on_card:  # what a disk gives to it comes through memory
        rings = np.where(cache_memory > 0, ring, 0) + np.where(cache_disk > 0, ring, 0)
        held[Tier.DEVICE] = on_device + rings
        held[Tier.MEMORY] = cache_memory * of_layer + from_disk
    else:
        held[Tier.DEVICE] = on_device + from_disk
        held[Tier.MEMORY] = np.zeros_like(below)
    held[states] = held[states] + passing_bytes(work, block)
    return {tier: machine.room(tier) - held[tier] for tier in Tier}


def layers_below(shares: Shares, count: int) -> tuple[int, int]:
    """Of so many layers those in memory, and those on the disk."""
    below = round(count * (shares.memory + shares.disk))
    on_disk = min(below, round(count * shares.disk))
    return below - on_disk, on_disk


def tier_of(shares: Shares) -> Tier:
    """Where all of something lies."""
    return Tier.DISK if shares.disk else Tier.MEMORY if shares.memory else Tier.DEVICE


def cache_layer_bytes(work: BatchWork, block: BatchBlock) -> int:
    """Keys and values of a block in one layer."""
    return work.num_slots(block.num_sequences) * work.row_bytes


def passing_bytes(work: BatchWork, block: BatchBlock) -> int:
    """What goes from one layer to the next in the largest pass."""
    prompts = min(block.prompt_rows, block.num_sequences * work.prompt_tokens)
    return max(block.num_sequences, prompts) * work.state_bytes


def fixed_bytes(work: BatchWork, block: BatchBlock) -> int:
    """What lies on the device wherever the rest does."""
    scratch = work.scratch_bytes + max(block.batch, block.at_once) * work.scratch_row_bytes
    scored = block.num_sequences + JUDGED_ROWS
    return work.fixed_bytes + scratch + scored * work.scored_row_bytes


def _caches(work: BatchWork, machine: MachineRates, rules: Rules) -> tuple[Counts, Counts]:
    """Layers of which keys and values lie in memory, and on the disk. [n], [n]"""
    count = work.num_layers if rules.cache_below else 0
    steps = np.arange(count + 1)
    in_memory, on_disk = (grid.ravel() for grid in np.meshgrid(steps, steps))
    may = in_memory + on_disk <= count
    may &= (in_memory == 0) | (on_disk == 0)  # a target has one store of cached rows
    may &= (in_memory == 0) | (machine.memory_bytes > 0)
    may &= (on_disk == 0) | (machine.disk_bytes > 0)
    return in_memory[may], on_disk[may]
