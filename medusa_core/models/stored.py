"""Stored formats: how quantized checkpoints store their weights.

This module and those in `stored_formats` import torch only when weights are read: `config.json`
alone determines the format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from medusa_core.errors import CheckpointError
from medusa_core.i18n import tr
from medusa_core.models import stored_formats
from medusa_core.models.checkpoints.packing import Packing
from medusa_core.system.registry import Registry

if TYPE_CHECKING:
    from torch import Tensor

    from medusa_core.models.blocks.tensors import LinearSpec
    from medusa_core.models.checkpoints.checkpoint import Checkpoint
    from medusa_core.models.checkpoints.grouped import Grouped
    from medusa_core.models.config import ModelConfig
    from medusa_core.models.quant.choice import PartFormats
    from medusa_core.models.quant.format import QuantSpec

    Quantized = tuple[QuantSpec, dict[str, Tensor]]


@dataclass(frozen=True, slots=True)
class StoredSpec:
    """A registered stored format.

    Attributes:
        name: `quant_method` in the `quantization_config` of a `config.json`.
        parse: Reads a `quantization_config`. Raises a ModelError if it isn't supported.
        holds: Whether a linear layer is stored in this format. Raises a CheckpointError if only
            some of its tensors are.
        read: Reads a linear layer, converted for the device: its weight format, and its tensors in
            that. Takes the checkpoint, the layer, the configuration, and the wanted formats.
    """

    name: str
    parse: Callable[[Mapping[str, Any]], Packing]
    holds: Callable[[Checkpoint, LinearSpec], bool]
    read: Callable[[Checkpoint, LinearSpec, ModelConfig, PartFormats], Quantized]


def packed_format(
    name: str,
    parse: Callable[[Mapping[str, Any]], Packing],
    read_tensor: Callable[[Checkpoint, str, Packing], Grouped],
    suffix: str,
    absent: str = "",
) -> StoredSpec:
    """Make a stored format of integers that share scales in groups.

    Args:
        name: As in `StoredSpec`.
        parse: As in `StoredSpec`.
        read_tensor: Reads the weights of one layer of the checkpoint.
        suffix: Suffix of a tensor that layers in this format have.
        absent: Suffix of a tensor that they don't have, to tell formats with equal suffixes apart.
    """

    def holds(checkpoint: Checkpoint, part: LinearSpec) -> bool:
        """Whether all tensors of a layer have the format's suffix."""
        is_other = absent and any(f"{one.name}.{absent}" in checkpoint.names for one in part.pieces)
        return not is_other and is_quantized(checkpoint, part, suffix)

    def read(
        checkpoint: Checkpoint, part: LinearSpec, config: ModelConfig, formats: PartFormats
    ) -> Quantized:
        """Read a linear layer: as blocks, or requantized."""
        from medusa_core.models.checkpoints.grouped import read_grouped

        return read_grouped(read_tensor, checkpoint, part, config, formats)

    return StoredSpec(name, parse, holds, read)


def is_quantized(checkpoint: Checkpoint, part: LinearSpec, suffix: str) -> bool:
    """Whether all tensors of a linear layer are quantized.

    Args:
        suffix: Suffix of a tensor that quantized layers have.

    Raises:
        CheckpointError: Only some of the tensors are quantized.
    """
    found = [f"{piece.name}.{suffix}" in checkpoint.names for piece in part.pieces]
    if any(found) and not all(found):
        raise CheckpointError(
            tr("Of {0} only some tensors are quantized.", part.name), "Choose another checkpoint."
        )
    return all(found)


@cache
def stored_registry() -> Registry[StoredSpec]:
    """Return all stored formats."""
    return Registry(stored_formats, "stored weight format", StoredSpec)


def stored_as(checkpoint: Checkpoint, part: LinearSpec) -> StoredSpec | None:
    """Return the format in which a checkpoint stores a linear layer; None if it is unquantized.

    Raises:
        CheckpointError: Only some tensors of the layer are quantized.
    """
    return next((spec for spec in stored_registry().specs if spec.holds(checkpoint, part)), None)
