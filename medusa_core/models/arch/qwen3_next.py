"""Qwen3-Next: Qwen 3.5 with experts whose delta nets have fused projections."""

from __future__ import annotations

from medusa_core.models.arch.qwen3_5_text import (
    DELTA_NET_DEFAULTS,
    delta_net_blocks,
    delta_net_model,
    shared_expert_moe,
    shared_expert_width,
)
from medusa_core.models.architecture import Arch, ArchConfig
from medusa_core.models.blocks.spec import BlockSpec


def _blocks(config: ArchConfig) -> list[BlockSpec]:
    """Return Qwen 3.5's blocks with fused projections of delta nets."""
    return delta_net_blocks(config, shared_expert_moe(config), is_fused=True)


SPEC = Arch(
    "qwen3_next",
    _blocks,
    delta_net_model,
    defaults=DELTA_NET_DEFAULTS,
    normalize=shared_expert_width,
)
