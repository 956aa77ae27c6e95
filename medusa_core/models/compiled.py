"""Which targets the compiled step computes. Nothing here needs torch."""

from __future__ import annotations

from medusa_core.models.config import ModelConfig
from medusa_core.system.native.lanes import MOST_TAPS, fits_lanes


def is_compiled(config: ModelConfig) -> bool:
    """Whether the compiled step computes a target: every family's, of sizes that fill vectors."""
    states = (size for shape in config.state_layers for size in (shape.key_dim, shape.value_dim))
    taps = max((shape.conv_width for shape in config.state_layers), default=0)
    return config.is_ours and fits_lanes(*config.row_sizes, *states) and taps <= MOST_TAPS
