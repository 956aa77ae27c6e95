"""All layouts in which a block fits: how many layers' weights and KV rows each tier holds.

KV rows are tried in every tier, layer by layer. Given their tiers, weights are as near to the
device as there is room: nearer ones are never slower.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from medusa_core.loading.policy.machine_rates import MachineRates
from medusa_core.loading.policy.rules import Rules, offloaded_layers
from medusa_core.loading.policy.workload import BatchBlock, Workload
from medusa_core.messages import Shares, Tier
from medusa_core.runtime.kv.size import RING_UNITS, staging_bytes, tail_slots
from medusa_core.runtime.offload.layer_entries import NUM_BUFFERS

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Layouts:
    """Numbers of layers in the lower tiers; each index is another layout. [n] each

    Attributes:
        weights_memory: Layers whose weights are in host memory.
        weights_disk: Layers whose weights are on the disk.
        cache_memory: Layers whose keys and values are in host memory.
        cache_disk: Layers whose keys and values are on the disk.
    """

    weights_memory: Counts
    weights_disk: Counts
    cache_memory: Counts
    cache_disk: Counts

    @classmethod
    def of_one(cls, weights: Shares, cache: Shares, num_layers: int) -> Layouts:
        """Return the one layout of a policy."""
        counts = (*offloaded_layers(weights, num_layers), *offloaded_layers(cache, num_layers))
        return cls(*(np.array([number]) for number in counts))

    @property
    def offloaded_weights(self) -> Counts:
        """Layers whose weights aren't on the device."""
        return self.weights_memory + self.weights_disk

    @property
    def offloaded_cache(self) -> Counts:
        """Layers whose keys and values aren't on the device."""
        return self.cache_memory + self.cache_disk

    def only(self, which: NDArray[np.bool_]) -> Layouts:
        """Return the layouts where `which` is true."""
        return Layouts(*(getattr(self, field.name)[which] for field in fields(self)))

    def __len__(self) -> int:
        return len(self.weights_memory)


def layouts(
    workload: Workload, block: BatchBlock, machine: MachineRates, activations: Tier, rules: Rules
) -> Layouts:
    """Return all layouts in which a block fits.

    Args:
        workload: Sizes of the model and of the prompts.
        block: The block.
        machine: The machine.
        activations: Tier of the activations between two layers.
        rules: Restrictions of the search.
    """
    cache_memory, cache_disk = _cache_counts(workload, machine, rules)
    room = rooms(workload, block, machine, activations, cache_memory, cache_disk)
    layer, buffers = workload.layer_bytes, NUM_BUFFERS * workload.piece_bytes
    missing = workload.num_layers * layer - room[Tier.DEVICE]
    needed = -(-(missing + buffers) // layer)
    offloaded = np.where(missing > 0, needed, 0)
    if rules.must_offload:
        is_resident = cache_memory + cache_disk == 0
        offloaded = np.where(is_resident, np.maximum(needed, 1), offloaded)
    passing = buffers if machine.memory_bytes else 0  # a disk's layers reach a card through memory
    fits_memory = room[Tier.MEMORY] >= offloaded * layer
    some = np.maximum(0, (room[Tier.MEMORY] - passing) // layer)
    memory = np.minimum(offloaded, np.where(fits_memory, offloaded, some))
    if not machine.memory_bytes:
        memory = np.zeros_like(offloaded)
    found = Layouts(memory, offloaded - memory, cache_memory, cache_disk)
    return found.only(have_room(workload, block, machine, activations, found))


def have_room(
    workload: Workload, block: BatchBlock, machine: MachineRates, activations: Tier, layout: Layouts
) -> NDArray[np.bool_]:
    """Check which layouts fit; see `layouts`. [n]"""
    room = rooms(workload, block, machine, activations, layout.cache_memory, layout.cache_disk)
    layer, buffers = workload.layer_bytes, NUM_BUFFERS * workload.piece_bytes
    passing = buffers if machine.memory_bytes else 0
    offloaded, whole = layout.offloaded_weights, workload.num_layers * layer
    on_device = whole - offloaded * layer + buffers * (offloaded > 0)
    in_memory = layout.weights_memory * layer + passing * (layout.weights_disk > 0)
    stored = whole * (layout.weights_disk > 0)  # the layer file holds all layers
    found: NDArray[np.bool_] = (
        (offloaded <= workload.num_layers)
        & (room[Tier.DEVICE] >= on_device)
        & (room[Tier.MEMORY] >= in_memory)
        & (room[Tier.DISK] >= stored)
    )
    return found


def rooms(
    workload: Workload,
    block: BatchBlock,
    machine: MachineRates,
    activations: Tier,
    cache_memory: Counts,
    cache_disk: Counts,
) -> dict[Tier, Counts]:
    """Return the bytes of each tier that are left for weights. [n] each"""
    layer_cache = block.cache_layer_bytes(workload)
    offloaded, has_card = cache_memory + cache_disk, machine.memory_bytes > 0
    ring = RING_UNITS * block.batch * workload.most_slots * workload.row_bytes
    ring += 2 * staging_bytes(workload.row_bytes, workload.most_slots)
    tails = block.num_sequences * tail_slots(tree_rows=1) * workload.row_bytes
    from_disk = np.where(cache_disk > 0, ring, 0) + cache_disk * tails
    on_device = block.fixed_bytes(workload) + (workload.num_layers - offloaded) * layer_cache
    held = {Tier.DISK: cache_disk * layer_cache}
    if has_card:  # rows from a disk reach it through host memory
        rings = np.where(cache_memory > 0, ring, 0) + np.where(cache_disk > 0, ring, 0)
        held[Tier.DEVICE] = on_device + rings
        held[Tier.MEMORY] = cache_memory * layer_cache + from_disk
    else:
        held[Tier.DEVICE] = on_device + from_disk
        held[Tier.MEMORY] = np.zeros_like(offloaded)
    held[activations] = held[activations] + block.activation_bytes(workload)
    return {tier: machine.room(tier) - held[tier] for tier in Tier}


def _cache_counts(workload: Workload, machine: MachineRates, rules: Rules) -> tuple[Counts, Counts]:
    """Return all numbers of layers whose KV rows are in memory, and on the disk. [n], [n]"""
    count = workload.num_layers if rules.may_offload_cache else 0
    steps = np.arange(count + 1)
    in_memory, on_disk = (grid.ravel() for grid in np.meshgrid(steps, steps))
    may = in_memory + on_disk <= count
    may &= (in_memory == 0) | (on_disk == 0)  # a target has one store of cached rows
    may &= (in_memory == 0) | (machine.memory_bytes > 0)
    may &= (on_disk == 0) | (machine.disk_bytes > 0)
    return in_memory[may], on_disk[may]
