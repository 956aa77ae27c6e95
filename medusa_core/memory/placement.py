"""Which layers lie on the device and which below it, where not all have room. Pure: sizes in.

A layer on the device saves its bytes in every pass, whichever layer it is; layers that stay are
spread evenly among those that come, so that bytes come steadily while a pass computes.

Where activations and cache lie below the device, too, a policy says so; see `policy/planned.py`.

Source: FlexGen (Sheng et al. 2023), section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from medusa_core.memory.plan import fit_of, part_bytes
from medusa_core.messages import MemoryPlan, Placement, Tier
from medusa_core.models.blocks.tensors import LinearSpec
from medusa_core.models.config import ModelConfig
from medusa_core.models.parts import block_parts
from medusa_core.models.quant.choice import PartFormats
from medusa_core.runtime.offload.layer_entries import (
    ALIGN_BYTES,
    rounded_up,
)

NUM_BUFFERS = 3  # one that is computed with, two ahead


def layer_bytes(config: ModelConfig, formats: PartFormats) -> tuple[int, ...]:
    """Of every layer the bytes of its linear parts."""
    layers = (block_parts(config, index).linears for index in range(config.num_layers))
    return tuple(sum(part_bytes(part, config, formats) for part in parts) for parts in layers)


def piece_bytes(config: ModelConfig, formats: PartFormats) -> int:
    """Of the largest layer the bytes as one piece, in which each tensor begins at a multiple."""
    layers = (block_parts(config, index).linears for index in range(config.num_layers))
    return max(
        rounded_up(
            sum(
                part_bytes(part, config, formats) + ALIGN_BYTES * _num_tensors(part, formats)
                for part in parts
            )
        )
        for parts in layers
    )


def place_layers(
    plan: MemoryPlan, sizes: Sequence[int], piece: int, memory_bytes: int, *, has_disk: bool
) -> MemoryPlan | None:
    """A plan with some layers below the device.

    Args:
        plan: With all layers on the device, where they have no room.
        sizes: Of every layer its bytes; see `layer_bytes`.
        piece: What the largest takes of a buffer; see `piece_bytes`.
        memory_bytes: Room for layers in the computer's memory, where that is another tier.
        has_disk: Layers may lie on a disk.

    Returns:
        None if there is no room even so.
    """
    buffers = NUM_BUFFERS * piece
    room = plan.free_bytes + sum(sizes) - buffers
    here = _most_here(sizes, room)
    if here is None:
        return None
    tiers = [Tier.DEVICE if index in here else Tier.DISK for index in range(len(sizes))]
    in_memory = 0
    for index, size in enumerate(sizes):
        if tiers[index] is Tier.DISK and in_memory + size <= memory_bytes:
            tiers[index], in_memory = Tier.MEMORY, in_memory + size
    if Tier.DISK in tiers and not has_disk:
        return None
    placement = Placement(tuple(tiers), tuple(sizes), buffers)
    free = room - placement.nbytes(Tier.DEVICE)
    return replace(
        plan,
        weights_bytes=plan.weights_bytes - placement.offloaded_bytes + buffers,
        free_bytes=free,
        max_context=max(plan.max_context, plan.context_tokens),
        fit=fit_of(free),
        placement=placement,
    )


def _most_here(sizes: Sequence[int], room: int) -> frozenset[int] | None:
    """As many layers as have room on the device, spread evenly; None if not even none has."""
    if room < 0:
        return None
    count = len(sizes)
    for number in range(count - 1, -1, -1):
        spread = evenly(number, count)
        if sum(sizes[index] for index in spread) <= room:
            return spread
    return frozenset()


def evenly(number: int, count: int) -> frozenset[int]:
    """So many of a count of places, spread evenly."""
    return frozenset((2 * place + 1) * count // (2 * number) for place in range(number))


def _num_tensors(part: LinearSpec, formats: PartFormats) -> int:
    """Tensors that a part is made of, at most; of pieces in blocks each is one."""
    if formats.keeps_blocks:
        return len(part.pieces) + part.has_bias
    spec = part.fitting(formats.linears, formats)
    return len(spec.tensors(part.rows, part.columns, formats.compute)) + part.has_bias
