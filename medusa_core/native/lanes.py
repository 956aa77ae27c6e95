"""Which sizes the compiled step computes. Nothing here needs torch."""

from __future__ import annotations

from medusa_core.models.config import ModelConfig

LANES = 16  # of lanes.h


def fits_lanes(config: ModelConfig) -> bool:
    """Do its lanes divide a model's rows?"""
    sizes = (config.hidden_size, config.intermediate_size, config.head_dim)
    return all(size % LANES == 0 for size in sizes)
