"""Which targets the compiled step computes. Nothing here needs torch."""

from __future__ import annotations

from medusa_core.models.config import ModelConfig
from medusa_core.models.traits import Traits
from medusa_core.system.native.lanes import MOST_TAPS, fits_lanes


def is_compiled(config: ModelConfig) -> bool:
    """Whether the compiled step computes a target of these sizes."""
    states = (size for shape in config.state_layers for size in (shape.key_dim, shape.value_dim))
    taps = max((shape.conv_width for shape in config.state_layers), default=0)
    return knows_blocks(config) and fits_lanes(*config.row_sizes, *states) and taps <= MOST_TAPS


def knows_blocks(config: ModelConfig) -> bool:
    """Whether the compiled step knows all that a target's blocks are made of."""
    if not config.is_ours:
        return False
    traits = config.traits
    return _knows_experts(traits)


def _knows_experts(traits: Traits) -> bool:
    """Whether it knows how experts are chosen, and what is beside them."""
    experts = traits.experts
    if experts is None:
        return True
    is_known = not experts.is_sigmoid and experts.scale == 1
    return is_known and traits.delta_net is None and not traits.scales_layers
