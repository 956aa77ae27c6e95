"""What a stored format is: weights that were quantized before they were published.

This file and those in `stored_formats` import torch only when weights are at hand: a `config.json`
names its format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from medusa_core.models import stored_formats
from medusa_core.models.checkpoints.packing import Packing
from medusa_core.system.registry import Registry

if TYPE_CHECKING:
    from torch import Tensor

    from medusa_core.models.blocks.tensors import LinearSpec
    from medusa_core.models.checkpoints.checkpoint import Checkpoint
    from medusa_core.models.config import ModelConfig
    from medusa_core.models.quant.choice import PartFormats
    from medusa_core.models.quant.format import QuantSpec


class StoredFormat(NamedTuple):
    """What a `quantization_config` means.

    Attributes:
        linears: The weight format of most linear layers.
        packing: How whole numbers are packed; None where a file's tensors say it all.
    """

    linears: str
    packing: Packing | None = None


@dataclass(frozen=True, slots=True)
class StoredSpec:
    """A registered stored format.

    Attributes:
        name: `quant_method` in the `quantization_config` of a `config.json`.
        format_of: What such an object means; a ModelError where it isn't supported.
        holds: Is this part quantized in the checkpoint? A CheckpointError where some of it is.
        read: A part as it was quantized, repacked for where it is to run: its weight format, and
            its tensors in that. Given the checkpoint, the part, the configuration, and the formats
            that were asked for.
    """

    name: str
    format_of: Callable[[Mapping[str, Any]], StoredFormat]
    holds: Callable[[Checkpoint, LinearSpec], bool]
    read: Callable[
        [Checkpoint, LinearSpec, ModelConfig, PartFormats], tuple[QuantSpec, dict[str, Tensor]]
    ]


@cache
def stored_registry() -> Registry[StoredSpec]:
    """All stored formats."""
    return Registry(stored_formats, "stored weight format", StoredSpec)


def stored_as(checkpoint: Checkpoint, part: LinearSpec) -> StoredSpec | None:
    """The format in which a checkpoint holds a part; None for plain numbers.

    Raises:
        CheckpointError: Some of its pieces are quantized and others aren't.
    """
    return next((spec for spec in stored_registry().specs if spec.holds(checkpoint, part)), None)
