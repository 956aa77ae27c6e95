"""GPT-OSS: experts with a bounded gate, windows in every second layer, and attention with sinks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medusa_core.models.architecture import Arch, layer_kinds, layer_windows, positive, whole
from medusa_core.models.gguf_architecture import GgufArchitecture
from medusa_core.models.traits import Activation, Experts, Traits
from medusa_core.system.files.gguf import Gguf

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


def _gguf_config(_: Gguf, known: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return YaRN without truncation, which files don't say."""
    scaling = known.get("rope_scaling")
    return {"rope_scaling": {"truncate": False, **scaling}} if scaling else {}


SPEC = Arch(
    "gpt_oss",
    _traits,
    as_usual=_as_usual,
    gguf=GgufArchitecture(
        "gpt-oss",
        tensors={"ffn_gate_inp": "mlp.router", "attn_sinks.weight": "self_attn.sinks"},
        keys={"intermediate_size": "expert_feed_forward_length"},
        defaults={"sliding_window": 128, "swiglu_limit": 7.0},
        config=_gguf_config,
        full_attention_every=2,
        has_experts=True,
    ),
)
