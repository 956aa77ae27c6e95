"""Qwen 3 (dense): queries and keys are normalized per head."""

from __future__ import annotations

from medusa_core.models.architecture import Arch, ArchConfig
from medusa_core.models.blocks.compose import (
    PER_HEAD,
    attention,
    limited_to_used_window,
    mlp,
    pre_norms,
)
from medusa_core.models.blocks.spec import BlockSpec
from medusa_core.models.gguf_architecture import GgufArchitecture


def _blocks(config: ArchConfig) -> list[BlockSpec]:
    """Return Llama's blocks with QK norm per head."""
    mixer = attention(config, bias=config.flag("attention_bias"), qk_norm=PER_HEAD)
    return [BlockSpec(pre_norms(config), (mixer,), mlp(config))] * config.num_layers


SPEC = Arch(
    "qwen3",
    _blocks,
    limited_to_used_window,
    gguf=GgufArchitecture("qwen3", aliases=("qwen3vl",)),
)
