"""GLM 4 (0414): norms around attention and MLP; the first half of each head rotates."""

from __future__ import annotations

from medusa_core.models.architecture import Arch, ArchConfig
from medusa_core.models.blocks.compose import attention, interleaved, mlp, sandwich_norms
from medusa_core.models.blocks.spec import BlockSpec
from medusa_core.models.gguf_architecture import GgufArchitecture

_NORMS = (
    "input_layernorm",
    "post_self_attn_layernorm",
    "post_attention_layernorm",
    "post_mlp_layernorm",
)


def _blocks(config: ArchConfig) -> list[BlockSpec]:
    """Return blocks with norms around each sublayer and a fused gate and up projection."""
    bias = config.flag("attention_bias", True)
    mixer = interleaved(attention(config, bias=bias, output_bias=False))
    return [
        BlockSpec(sandwich_norms(config, _NORMS), (mixer,), mlp(config, fused="gate_up_proj"))
    ] * config.num_layers


SPEC = Arch(
    "glm4",
    _blocks,
    defaults={"partial_rotary_factor": 0.5},
    gguf=GgufArchitecture(
        "glm4",
        {
            "post_attention_norm": "post_self_attn_layernorm",
            "post_ffw_norm": "post_mlp_layernorm",
            "ffn_up": "mlp.gate_up_proj",
        },
        partial_rotary=True,
    ),
)
