"""GLM 4.5 to 4.7 with experts: rows pass through a few of many MLPs and one beside them.

Of each head the first half turns. The first layers have one MLP.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from medusa_core.errors import ModelError
from medusa_core.models.architecture import Arch, positive, whole
from medusa_core.models.gguf_architecture import GgufArchitecture, mlp_tensors
from medusa_core.models.traits import Experts, Traits

if TYPE_CHECKING:
    from medusa_core.models.config import ModelConfig
    from medusa_core.models.parts import BlockParts

_MOST_EXPERTS = 1 << 12
_MOST_LAYERS = 1 << 10
_MOST_WIDTH = 1 << 19


def _as_usual(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"partial_rotary_factor": 0.5, **raw}


def _traits(raw: Mapping[str, Any]) -> Traits:
    return Traits(
        qkv_bias=bool(raw.get("attention_bias", False)),
        qk_norm=bool(raw.get("use_qk_norm", False)),
        experts=_experts(raw),
    )


def _experts(raw: Mapping[str, Any]) -> Experts:
    groups = whole(raw, "n_group", _MOST_EXPERTS, 1), whole(raw, "topk_group", _MOST_EXPERTS, 1)
    if groups != (1, 1):
        raise ModelError("Experts in groups aren't supported.", "Choose GLM-4.5-Air or GLM-4.6.")
    width = whole(raw, "moe_intermediate_size", _MOST_WIDTH, 1408)
    return Experts(
        whole(raw, "n_routed_experts", _MOST_EXPERTS, 128),
        whole(raw, "num_experts_per_tok", _MOST_EXPERTS, 8),
        width,
        normalises=bool(raw.get("norm_topk_prob", True)),
        plain_layers=frozenset(range(_num_plain(raw))),
        is_sigmoid=True,
        bias="gate.e_score_correction_bias",
        scale=positive(raw, "routed_scaling_factor", 1.0) or 1.0,
        shared_width=width * whole(raw, "n_shared_experts", 1 << 6, 1),
    )


def _num_plain(raw: Mapping[str, Any]) -> int:
    """The first layers, which have one MLP."""
    key = "first_k_dense_replace"
    return 0 if raw.get(key) == 0 else whole(raw, key, _MOST_LAYERS, 1)


def _parts(config: ModelConfig, index: int) -> BlockParts:
    """The shared parts; beside experts stands an MLP, and a bias chooses them."""
    from medusa_core.models.parts import mlp_parts, shared_parts

    block, experts = shared_parts(config, index), config.traits.experts
    assert experts is not None
    if index in experts.plain_layers:
        return block
    mlp, name = f"{block.prefix}.mlp", f"layers.{index}.shared"
    return replace(
        block,
        mlp=mlp_parts(config, name, f"{mlp}.shared_experts", experts.shared_width),
        more={f"{mlp}.{experts.bias}": (experts.count,)},
    )


SPEC = Arch(
    "glm4_moe",
    _traits,
    parts=_parts,
    as_usual=_as_usual,
    gguf=GgufArchitecture(
        "glm4moe",
        tensors={
            **mlp_tensors("mlp.shared_experts", "_shexp"),
            "exp_probs_b.bias": "mlp.gate.e_score_correction_bias",
        },
        keys={
            "n_shared_experts": "expert_shared_count",
            "first_k_dense_replace": "leading_dense_block_count",
            "routed_scaling_factor": "expert_weights_scale",
            "norm_topk_prob": "expert_weights_norm",
            "n_group": "expert_group_count",
        },
        flags={"use_qk_norm": "attn_q_norm.weight"},
        partial_rotary=True,
        has_experts=True,
        sigmoid_router=True,
    ),
)
