"""Nemotron-H: every layer is a Mamba-2 layer, attention, an MLP without a gate, or experts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from medusa_core.errors import ModelError
from medusa_core.models.architecture import Arch, positive, whole
from medusa_core.models.gguf_architecture import (
    GgufArchitecture,
    expert_tensors,
    mixer_types,
    mlp_tensors,
    per_layer,
)
from medusa_core.models.layer_shapes import LayerShape, NoShape
from medusa_core.models.mamba import (
    MAMBA_FLAGS,
    MAMBA_KEYS,
    mamba_tensors,
    mamba_trait,
    row_shape,
    state_shape,
)
from medusa_core.models.traits import Activation, Experts, Traits
from medusa_core.system.files.gguf import Gguf

if TYPE_CHECKING:
    from medusa_core.models.config import ModelConfig
    from medusa_core.models.parts import BlockParts, MlpParts

_MOST_HEADS = 1 << 12
_MOST_WIDTH = 1 << 17
_MOST_EXPERTS = 1 << 12
_LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
_WORDS = {"linear_attention": "mamba", "full_attention": "attention"}
# What others call otherwise, by their names.
_NAMES = {
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


def _as_usual(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    usual = {theirs: raw[own] for theirs, own in _NAMES.items() if own in raw}
    named = raw | usual if isinstance(raw, dict) else {**raw, **usual}
    inner = whole(named, "mamba_n_heads", _MOST_HEADS, 128) * whole(
        named, "mamba_d_head", _MOST_WIDTH, 64
    )
    kinds = _kinds(raw)
    return {"head_dim": 128, "mamba_d_ssm": inner, **named, "num_hidden_layers": len(kinds)}


def _kinds(raw: Mapping[str, Any]) -> list[str]:
    """What each layer is: `mamba`, `attention`, `mlp` or `moe`."""
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


def _traits(raw: Mapping[str, Any]) -> Traits:
    kinds, bias = _kinds(raw), bool(raw.get("attention_bias", False))
    shapes: dict[str, LayerShape] = {
        "mamba": state_shape(raw),
        "attention": row_shape(raw),
        "mlp": NoShape(),
        "moe": NoShape(),
    }
    return Traits(
        qkv_bias=bias,
        output_bias=bias,
        mlp_bias=bool(raw.get("mlp_bias", False)),
        activation=Activation.RELU2,
        unturned=frozenset(range(len(kinds))),
        mamba=replace(mamba_trait(raw), name="mixer"),
        layers=tuple(shapes[kind] for kind in kinds),
        experts=_experts(raw, kinds),
    )


def _experts(raw: Mapping[str, Any], kinds: list[str]) -> Experts | None:
    if "moe" not in kinds:
        return None
    count = whole(raw, "n_routed_experts", _MOST_EXPERTS, 8)
    chosen = whole(raw, "num_experts_per_tok", _MOST_EXPERTS, 2)
    groups = whole(raw, "n_group", _MOST_EXPERTS, 1), whole(raw, "topk_group", _MOST_EXPERTS, 1)
    if groups != (1, 1) or raw.get("moe_latent_size") is not None:
        raise ModelError(
            "Experts in groups, or of another width than the model's, aren't supported.",
            "Choose Nemotron 3 Nano, or one without experts.",
        )
    return Experts(
        count,
        chosen,
        whole(raw, "moe_intermediate_size", _MOST_WIDTH, 7688),
        normalises=bool(raw.get("norm_topk_prob", True)),
        plain_layers=frozenset(index for index, kind in enumerate(kinds) if kind != "moe"),
        is_sigmoid=True,
        bias="gate.e_score_correction_bias",
        scale=positive(raw, "routed_scaling_factor", 1.0) or 1.0,
        shared_width=whole(raw, "moe_shared_expert_intermediate_size", _MOST_WIDTH, 7688),
    )


def _parts(config: ModelConfig, index: int) -> BlockParts:
    """One norm, and one of the four behind it."""
    from medusa_core.models.mamba import with_mamba
    from medusa_core.models.parts import BlockParts

    prefix, traits = f"model.layers.{index}", config.traits
    norm = {f"{prefix}.norm": config.hidden_size}
    block = BlockParts(prefix, norm, qkv=None, output=None, mlp=None)
    if not isinstance(config.layers[index], NoShape):
        mixed = with_mamba(block, config, index)
        return mixed if mixed.mixer else _with_attention(block, config, index)
    if traits.experts is not None and index not in traits.experts.plain_layers:
        return _with_experts(block, traits.experts, config, index)
    mlp = _mlp(config, f"layers.{index}", f"{prefix}.mixer", config.intermediate_size)
    return replace(block, mlp=mlp)


def _with_attention(block: BlockParts, config: ModelConfig, index: int) -> BlockParts:
    from medusa_core.models.blocks.tensors import LinearSpec, TensorRows

    mixer, name, traits = f"{block.prefix}.mixer", f"layers.{index}", config.traits
    inner, kv = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim
    qkv = tuple(
        TensorRows(f"{mixer}.{one}_proj", rows)
        for one, rows in (("q", inner), ("k", kv), ("v", kv))
    )
    output = (TensorRows(f"{mixer}.o_proj", config.hidden_size),)
    return replace(
        block,
        qkv=LinearSpec(f"{name}.qkv", qkv, config.hidden_size, traits.qkv_bias),
        output=LinearSpec(f"{name}.output", output, inner, traits.output_bias),
    )


def _with_experts(
    block: BlockParts, experts: Experts, config: ModelConfig, index: int
) -> BlockParts:
    """A router, experts, and an MLP that all rows pass through."""
    from medusa_core.models.blocks.tensors import LinearSpec, TensorRows

    mixer, name = f"{block.prefix}.mixer", f"layers.{index}"
    router = (TensorRows(f"{mixer}.gate", experts.count),)
    return replace(
        block,
        mlp=_mlp(config, name, f"{mixer}.shared_experts", experts.shared_width),
        router=LinearSpec(f"{name}.router", router, config.hidden_size, stays_dense=True),
        experts=tuple(
            _mlp(config, f"{name}.experts.{one}", f"{mixer}.experts.{one}", experts.width)
            for one in range(experts.count)
        ),
        more={f"{mixer}.{experts.bias}": (experts.count,)},
    )


def _mlp(config: ModelConfig, name: str, prefix: str, width: int) -> MlpParts:
    """An MLP without a gate."""
    from medusa_core.models.blocks.tensors import LinearSpec, TensorRows
    from medusa_core.models.parts import MlpParts

    hidden, has_bias = config.hidden_size, config.traits.mlp_bias
    up, down = (TensorRows(f"{prefix}.up_proj", width), TensorRows(f"{prefix}.down_proj", hidden))
    return MlpParts(
        LinearSpec(f"{name}.gate_up", (up,), hidden, has_bias),
        LinearSpec(f"{name}.down", (down,), width, has_bias),
    )


def _gguf_config(gguf: Gguf, _: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return kinds of layers: an MLP has a width, attention KV heads, Mamba-2 layers neither."""
    mlp = "moe" if gguf.of_model("expert_count") else "mlp"
    widths, kinds = per_layer(gguf, "feed_forward_length"), mixer_types(gguf)
    if len(widths) >= len(kinds):
        kinds = [mlp if width else kind for width, kind in zip(widths, kinds, strict=False)]
    return {"layers_block_type": kinds}


SPEC = Arch(
    "nemotron_h",
    _traits,
    parts=_parts,
    as_usual=_as_usual,
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
