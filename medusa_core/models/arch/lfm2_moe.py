"""LFM2 with experts: LFM2 whose rows pass through a few of many MLPs, but for the first layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from medusa_core.models.arch.lfm2 import (
    LFM2_GGUF,
    LFM2_NAMES,
    lfm2_names,
    lfm2_parts,
    lfm2_traits,
)
from medusa_core.models.architecture import Arch, positive, whole
from medusa_core.models.traits import EACH_EXPERT, Experts, Traits

_MOST = 1 << 12
_MOST_LAYERS = 1 << 10


def _traits(raw: Mapping[str, Any]) -> Traits:
    count = whole(raw, "num_experts", _MOST, 32)
    chosen = whole(raw, "num_experts_per_tok", _MOST, 4)
    experts = Experts(
        count,
        chosen,
        whole(raw, "moe_intermediate_size", 1 << 20, 1792),
        bool(raw.get("norm_topk_prob", True)),
        frozenset(range(_num_plain(raw))),
        is_sigmoid=True,
        bias="expert_bias" if raw.get("use_expert_bias", True) else "",
        scale=positive(raw, "routed_scaling_factor", 1.0) or 1.0,
    )
    return replace(lfm2_traits(raw), experts=experts)


def _num_plain(raw: Mapping[str, Any]) -> int:
    """The first layers, which have one MLP."""
    return (
        0 if raw.get("num_dense_layers") == 0 else whole(raw, "num_dense_layers", _MOST_LAYERS, 2)
    )


SPEC = Arch(
    "lfm2_moe",
    _traits,
    lfm2_parts,
    lfm2_names,
    LFM2_NAMES,
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
