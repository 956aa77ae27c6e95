"""Bamba: Mamba-2 layers, some layers with attention, and Llama's MLP."""

from __future__ import annotations

from medusa_core.models.arch.mamba2 import mamba2
from medusa_core.models.architecture import Arch, ArchConfig
from medusa_core.models.blocks.compose import attention, mlp, pre_norms
from medusa_core.models.blocks.spec import BlockSpec


def _blocks(config: ArchConfig) -> list[BlockSpec]:
    """Return blocks of a Mamba-2 layer or attention, and an MLP."""
    norms = pre_norms(config, ("input_layernorm", "pre_ff_layernorm"))
    attending = config.listed_layers("attn_layer_indices")
    dense = mlp(config, "feed_forward", bias=config.flag("mlp_bias"))
    mixers = mamba2(config), attention(config, bias=config.flag("attention_bias"))
    return [
        BlockSpec(norms, (mixers[index in attending],), dense) for index in range(config.num_layers)
    ]


SPEC = Arch("bamba", _blocks, defaults={"partial_rotary_factor": 0.5})
