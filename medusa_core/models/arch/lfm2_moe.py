"""LFM2 with experts: LFM2 with a sigmoid router and experts in all but the first layers."""

from __future__ import annotations

from dataclasses import replace

from medusa_core.models.arch.lfm2 import (
    LFM2_DEFAULTS,
    LFM2_GGUF,
    LFM2_KEYS,
    LFM2_MLP,
    lfm2_blocks,
)
from medusa_core.models.architecture import MAX_LAYERS, Arch, ArchConfig
from medusa_core.models.blocks.compose import mlp, moe
from medusa_core.models.blocks.spec import EACH_EXPERT, BlockSpec, Scoring


def _blocks(config: ArchConfig) -> list[BlockSpec]:
    """Return LFM2's blocks with an MLP in the first layers and experts in the others."""
    experts = moe(
        config,
        config.routing("num_experts", 32, 4, Scoring.SIGMOID),
        config.expert_width(1792),
        "feed_forward",
        names=LFM2_MLP,
        router_bias="expert_bias" if config.flag("use_expert_bias", True) else "",
    )
    dense = mlp(config, "feed_forward", names=LFM2_MLP)
    num_dense = config.count("num_dense_layers", MAX_LAYERS, 2)
    mlps = [dense if index < num_dense else experts for index in range(config.num_layers)]
    return lfm2_blocks(config, mlps)


SPEC = Arch(
    "lfm2_moe",
    _blocks,
    defaults=LFM2_DEFAULTS,
    keys=LFM2_KEYS,
    gguf=replace(
        LFM2_GGUF,
        name="lfm2moe",
        tensors={
            **LFM2_GGUF.tensors,
            "ffn_gate_inp": "feed_forward.gate",
            "ffn_gate_exps": f"feed_forward.experts.{EACH_EXPERT}.w1",
            "ffn_up_exps": f"feed_forward.experts.{EACH_EXPERT}.w3",
            "ffn_down_exps": f"feed_forward.experts.{EACH_EXPERT}.w2",
            "exp_probs_b.bias": "feed_forward.expert_bias",
        },
        keys={**LFM2_GGUF.keys, "num_dense_layers": "leading_dense_block_count"},
        defaults={**LFM2_GGUF.defaults, "num_dense_layers": 0, "norm_topk_prob": True},
        flags={**LFM2_GGUF.flags, "use_expert_bias": "exp_probs_b.bias"},
        has_experts=True,
        sigmoid_router=True,
    ),
)
