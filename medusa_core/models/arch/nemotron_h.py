"""Nemotron-H: every layer is a Mamba-2 layer, attention, an MLP without a gate, or experts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from medusa_core.errors import ModelError
from medusa_core.models.arch.mamba2 import MAMBA_FLAGS, MAMBA_KEYS, mamba2, mamba_tensors
from medusa_core.models.architecture import (
    MAX_HEADS,
    MAX_HIDDEN,
    Arch,
    ArchConfig,
    ModelFields,
    whole,
)
from medusa_core.models.blocks.compose import UNGATED, attention, interleaved, mlp, moe
from medusa_core.models.blocks.spec import (
    Activation,
    ActivationSpec,
    BlockSpec,
    MoeSpec,
    NormSpec,
    NormsSpec,
    Scoring,
)
from medusa_core.models.gguf_architecture import (
    GgufArchitecture,
    expert_tensors,
    gguf_mixer_types,
    mlp_tensors,
    per_layer,
)
from medusa_core.system.files.gguf import Gguf

_LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
_WORDS = {"linear_attention": "mamba", "full_attention": "attention"}
_KEYS = {  # this engine's → those of config.json
    "rms_norm_eps": "layer_norm_epsilon",
    "hidden_act": "mlp_hidden_act",
    "mamba_n_heads": "mamba_num_heads",
    "mamba_d_head": "mamba_head_dim",
    "mamba_n_groups": "n_groups",
    "mamba_d_state": "ssm_state_size",
    "mamba_d_conv": "conv_kernel",
    "mamba_conv_bias": "use_conv_bias",
    "mamba_proj_bias": "use_bias",
    "head_dim": "attention_head_dim",
}


def _normalize(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Resolve the inner size of Mamba-2 layers and the number of layers."""
    heads = whole(raw, "mamba_n_heads", MAX_HEADS, 128)
    inner = heads * whole(raw, "mamba_d_head", MAX_HIDDEN, 64)
    return {"mamba_d_ssm": inner, **raw, "num_hidden_layers": len(_kinds(raw))}


def _kinds(raw: Mapping[str, Any]) -> list[str]:
    """Return the kind of each layer: `mamba`, `attention`, `mlp` or `moe`."""
    listed = raw.get("layers_block_type") or raw.get("layer_types")
    if listed is None and isinstance(pattern := raw.get("hybrid_override_pattern"), str):
        listed = [_LETTERS.get(letter, letter) for letter in pattern]
    words = listed if isinstance(listed, list) else []
    kinds = [_WORDS.get(word, word) if isinstance(word, str) else "" for word in words]
    if not kinds or not {"mamba", "attention", "mlp", "moe"}.issuperset(kinds):
        raise ModelError(
            "config.json: layers_block_type isn't a list of mamba, attention, mlp and moe.",
            "Layers of other kinds aren't supported in this family.",
        )
    return kinds


def _blocks(config: ArchConfig) -> list[BlockSpec]:
    """Return blocks of one sublayer each: a Mamba-2 layer, attention, an MLP or experts."""
    kinds, norm = _kinds(config.raw), NormSpec("norm", config.hidden_size)
    blocks: dict[str, BlockSpec] = {}
    for kind in set(kinds):
        if kind == "mamba":
            blocks[kind] = BlockSpec(NormsSpec(pre=norm), (mamba2(config, "mixer"),), None)
        elif kind == "attention":
            # Without RoPE its rows keep the order that they are stored in.
            mixer = interleaved(attention(config, "mixer", bias=config.flag("attention_bias")))
            blocks[kind] = BlockSpec(NormsSpec(pre=norm), (replace(mixer, rope=None),), None)
        else:
            bias = config.flag("mlp_bias")
            dense = mlp(config, "mixer", bias=bias, names=UNGATED)
            layer = _experts(config, bias) if kind == "moe" else dense
            blocks[kind] = BlockSpec(NormsSpec(pre_mlp=norm), (), layer)
    return [blocks[kind] for kind in kinds]


def _experts(config: ArchConfig, bias: bool) -> MoeSpec:
    """Return experts with a sigmoid router and a shared expert; all without gates."""
    if config.has_expert_groups or config.raw.get("moe_latent_size") is not None:
        raise ModelError(
            "Experts in groups, or of another width than the model's, aren't supported.",
            "Choose Nemotron 3 Nano, or one without experts.",
        )
    shared = config.whole("moe_shared_expert_intermediate_size", MAX_HIDDEN, 7688)
    experts = moe(
        config,
        config.routing("n_routed_experts", 8, 2, Scoring.SIGMOID),
        config.expert_width(7688),
        "mixer",
        bias=bias,
        names=UNGATED,
        router_bias="gate.e_score_correction_bias",
        shared=mlp(config, "mixer.shared_experts", width=shared, bias=bias, names=UNGATED),
    )
    return replace(experts, router=replace(experts.router, has_bias=False))


def _model(_: ArchConfig) -> ModelFields:
    """Return the activation, squared ReLU."""
    return {"activation": ActivationSpec(Activation.RELU2)}


def _gguf_config(gguf: Gguf, _: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return kinds of layers: an MLP has a width, attention KV heads, Mamba-2 layers neither."""
    mlp = "moe" if gguf.of_model("expert_count") else "mlp"
    widths, kinds = per_layer(gguf, "feed_forward_length"), gguf_mixer_types(gguf)
    if len(widths) >= len(kinds):
        kinds = [mlp if width else kind for width, kind in zip(widths, kinds, strict=False)]
    return {"layers_block_type": kinds}


SPEC = Arch(
    "nemotron_h",
    _blocks,
    _model,
    defaults={"head_dim": 128},
    keys=_KEYS,
    normalize=_normalize,
    gguf=GgufArchitecture(
        "nemotron_h",
        aliases=("nemotron_h_moe",),
        tensors={
            **mamba_tensors("mixer"),
            "attn_norm": "norm",
            **{f"attn_{part}": f"mixer.{part}_proj" for part in ("q", "k", "v")},
            "attn_output": "mixer.o_proj",
            **mlp_tensors("mixer", parts=("up", "down")),
            **mlp_tensors("mixer.shared_experts", "_shexp", ("up", "down")),
            **expert_tensors("mixer."),
            "ffn_gate_inp": "mixer.gate",
            "exp_probs_b.bias": "mixer.gate.e_score_correction_bias",
        },
        keys={
            **MAMBA_KEYS,
            "layer_norm_epsilon": "attention.layer_norm_epsilon",
            "moe_shared_expert_intermediate_size": "expert_shared_feed_forward_length",
            "norm_topk_prob": "expert_weights_norm",
            "routed_scaling_factor": "expert_weights_scale",
            "n_group": "expert_group_count",
            "moe_latent_size": "moe_latent_size",
        },
        defaults={"hidden_act": "relu2", "partial_rotary_factor": 1.0},  # no layer has RoPE
        flags=MAMBA_FLAGS,
        config=_gguf_config,
        has_experts=True,
    ),
)
