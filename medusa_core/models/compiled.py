"""Which targets the compiled step computes. Nothing here needs torch."""

from __future__ import annotations

from medusa_core.models.config import ModelConfig
from medusa_core.models.family import find_family
from medusa_core.models.layer_shapes import RowShape, SharedRows
from medusa_core.models.traits import Activation
from medusa_core.system.native.lanes import fits_lanes


def is_compiled(config: ModelConfig) -> bool:
    """Whether the compiled step computes a target of these sizes."""
    return knows_blocks(config) and fits_lanes(*config.row_sizes)


def knows_blocks(config: ModelConfig) -> bool:
    """Whether the compiled step knows all that a target's blocks are made of."""
    if not config.is_ours:
        return False
    traits, family = config.traits, find_family(config.model_type)
    return (
        (family.decoder is None or family.tells_blocks)
        and (traits.experts is None or not traits.experts.is_sigmoid)
        and traits.activation is not Activation.RELU2
        and all(isinstance(shape, RowShape | SharedRows) for shape in config.layers)
    )
