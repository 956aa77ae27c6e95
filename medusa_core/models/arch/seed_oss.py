"""Seed-OSS: Llama with biases of queries, keys and values."""

from __future__ import annotations

from medusa_core.models.architecture import Arch, ArchConfig
from medusa_core.models.blocks.compose import attention, mlp, pre_norms
from medusa_core.models.blocks.spec import BlockSpec
from medusa_core.models.gguf_architecture import GgufArchitecture


def _blocks(config: ArchConfig) -> list[BlockSpec]:
    """Return Llama's blocks with biases by configuration."""
    mixer = attention(
        config,
        bias=config.flag("attention_bias", True),
        output_bias=config.flag("attention_out_bias"),
    )
    return [
        BlockSpec(pre_norms(config), (mixer,), mlp(config, bias=config.flag("mlp_bias")))
    ] * config.num_layers


SPEC = Arch(
    "seed_oss",
    _blocks,
    gguf=GgufArchitecture("seed_oss", flags={"attention_out_bias": "attn_output.bias"}),
)
