"""GLM 4.5 to 4.7 with experts: a sigmoid router, a shared expert; the first layers are dense.

The first half of each head rotates.
"""

from __future__ import annotations

from medusa_core.errors import ModelError
from medusa_core.models.architecture import MAX_LAYERS, Arch, ArchConfig
from medusa_core.models.blocks.compose import PER_HEAD, attention, mlp, moe, pre_norms
from medusa_core.models.blocks.spec import BlockSpec, Scoring
from medusa_core.models.gguf_architecture import GgufArchitecture, mlp_tensors


def _blocks(config: ArchConfig) -> list[BlockSpec]:
    """Return blocks whose first layers have an MLP and the others experts."""
    if config.has_expert_groups:
        raise ModelError("Experts in groups aren't supported.", "Choose GLM-4.5-Air or GLM-4.6.")
    norms, num_dense = pre_norms(config), config.count("first_k_dense_replace", MAX_LAYERS, 1)
    mixer = attention(
        config,
        bias=config.flag("attention_bias"),
        output_bias=False,
        qk_norm=PER_HEAD if config.flag("use_qk_norm") else None,
    )
    width = config.expert_width(1408)
    shared = width * config.whole("n_shared_experts", 1 << 6, 1)
    experts = moe(
        config,
        config.routing("n_routed_experts", 128, 8, Scoring.SIGMOID),
        width,
        router_bias="gate.e_score_correction_bias",
        shared=mlp(config, "mlp.shared_experts", name="shared.", width=shared),
    )
    return [
        BlockSpec(norms, (mixer,), mlp(config) if index < num_dense else experts)
        for index in range(config.num_layers)
    ]


SPEC = Arch(
    "glm4_moe",
    _blocks,
    defaults={"partial_rotary_factor": 0.5},
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
