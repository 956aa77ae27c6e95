"""Nemotron-H: every layer is a Mamba-2 layer, attention, or an MLP without a gate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from medusa_core.errors import ModelError
from medusa_core.models.family import FamilySpec, whole
from medusa_core.models.layer_shapes import LayerShape, NoShape
from medusa_core.models.mamba import mamba_trait, row_shape, state_shape
from medusa_core.models.traits import Activation, Traits

if TYPE_CHECKING:
    from medusa_core.models.config import ModelConfig
    from medusa_core.models.parts import BlockParts

_MOST_HEADS = 1 << 12
_MOST_WIDTH = 1 << 17
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
    return {"head_dim": 128, **named, "mamba_d_ssm": inner, "num_hidden_layers": len(kinds)}


def _kinds(raw: Mapping[str, Any]) -> list[str]:
    """What each layer is: `mamba`, `attention` or `mlp`."""
    listed = raw.get("layers_block_type") or raw.get("layer_types")
    if listed is None and isinstance(pattern := raw.get("hybrid_override_pattern"), str):
        listed = [_LETTERS.get(letter, letter) for letter in pattern]
    words = listed if isinstance(listed, list) else []
    kinds = [_WORDS.get(word, word) if isinstance(word, str) else "" for word in words]
    if "moe" in kinds:
        raise ModelError(
            "This Nemotron has experts, which aren't supported in its family.",
            "Choose one without, such as Nemotron Nano 9B v2.",
        )
    if not kinds or not {"mamba", "attention", "mlp"}.issuperset(kinds):
        raise ModelError(
            "config.json: layers_block_type isn't a list of mamba, attention and mlp.",
            "Layers of other kinds aren't supported in this family.",
        )
    return kinds


def _traits(raw: Mapping[str, Any]) -> Traits:
    kinds, bias = _kinds(raw), bool(raw.get("attention_bias", False))
    shapes: dict[str, LayerShape] = {
        "mamba": state_shape(raw),
        "attention": row_shape(raw),
        "mlp": NoShape(),
    }
    return Traits(
        qkv_bias=bias,
        output_bias=bias,
        mlp_bias=bool(raw.get("mlp_bias", False)),
        activation=Activation.RELU2,
        unturned=frozenset(range(len(kinds))),
        mamba=replace(mamba_trait(raw), name="mixer"),
        layers=tuple(shapes[kind] for kind in kinds),
    )


def _parts(config: ModelConfig, index: int) -> BlockParts:
    """One norm, and one of the three behind it."""
    from medusa_core.models.mamba import with_mamba
    from medusa_core.models.parts import BlockParts, LinearPart, PartPiece

    prefix, name = f"model.layers.{index}", f"layers.{index}"
    hidden, traits = config.hidden_size, config.traits

    def part(own: str, pieces: dict[str, int], columns: int, has_bias: bool) -> LinearPart:
        rows = tuple(PartPiece(f"{prefix}.mixer.{one}", size) for one, size in pieces.items())
        return LinearPart(f"{name}.{own}", rows, columns, has_bias)

    block = BlockParts(prefix, {f"{prefix}.norm": hidden}, qkv=None, output=None, mlp=None)
    shape = config.layers[index]
    if isinstance(shape, NoShape):
        from medusa_core.models.parts import MlpParts

        width = config.intermediate_size
        up = part("gate_up", {"up_proj": width}, hidden, traits.mlp_bias)
        return replace(
            block, mlp=MlpParts(up, part("down", {"down_proj": hidden}, width, traits.mlp_bias))
        )
    if (mixed := with_mamba(block, config, index)).mixer:
        return mixed
    inner, kv = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim
    qkv = {"q_proj": inner, "k_proj": kv, "v_proj": kv}
    return replace(
        block,
        qkv=part("qkv", qkv, hidden, traits.qkv_bias),
        output=part("output", {"o_proj": hidden}, inner, traits.output_bias),
    )


SPEC = FamilySpec("nemotron_h", _traits, parts=_parts, as_usual=_as_usual)
