"""GPT-OSS: experts with a bounded gate, windows in every second layer, and attention with sinks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medusa_core.models.family import FamilySpec, layer_kinds, layer_windows, positive, whole
from medusa_core.models.traits import Activation, Experts, Traits

_MOST = 1 << 12


def _traits(raw: Mapping[str, Any]) -> Traits:
    bias = bool(raw.get("attention_bias", True))
    experts = Experts(
        whole(raw, "num_local_experts", _MOST, 32),
        whole(raw, "num_experts_per_tok", _MOST, 4),
        whole(raw, "intermediate_size", 1 << 20, 2880),
        chooses_first=True,
        router="router",
    )
    return Traits(
        qkv_bias=bias,
        output_bias=bias,
        mlp_bias=True,
        has_sinks=True,
        windows=layer_windows(raw, layer_kinds(raw, 2)),
        experts=experts,
        activation=Activation.BOUNDED,
        activation_bound=positive(raw, "swiglu_limit", 7.0) or 7.0,
    )


def _as_usual(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**raw, "hidden_act": Activation.BOUNDED.value}  # they call it silu


SPEC = FamilySpec("gpt_oss", _traits, as_usual=_as_usual)
