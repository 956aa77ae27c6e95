"""OLMo 3: OLMo 2 with a window in three of four layers, whose RoPE isn't scaled."""

from __future__ import annotations

from medusa_core.models.architecture import Arch, ArchConfig, LocalRope, ModelFields, local_theta
from medusa_core.models.blocks.compose import (
    ACROSS_HEADS,
    attention,
    mlp,
    post_norms,
    windowed_blocks,
)
from medusa_core.models.blocks.spec import BlockSpec

_PERIOD = 4  # of layers with full attention


def _blocks(config: ArchConfig) -> list[BlockSpec]:
    """Return OLMo 2's blocks; windowed layers have the unscaled RoPE."""
    mixer = attention(config, bias=config.flag("attention_bias"), qk_norm=ACROSS_HEADS)
    return windowed_blocks(config, _PERIOD, post_norms(config), mixer, mlp(config), ropes=(0, 1))


def _model(config: ArchConfig) -> ModelFields:
    """Return the unscaled RoPE of windowed layers."""
    theta = local_theta(config.raw, config.positive("rope_theta", 500000.0))
    return {"local_rope": LocalRope(theta, config.head_dim)}


SPEC = Arch("olmo3", _blocks, _model)
