"""Gemma 4's text models: heads of two sizes, shared keys and values, per-layer embeddings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from medusa_core.errors import ModelError
from medusa_core.i18n import tr
from medusa_core.models.arch.gemma2 import GGUF_SOFTCAPS
from medusa_core.models.architecture import (
    AGAIN,
    MAX_EXPERTS,
    MAX_HEADS,
    MAX_TOKENS,
    Arch,
    ArchConfig,
    LocalRope,
    ModelFields,
    PerLayerEmbeddings,
    layer_types,
    local_theta,
    positive,
    whole,
)
from medusa_core.models.blocks.compose import linear, mlp, moe, sandwich_norms
from medusa_core.models.blocks.spec import (
    Activation,
    ActivationSpec,
    AttentionSpec,
    BlockSpec,
    NormSpec,
    ParallelExpertsSpec,
    PerLayerGateSpec,
    RoutingSpec,
)
from medusa_core.models.blocks.tensors import LinearSpec, TensorRows
from medusa_core.models.gguf_architecture import GgufArchitecture, expert_tensors, per_layer
from medusa_core.system.files.gguf import Gguf
from medusa_core.system.files.json_file import is_whole

_MAX_WIDTH = 1 << 14
_PERIOD = 6  # of layers with full attention
_PER_LAYER_WIDTH = 256  # hidden_size_per_layer_input of E models where config.json lacks it
_NEVER = 1e30  # scales a pair so far that no position rotates it, as GGUF files have it
_GLOBAL, _LOCAL = "full_attention", "sliding_attention"
# Before the experts, after the MLP, after the experts.
EXPERT_NORMS = (
    "pre_feedforward_layernorm_2",
    "post_feedforward_layernorm_1",
    "post_feedforward_layernorm_2",
)


def _normalize(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give the generic keys the sizes of full-attention layers, and `local_…` the windowed ones."""
    if raw.get("use_bidirectional_attention") == "all":
        raise ModelError(
            "This model attends in both directions: it can't generate text.",
            "Choose a Gemma 4 that writes text, such as E2B or E4B.",
        )
    own = _global_settings(raw)
    local_dim, kv_heads = (
        whole(raw, "head_dim", MAX_HEADS, 256),
        whole(raw, "num_key_value_heads", MAX_HEADS, 4),
    )
    head_dim = whole(own, "head_dim", MAX_HEADS, whole(raw, "global_head_dim", MAX_HEADS, 512))
    named = "num_global_key_value_heads"
    global_kv = whole(raw, named, MAX_HEADS, kv_heads) if raw.get("attention_k_eq_v") else kv_heads
    return {
        "sliding_window": 512,
        **raw,
        "rope_parameters": _ropes(raw, head_dim),
        "layer_types": list(_layer_types(raw)),
        "head_dim": head_dim,
        "local_head_dim": local_dim,
        "num_global_key_value_heads": whole(own, "num_key_value_heads", MAX_HEADS, global_kv),
    }


def _global_settings(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return `per_layer_config` of layers with full attention; empty if there is none."""
    found = raw.get("per_layer_config") or {}
    if not isinstance(found, Mapping):
        raise _mixed("per_layer_config")
    kinds = _layer_types(raw)
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


def _layer_types(raw: Mapping[str, Any]) -> tuple[str, ...]:
    """Return `layer_types`; the last layer has full attention."""
    kinds = layer_types(raw, _PERIOD)
    if not kinds:
        raise _mixed("num_hidden_layers")
    return (*kinds[:-1], _GLOBAL)


def _ropes(raw: Mapping[str, Any], head_dim: int) -> Mapping[str, Any]:
    """Return proportional RoPE as factors, with infinite ones for unrotated pairs."""
    given = raw.get("rope_parameters")
    given = given if isinstance(given, Mapping) else {}
    local = given.get(_LOCAL, {})
    rotated = given.get(_GLOBAL, {"rope_type": "proportional", "partial_rotary_factor": 0.25})
    if not isinstance(local, Mapping) or not isinstance(rotated, Mapping):
        raise _mixed("rope_parameters")
    if (kind := local.get("rope_type", "default")) != "default":
        raise ModelError(
            tr("Sliding-window layers with RoPE of type {0:.40} aren't supported.", repr(kind)),
            "Choose Gemma 4 as its makers published it.",
        )
    theta = positive(rotated, "rope_theta", 1e6)
    if rotated.get("rope_type") == "proportional":
        share = min(1.0, positive(rotated, "partial_rotary_factor", 1.0) or 1.0)
        factor, pairs = positive(rotated, "factor", 1.0) or 1.0, head_dim // 2
        num_rotated = int(share * head_dim // 2)
        factors = [factor] * num_rotated + [_NEVER] * (pairs - num_rotated)
        rotated = {"rope_type": "factors", "factors": factors}
    return {_GLOBAL: {**rotated, "rope_theta": theta}, _LOCAL: local}


def _blocks(config: ArchConfig) -> list[BlockSpec]:
    """Return the blocks; the last layers read an earlier layer's KV cache."""
    kinds = _layer_types(config.raw)
    sources = _kv_layers(config, kinds)
    is_wide = config.flag("use_double_wide_mlp")
    embeddings = _per_layer_embeddings(config)
    return [
        BlockSpec(
            sandwich_norms(config),
            (_attention(config, kind, source),),
            mlp(config, width=config.intermediate_size * (1 + (is_wide and source is not None))),
            parallel_experts=_experts(config),
            per_layer=None if embeddings is None else _per_layer_gate(config, embeddings.width),
            layer_scalar="layer_scalar",
        )
        for kind, source in zip(kinds, sources, strict=True)
    ]


def _model(config: ArchConfig) -> ModelFields:
    """Return model settings: local RoPE, soft-capped logits, per-layer embeddings."""
    local = LocalRope(local_theta(config.raw, 10000.0), _local_head_dim(config))
    return {
        "activation": ActivationSpec(Activation.GELU_TANH),
        "embedding_multiplier": math.sqrt(config.hidden_size),
        "final_logit_softcapping": config.optional("final_logit_softcapping"),
        "local_rope": local,
        "per_layer_embeddings": _per_layer_embeddings(config),
    }


def _local_head_dim(config: ArchConfig) -> int:
    """Return the head size of sliding-window layers."""
    return config.whole("local_head_dim", MAX_HEADS, 256)


def _attention(config: ArchConfig, kind: str, kv_layer: int | None) -> AttentionSpec:
    """Return attention of a layer type, with its own KV cache or an earlier layer's."""
    is_global, bias, heads = kind == _GLOBAL, config.flag("attention_bias"), config.num_heads
    size, kv_heads = _local_head_dim(config), config.num_kv_heads
    if is_global:
        size = config.head_dim
        kv_heads = config.whole("num_global_key_value_heads", MAX_HEADS, kv_heads)
    if heads % kv_heads or size % 2:
        raise ModelError(
            tr(
                "{0} attention heads can't share {1} KV heads of {2} numbers.",
                heads,
                kv_heads,
                size,
            ),
            AGAIN,
        )
    inner, kv, owns_kv = heads * size, kv_heads * size, kv_layer is None
    k_eq_v = owns_kv and is_global and config.flag("attention_k_eq_v")
    pieces = [TensorRows("self_attn.q_proj", inner, rotates=True, head_dim=size)]
    if owns_kv:
        pieces.append(TensorRows("self_attn.k_proj", kv, rotates=True, head_dim=size))
    if owns_kv and not k_eq_v:
        pieces.append(TensorRows("self_attn.v_proj", kv))
    unread = (f"self_attn.{name}.weight" for name in ("k_proj", "v_proj", "k_norm"))
    return AttentionSpec(
        qkv=LinearSpec("qkv", tuple(pieces), config.hidden_size, bias),
        output=linear("output", "self_attn.o_proj", config.hidden_size, inner, bias),
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=size,
        rotary_dim=size,
        scale=1.0,
        rope=0 if is_global else 1,
        sliding_window=None if is_global else config.sliding_window,
        q_norm=NormSpec("self_attn.q_norm", size),
        k_norm=NormSpec("self_attn.k_norm", size) if owns_kv else None,
        v_norm=True,
        kv_layer=kv_layer,
        k_eq_v=k_eq_v,
        unread=() if owns_kv else tuple(unread),
    )


def _kv_layers(config: ArchConfig, kinds: Sequence[str]) -> list[int | None]:
    """Return the layer whose keys and values each layer reads; None for its own.

    The last layers read those of the last one of their kind before them.
    """
    count = config.raw.get("num_kv_shared_layers") or 0
    if not is_whole(count, 0, len(kinds) - 1):
        raise _mixed("num_kv_shared_layers")
    num_own = len(kinds) - count
    last = {kind: index for index, kind in enumerate(kinds[:num_own])}
    if any(kind not in last for kind in kinds[num_own:]):
        raise _mixed("num_kv_shared_layers")
    return [None if index < num_own else last[kind] for index, kind in enumerate(kinds)]


def _experts(config: ArchConfig) -> ParallelExpertsSpec | None:
    """Return experts that run in parallel to the MLP; None in dense models."""
    if not config.flag("enable_moe_block"):
        return None
    routing = RoutingSpec(
        config.whole("num_experts", MAX_EXPERTS, 128), config.whole("top_k_experts", MAX_EXPERTS, 8)
    )
    experts = moe(config, routing, config.expert_width(704), "", router="router.proj")
    pre, post_mlp, post = (NormSpec(name, config.hidden_size) for name in EXPERT_NORMS)
    return ParallelExpertsSpec(
        moe=replace(experts, expert_scales="router.per_expert_scale"),
        pre_norm=pre,
        post_mlp_norm=post_mlp,
        post_norm=post,
        router_scale="router.scale",
    )


def _per_layer_embeddings(config: ArchConfig) -> PerLayerEmbeddings | None:
    """Return the sizes of per-layer embeddings; None without."""
    default = _PER_LAYER_WIDTH if config.raw.get("model_type") == SPEC.name else 0
    if not config.raw.get("hidden_size_per_layer_input", default):
        return None
    found = PerLayerEmbeddings(
        config.whole("hidden_size_per_layer_input", _MAX_WIDTH, _PER_LAYER_WIDTH),
        config.whole("vocab_size_per_layer_input", MAX_TOKENS, config.vocab_size),
    )
    if found.vocab_size < config.vocab_size:
        raise ModelError(
            tr(
                "config.json: {0:,} of {1:,} tokens have per-layer embeddings.",
                found.vocab_size,
                config.vocab_size,
            ),
            AGAIN,
        )
    return found


def _per_layer_gate(config: ArchConfig, width: int) -> PerLayerGateSpec:
    """Return the projections by which a block mixes its per-layer embedding in."""
    hidden = config.hidden_size
    return PerLayerGateSpec(
        linear("per_layer_gate", "per_layer_input_gate", width, hidden),
        linear("per_layer_projection", "per_layer_projection", hidden, width),
        NormSpec("post_per_layer_input_norm", hidden),
    )


def _mixed(key: str) -> ModelError:
    """Make the error for layers that Gemma 4 doesn't have."""
    return ModelError(
        tr("config.json: {0} describes layers in another way than Gemma 4 has them.", key),
        "Download config.json again, or choose Gemma 4 as its makers published it.",
    )


def _gguf_config(gguf: Gguf, raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return sizes of full-attention layers, and those of windowed ones under own keys.

    Raises:
        ModelError: Sizes differ otherwise, or layers with a window have partial RoPE.
    """
    kinds = raw.get("layer_types") or []
    local_dim = gguf.of_model("attention.key_length_swa")
    if gguf.of_model("rope.dimension_count_swa") not in (None, local_dim):
        raise ModelError(
            "Of this Gemma 4 layers with a window turn a part of a head, which isn't supported.",
            "Choose another file of this model.",
        )
    heads = _gguf_kv_heads(gguf, kinds)
    table = gguf.tensors.get("per_layer_token_embd.weight")
    scaling = raw.get("rope_scaling") or {"rope_type": "default"}
    return {
        "head_dim": local_dim or raw.get("head_dim"),
        "global_head_dim": raw.get("head_dim"),
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
            _GLOBAL: {**scaling, "rope_theta": raw["rope_theta"]},
            _LOCAL: {"rope_theta": raw["rope_local_base_freq"]},
        },
        **_gguf_widths(gguf, raw),
    }


def _gguf_kv_heads(gguf: Gguf, kinds: list[str]) -> dict[str, object]:
    """Return the number of KV heads in layers of each kind."""
    numbers = per_layer(gguf, "attention.head_count_kv")
    if len(numbers) < 2:
        return dict.fromkeys((_LOCAL, _GLOBAL), gguf.of_model("attention.head_count_kv"))
    heads: dict[str, object] = {}
    for kind in (_LOCAL, _GLOBAL):
        found = {
            number for number, layer_kind in zip(numbers, kinds, strict=False) if layer_kind == kind
        }
        if len(numbers) != len(kinds) or len(found) > 1:
            raise _layers_differ()
        heads[kind] = next(iter(found), None)
    return heads


def _gguf_widths(gguf: Gguf, raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the width of MLPs, which may be doubled in layers that share keys and values."""
    if "intermediate_size" in raw:
        return {}
    widths, shared = per_layer(gguf, "feed_forward_length"), raw["num_kv_shared_layers"]
    num_own = len(widths) - shared if isinstance(shared, int) else 0
    if not widths or widths != [
        widths[0] * (1 if index < num_own else 2) for index in range(len(widths))
    ]:
        raise _layers_differ()
    return {"intermediate_size": widths[0], "use_double_wide_mlp": True}


def _layers_differ() -> ModelError:
    """Make the error for layers of different sizes."""
    return ModelError(
        "The layers of this model differ in their sizes.", "Choose one whose layers are alike."
    )


SPEC = Arch(
    "gemma4_text",
    _blocks,
    _model,
    defaults={"tie_word_embeddings": True},
    normalize=_normalize,
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
        full_attention_every=_PERIOD,
        config=_gguf_config,
        reads=frozenset(
            ("attention.key_length_swa", "attention.value_length_swa", "rope.dimension_count_swa")
        ),
        per_layer_keys=frozenset(("feed_forward_length", "attention.head_count_kv")),
        has_experts=True,
    ),
)
