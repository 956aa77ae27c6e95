"""Granite with sliding windows in three of four layers, attention sinks, and a RoPE per layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from medusa_core.errors import ModelError
from medusa_core.models.arch.granite import granite_attention, granite_model
from medusa_core.models.architecture import (
    AGAIN,
    MAX_LAYERS,
    Arch,
    ArchConfig,
    LocalRope,
    ModelFields,
    positive,
    whole,
)
from medusa_core.models.blocks.compose import mlp, pre_norms
from medusa_core.models.blocks.spec import BlockSpec

_PERIOD = 4  # of layers with full attention, of which the first is one


def _normalize(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Name every layer's type, and the base of the first layer with RoPE as the model's."""
    count = whole(raw, "num_hidden_layers", MAX_LAYERS, 24)
    kinds = ["sliding_attention" if index % _PERIOD else "full_attention" for index in range(count)]
    found = {**raw, "layer_types": raw.get("layer_types") or kinds}
    if thetas := _thetas(raw):
        rope = raw.get("rope_parameters")
        rope = rope if isinstance(rope, Mapping) else {}
        if len(thetas) > 1 and rope.get("rope_type", "default") != "default":
            raise _unsupported()
        found["rope_parameters"] = {**rope, "rope_theta": thetas[0]}
    return found


def _thetas(raw: Mapping[str, Any]) -> list[float]:
    """Return the bases of all layers with RoPE, in the order in which they occur."""
    listed = raw.get("layer_rope_theta") or []
    if not isinstance(listed, list):
        raise ModelError("config.json: layer_rope_theta is no list of numbers.", AGAIN)
    found = [positive({"theta": one}, "theta", 1.0) or 1.0 for one in listed if one != 0]
    return list(dict.fromkeys(found))


def _blocks(config: ArchConfig) -> list[BlockSpec]:
    """Return blocks with attention sinks, and window and RoPE by layer."""
    thetas, listed = _thetas(config.raw), config.raw.get("layer_rope_theta")
    if len(thetas) > 2:
        raise _unsupported()
    indices = {float(theta): index for index, theta in enumerate(thetas)}
    ropes = [0] * config.num_layers if not listed else [indices.get(one) for one in listed]
    if len(ropes) != config.num_layers:
        raise ModelError("config.json: layer_rope_theta isn't a list of all layers.", AGAIN)
    mixer = replace(granite_attention(config), sinks="self_attn.sinks")
    return [
        BlockSpec(
            pre_norms(config),
            (replace(mixer, sliding_window=window, rope=rope),),
            mlp(config, bias=config.flag("mlp_bias")),
            residual_multiplier=config.positive("residual_multiplier", 1.0),
        )
        for window, rope in zip(config.layer_windows(_PERIOD), ropes, strict=True)
    ]


def _model(config: ArchConfig) -> ModelFields:
    """Return Granite's model settings, and the second RoPE if layers have two."""
    _, *others = _thetas(config.raw) or [0.0]
    local = LocalRope(others[0], config.head_dim) if others else None
    return {**granite_model(config), "local_rope": local}


def _unsupported() -> ModelError:
    """Make the error for more than two RoPE bases."""
    return ModelError(
        "This model has more than two kinds of RoPE, which isn't supported.",
        "Choose another Granite.",
    )


SPEC = Arch(
    "granite_swa",
    _blocks,
    _model,
    defaults={"tie_word_embeddings": True, "sliding_window": 128},
    normalize=_normalize,
)
