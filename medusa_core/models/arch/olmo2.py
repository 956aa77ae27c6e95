"""OLMo 2: norms after attention and MLP, and of all queries and keys at once."""

from __future__ import annotations

from medusa_core.models.architecture import Arch, ArchConfig
from medusa_core.models.blocks.compose import ACROSS_HEADS, attention, mlp, post_norms
from medusa_core.models.blocks.spec import BlockSpec
from medusa_core.models.gguf_architecture import GgufArchitecture


def _blocks(config: ArchConfig) -> list[BlockSpec]:
    """Return blocks with norms after each sublayer and QK norm across all heads."""
    mixer = attention(config, bias=config.flag("attention_bias"), qk_norm=ACROSS_HEADS)
    return [BlockSpec(post_norms(config), (mixer,), mlp(config))] * config.num_layers


SPEC = Arch(
    "olmo2",
    _blocks,
    gguf=GgufArchitecture("olmo2", full_attention_every=4, windowed_type="olmo3"),
)
