"""Gemma 4's text models: heads of two sizes, shared keys and values, per-layer embeddings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from medusa_core.errors import ModelError
from medusa_core.models.arch.gemma2 import GGUF_SOFTCAPS
from medusa_core.models.architecture import (
    Arch,
    layer_kinds,
    layer_windows,
    local_theta,
    positive,
    whole,
)
from medusa_core.models.gguf_architecture import GgufArchitecture, expert_tensors, per_layer
from medusa_core.models.layer_shapes import LayerShape, RowShape, SharedRows, rows_read
from medusa_core.models.traits import Activation, Experts, NormPlaces, PerLayerEmbeddings, Traits
from medusa_core.system.files.gguf import Gguf

if TYPE_CHECKING:
    from medusa_core.models.config import ModelConfig
    from medusa_core.models.parts import BlockParts

_MOST_HEADS = 1 << 12
_MOST_WIDTH = 1 << 14
_MOST_TOKENS = 1 << 20
_MOST_INTERMEDIATE = 1 << 19
_EVERY = 6  # layers, of which the last one sees all, where a file doesn't say
_USUAL_PER_LAYER = 256  # numbers, where a file doesn't say
_STILL = 1e30  # stretches a pair so far that no position turns it, as GGUF files have it
# Before the experts, behind the MLP, behind the experts.
EXPERT_NORMS = (
    "pre_feedforward_layernorm_2",
    "post_feedforward_layernorm_1",
    "post_feedforward_layernorm_2",
)
_GLOBAL, _LOCAL = "full_attention", "sliding_attention"


def _as_usual(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Sizes of layers that see all in the usual places; those of layers with a window beside."""
    if raw.get("use_bidirectional_attention") == "all":
        raise ModelError(
            "Tokens of this model see those behind them: it can't write text.",
            "Choose a Gemma 4 that writes text, such as E2B or E4B.",
        )
    own = _of_global_layers(raw)
    local_dim, kv_heads = (
        whole(raw, "head_dim", _MOST_HEADS, 256),
        whole(raw, "num_key_value_heads", _MOST_HEADS, 4),
    )
    head_dim = whole(own, "head_dim", _MOST_HEADS, whole(raw, "global_head_dim", _MOST_HEADS, 512))
    named = "num_global_key_value_heads"
    global_kv = (
        whole(raw, named, _MOST_HEADS, kv_heads) if raw.get("attention_k_eq_v") else kv_heads
    )
    return {
        "sliding_window": 512,
        **raw,
        "rope_parameters": _ropes(raw, head_dim),
        "layer_types": list(_kinds(raw)),
        "head_dim": head_dim,
        "local_head_dim": local_dim,
        "num_global_key_value_heads": whole(own, "num_key_value_heads", _MOST_HEADS, global_kv),
    }


def _of_global_layers(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """What new files say of each layer that sees all; empty where a file says it otherwise."""
    found = raw.get("per_layer_config") or {}
    if not isinstance(found, Mapping):
        raise _mixed("per_layer_config")
    kinds = _kinds(raw)
    of_layers = [found.get(str(index), found.get(index, {})) for index in range(len(kinds))]
    own = [one for one, kind in zip(of_layers, kinds, strict=True) if kind == _GLOBAL]
    others = [one for one, kind in zip(of_layers, kinds, strict=True) if kind == _LOCAL]
    known = all(
        isinstance(one, Mapping) and one.keys() <= {"head_dim", "num_key_value_heads"}
        for one in of_layers
    )
    if not known or any(others) or any(one != own[0] for one in own):
        raise _mixed("per_layer_config")
    first: Mapping[str, Any] = own[0]
    return first


def _kinds(raw: Mapping[str, Any]) -> tuple[str, ...]:
    """The kinds of all layers; the last one sees all."""
    kinds = layer_kinds(raw, _EVERY)
    if not kinds:
        raise _mixed("num_hidden_layers")
    return (*kinds[:-1], _GLOBAL)


def _ropes(raw: Mapping[str, Any], head_dim: int) -> Mapping[str, Any]:
    """Proportional rope as factors: the pairs behind a head's first share aren't turned."""
    given = raw.get("rope_parameters")
    given = given if isinstance(given, Mapping) else {}
    local = given.get(_LOCAL, {})
    turned = given.get(_GLOBAL, {"rope_type": "proportional", "partial_rotary_factor": 0.25})
    if not isinstance(local, Mapping) or not isinstance(turned, Mapping):
        raise _mixed("rope_parameters")
    if (kind := local.get("rope_type", "default")) != "default":
        raise ModelError(
            f"Layers with a window that turn by {kind!r:.40} aren't supported.",
            "Choose Gemma 4 as its makers published it.",
        )
    theta = positive(turned, "rope_theta", 1e6)
    if turned.get("rope_type") == "proportional":
        share = min(1.0, positive(turned, "partial_rotary_factor", 1.0) or 1.0)
        factor, pairs = positive(turned, "factor", 1.0) or 1.0, head_dim // 2
        num_turned = int(share * head_dim // 2)
        factors = [factor] * num_turned + [_STILL] * (pairs - num_turned)
        turned = {"rope_type": "factors", "factors": factors}
    return {_GLOBAL: {**turned, "rope_theta": theta}, _LOCAL: local}


def _traits(raw: Mapping[str, Any]) -> Traits:
    kinds, bias = _kinds(raw), bool(raw.get("attention_bias", False))
    layers = _layers(raw, kinds)
    width = positive(raw, "hidden_size", 1.0) or 1.0
    takes_keys = bool(raw.get("attention_k_eq_v", False))
    return Traits(
        qkv_bias=bias,
        output_bias=bias,
        qk_norm=True,
        norm_places=NormPlaces.AROUND,
        activation=Activation.GELU_TANH,
        embedding_scale=math.sqrt(width),
        attention_scale=1.0,
        score_cap=positive(raw, "final_logit_softcapping", None),
        windows=layer_windows(raw, kinds),
        local_theta=local_theta(raw, 10000.0),
        scales_local=False,
        is_tied=True,
        layers=layers,
        mlp_widths=_mlp_widths(raw, layers),
        per_layer=_per_layer(raw),
        keys_are_values=frozenset(
            index for index, kind in enumerate(kinds) if takes_keys and kind == _GLOBAL
        ),
        normalises_values=True,
        scales_layers=True,
        experts=_experts(raw),
    )


def _experts(raw: Mapping[str, Any]) -> Experts | None:
    """They stand beside the MLP of every layer."""
    if not raw.get("enable_moe_block"):
        return None
    count = whole(raw, "num_experts", _MOST_HEADS, 128)
    return Experts(
        count,
        whole(raw, "top_k_experts", _MOST_HEADS, 8),
        whole(raw, "moe_intermediate_size", _MOST_INTERMEDIATE, 704),
    )


def _layers(raw: Mapping[str, Any], kinds: tuple[str, ...]) -> tuple[LayerShape, ...]:
    """The last layers read the keys and values of the last one of their kind before them."""
    most, kv_heads = _MOST_HEADS, whole(raw, "num_key_value_heads", _MOST_HEADS, 4)
    shape_of = {
        _GLOBAL: RowShape(
            whole(raw, "num_global_key_value_heads", most, kv_heads),
            whole(raw, "head_dim", most, 512),
        ),
        _LOCAL: RowShape(kv_heads, whole(raw, "local_head_dim", most, 256)),
    }
    heads = whole(raw, "num_attention_heads", most, 8)
    for shape in shape_of.values():
        if heads % shape.num_kv_heads or shape.head_dim % 2:
            raise ModelError(
                f"{heads} attention heads can't share {shape.num_kv_heads} KV heads of "
                f"{shape.head_dim} numbers.",
                "Download config.json again.",
            )
    num_own = len(kinds) - _num_shared(raw, len(kinds))
    last = {kind: index for index, kind in enumerate(kinds[:num_own])}
    if any(kind not in last for kind in kinds[num_own:]):
        raise _mixed("num_kv_shared_layers")
    return tuple(
        shape_of[kind] if index < num_own else SharedRows(last[kind])
        for index, kind in enumerate(kinds)
    )


def _num_shared(raw: Mapping[str, Any], num_layers: int) -> int:
    count = raw.get("num_kv_shared_layers") or 0
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count < num_layers:
        raise _mixed("num_kv_shared_layers")
    return count


def _mlp_widths(raw: Mapping[str, Any], layers: tuple[LayerShape, ...]) -> tuple[int, ...]:
    """Layers that share keys and values may have an MLP of twice the width."""
    if not raw.get("use_double_wide_mlp", False):
        return ()
    width = whole(raw, "intermediate_size", _MOST_INTERMEDIATE, 9216)
    return tuple(2 * width if isinstance(shape, SharedRows) else width for shape in layers)


def _per_layer(raw: Mapping[str, Any]) -> PerLayerEmbeddings | None:
    usual = _USUAL_PER_LAYER if raw.get("model_type") == SPEC.name else 0
    if not raw.get("hidden_size_per_layer_input", usual):
        return None
    tokens = whole(raw, "vocab_size", _MOST_TOKENS, 1)
    found = PerLayerEmbeddings(
        whole(raw, "hidden_size_per_layer_input", _MOST_WIDTH, _USUAL_PER_LAYER),
        whole(raw, "vocab_size_per_layer_input", _MOST_TOKENS, tokens),
    )
    if found.vocab_size < tokens:
        raise ModelError(
            f"config.json: {found.vocab_size:,} of {tokens:,} tokens have per-layer embeddings.",
            "Download config.json again.",
        )
    return found


def _mixed(key: str) -> ModelError:
    return ModelError(
        f"config.json: {key} describes layers in another way than Gemma 4 has them.",
        "Download config.json again, or choose Gemma 4 as its makers published it.",
    )


def _parts(config: ModelConfig, index: int) -> BlockParts:
    """The shared parts with this layer's heads, and the way in for its per-layer embeddings."""
    from dataclasses import replace

    from medusa_core.models.blocks.tensors import LinearSpec, TensorRows
    from medusa_core.models.parts import shared_parts

    parts, traits = shared_parts(config, index), config.traits
    assert parts.qkv is not None
    assert parts.output is not None
    read = rows_read(config.layers, index)
    assert read is not None
    owner, rows = read
    attention, hidden, size = f"{parts.prefix}.self_attn", config.hidden_size, rows.head_dim
    inner, kv = config.num_heads * size, rows.num_kv_heads * size
    pieces = [TensorRows(f"{attention}.q_proj", inner, rotates=True, head_dim=size)]
    norms = {name: count for name, count in parts.vectors.items() if attention not in name}
    norms[f"{attention}.q_norm"] = size
    if owner == index:
        pieces.append(TensorRows(f"{attention}.k_proj", kv, rotates=True, head_dim=size))
        norms[f"{attention}.k_norm"] = size
        if index not in traits.keys_are_values:
            pieces.append(TensorRows(f"{attention}.v_proj", kv))
    gates: tuple[LinearSpec, ...] = ()
    if traits.per_layer is not None:
        name, width = f"layers.{index}", traits.per_layer.width
        gate = TensorRows(f"{parts.prefix}.per_layer_input_gate", width)
        projection = TensorRows(f"{parts.prefix}.per_layer_projection", hidden)
        gates = (
            LinearSpec(f"{name}.per_layer_gate", (gate,), hidden),
            LinearSpec(f"{name}.per_layer_projection", (projection,), width),
        )
        norms[f"{parts.prefix}.post_per_layer_input_norm"] = hidden
    with_experts = _with_experts(config, replace(parts, vectors=norms), index)
    return replace(
        with_experts,
        qkv=replace(parts.qkv, pieces=tuple(pieces)),
        output=replace(parts.output, columns=inner),
        mixer=gates,
        more={f"{parts.prefix}.layer_scalar": (1,), **with_experts.more},
    )


def _with_experts(config: ModelConfig, parts: BlockParts, index: int) -> BlockParts:
    """The parts with an MLP and, where a model has them, experts beside it."""
    from dataclasses import replace

    from medusa_core.models.blocks.tensors import LinearSpec, TensorRows
    from medusa_core.models.parts import mlp_parts

    experts, hidden = config.traits.experts, config.hidden_size
    if experts is None:
        return parts
    name, prefix = f"layers.{index}", parts.prefix
    router = TensorRows(f"{prefix}.router.proj", experts.count)
    norms = {f"{prefix}.{norm}": hidden for norm in EXPERT_NORMS}
    return replace(
        parts,
        vectors=parts.vectors | norms,
        mlp=mlp_parts(config, name, f"{prefix}.mlp", config.mlp_width(index)),
        router=LinearSpec(f"{name}.router", (router,), hidden, stays_dense=True),
        experts=tuple(
            mlp_parts(config, f"{name}.experts.{one}", f"{prefix}.experts.{one}", experts.width)
            for one in range(experts.count)
        ),
        more={
            f"{prefix}.router.scale": (hidden,),
            f"{prefix}.router.per_expert_scale": (experts.count,),
        },
    )


def _gguf_config(gguf: Gguf, known: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return sizes; those of layers with full attention have keys of their own.

    Raises:
        ModelError: Sizes differ otherwise, or layers with a window have partial RoPE.
    """
    kinds = known.get("layer_types") or []
    local_dim = gguf.of_model("attention.key_length_swa")
    if gguf.of_model("rope.dimension_count_swa") not in (None, local_dim):
        raise ModelError(
            "Of this Gemma 4 layers with a window turn a part of a head, which isn't supported.",
            "Choose another file of this model.",
        )
    heads = _gguf_kv_heads(gguf, kinds)
    table = gguf.tensors.get("per_layer_token_embd.weight")
    scaling = known.get("rope_scaling") or {"rope_type": "default"}
    return {
        "head_dim": local_dim or known.get("head_dim"),
        "global_head_dim": known.get("head_dim"),
        "num_key_value_heads": heads[_LOCAL],
        "num_global_key_value_heads": heads[_GLOBAL],
        "attention_k_eq_v": any(
            f"blk.{index}.attn_k.weight" in gguf.tensors
            and f"blk.{index}.attn_v.weight" not in gguf.tensors
            for index, kind in enumerate(kinds)
            if kind == _GLOBAL
        ),
        "vocab_size_per_layer_input": None if table is None else table.shape[0],
        "rope_scaling": None,
        "rope_parameters": {
            _GLOBAL: {**scaling, "rope_theta": known["rope_theta"]},
            _LOCAL: {"rope_theta": known["rope_local_base_freq"]},
        },
        **_gguf_widths(gguf, known),
    }


def _gguf_kv_heads(gguf: Gguf, kinds: list[str]) -> dict[str, object]:
    """Return the number of KV heads in layers of each kind."""
    numbers = per_layer(gguf, "attention.head_count_kv")
    if len(numbers) < 2:
        return dict.fromkeys((_LOCAL, _GLOBAL), gguf.of_model("attention.head_count_kv"))
    heads: dict[str, object] = {}
    for kind in (_LOCAL, _GLOBAL):
        found = {number for number, its in zip(numbers, kinds, strict=False) if its == kind}
        if len(numbers) != len(kinds) or len(found) > 1:
            raise _layers_differ()
        heads[kind] = next(iter(found), None)
    return heads


def _gguf_widths(gguf: Gguf, known: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the width of MLPs, which may be doubled in layers that share keys and values."""
    if "intermediate_size" in known:
        return {}
    widths, shared = per_layer(gguf, "feed_forward_length"), known["num_kv_shared_layers"]
    num_own = len(widths) - shared if isinstance(shared, int) else 0
    if not widths or widths != [
        widths[0] * (1 if index < num_own else 2) for index in range(len(widths))
    ]:
        raise _layers_differ()
    return {"intermediate_size": widths[0], "use_double_wide_mlp": True}


def _layers_differ() -> ModelError:
    return ModelError(
        "The layers of this model differ in their sizes.", "Choose one whose layers are alike."
    )


SPEC = Arch(
    "gemma4_text",
    _traits,
    parts=_parts,
    as_usual=_as_usual,
    gguf=GgufArchitecture(
        "gemma4",
        tensors={
            "ffn_norm": "pre_feedforward_layernorm",
            "inp_gate": "per_layer_input_gate",
            "proj": "per_layer_projection",
            "post_norm": "post_per_layer_input_norm",
            "per_layer_token_embd": "model.embed_tokens_per_layer",
            "per_layer_model_proj": "model.per_layer_model_projection",
            "per_layer_proj_norm": "model.per_layer_projection_norm",
            "layer_output_scale.weight": "layer_scalar",
            "ffn_gate_inp": "router.proj",
            "ffn_gate_inp.scale": "router.scale",
            **expert_tensors("", ("gate", "up", "gate_up", "down")),
            "ffn_down_exps.scale": "router.per_expert_scale",
            "pre_ffw_norm_2": EXPERT_NORMS[0],
            "post_ffw_norm_1": EXPERT_NORMS[1],
            "post_ffw_norm_2": EXPERT_NORMS[2],
        },
        keys={
            **GGUF_SOFTCAPS,
            "num_kv_shared_layers": "attention.shared_kv_layers",
            "hidden_size_per_layer_input": "embedding_length_per_layer_input",
            "rope_local_base_freq": "rope.freq_base_swa",
            "top_k_experts": "expert_used_count",
        },
        defaults={
            "sliding_window": 512,
            "rope_theta": 1e6,
            "rope_local_base_freq": 1e4,
            "num_kv_shared_layers": 0,
            "hidden_size_per_layer_input": 0,
        },
        flags={"enable_moe_block": "ffn_gate_inp.weight"},
        full_attention_every=_EVERY,
        config=_gguf_config,
        reads=frozenset(
            ("attention.key_length_swa", "attention.value_length_swa", "rope.dimension_count_swa")
        ),
        per_layer_keys=frozenset(("feed_forward_length", "attention.head_count_kv")),
        has_experts=True,
    ),
)
