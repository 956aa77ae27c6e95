"""Qwen 3 with experts."""

from __future__ import annotations

from medusa_core.models.architecture import (
    MAX_EXPERTS,
    MAX_LAYERS,
    Arch,
    ArchConfig,
)
from medusa_core.models.blocks.compose import (
    PER_HEAD,
    attention,
    limited_to_used_window,
    mlp,
    moe,
    pre_norms,
)
from medusa_core.models.blocks.spec import BlockSpec
from medusa_core.models.gguf_architecture import GgufArchitecture


def _blocks(config: ArchConfig) -> list[BlockSpec]:
    """Return blocks with QK norm and experts; listed or intermediate layers have an MLP."""
    mixer = attention(config, bias=config.flag("attention_bias"), qk_norm=PER_HEAD)
    count = config.whole("num_local_experts", MAX_EXPERTS, 128)
    routing = config.routing("num_experts", count, 8, norm_topk_prob=False)
    experts = moe(config, routing, config.expert_width(768))
    step = config.whole("decoder_sparse_step", MAX_LAYERS, 1)
    dense = config.listed_layers("mlp_only_layers")
    return [
        BlockSpec(
            pre_norms(config),
            (mixer,),
            mlp(config) if (index + 1) % step or index in dense else experts,
        )
        for index in range(config.num_layers)
    ]


SPEC = Arch(
    "qwen3_moe",
    _blocks,
    limited_to_used_window,
    gguf=GgufArchitecture("qwen3moe", defaults={"norm_topk_prob": True}, has_experts=True),
)
