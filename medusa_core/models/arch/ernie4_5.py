"""ERNIE 4.5 (dense): Llama whose heads are stored as rotated pairs."""

from __future__ import annotations

from medusa_core.models.architecture import Arch, ArchConfig
from medusa_core.models.blocks.compose import attention, interleaved, mlp, pre_norms
from medusa_core.models.blocks.spec import BlockSpec
from medusa_core.models.gguf_architecture import GgufArchitecture


def _blocks(config: ArchConfig) -> list[BlockSpec]:
    """Return Llama's blocks with interleaved RoPE and maybe biases."""
    bias = config.flag("use_bias")
    mixer = interleaved(attention(config, bias=bias))
    return [BlockSpec(pre_norms(config), (mixer,), mlp(config, bias=bias))] * config.num_layers


SPEC = Arch(
    "ernie4_5",
    _blocks,
    defaults={"head_dim": 128, "rope_theta": 500000.0, "tie_word_embeddings": True},
    gguf=GgufArchitecture("ernie4_5", flags={"use_bias": "attn_q.bias"}),
)
