"""Llama 2 and 3, and all that took its architecture: Vicuna, TinyLlama, Yi."""

from __future__ import annotations

from medusa_core.models.architecture import Arch, ArchConfig
from medusa_core.models.blocks.compose import attention, mlp, pre_norms
from medusa_core.models.blocks.spec import BlockSpec
from medusa_core.models.gguf_architecture import GgufArchitecture


def llama_blocks(config: ArchConfig) -> list[BlockSpec]:
    """Return blocks of attention and a gated MLP with a norm before each."""
    mixer = attention(config, bias=config.flag("attention_bias"))
    return [
        BlockSpec(pre_norms(config), (mixer,), mlp(config, bias=config.flag("mlp_bias")))
    ] * config.num_layers


SPEC = Arch(
    "llama",
    llama_blocks,
    gguf=GgufArchitecture("llama", windowed_type="mistral", interleaved_rope=True),
)
