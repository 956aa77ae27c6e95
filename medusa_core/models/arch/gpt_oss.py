"""GPT-OSS: experts with a clamped SwiGLU, windows in every second layer, and attention sinks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from medusa_core.models.architecture import Arch, ArchConfig, ModelFields
from medusa_core.models.blocks.compose import attention, moe, pre_norms, windowed_blocks
from medusa_core.models.blocks.spec import Activation, ActivationSpec, BlockSpec, Scoring
from medusa_core.models.gguf_architecture import GgufArchitecture
from medusa_core.system.files.gguf import Gguf

_PERIOD = 2  # of layers with full attention


def _normalize(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Name the activation: clamped SwiGLU, which config.json calls silu."""
    return {**raw, "hidden_act": Activation.CLAMPED_SWIGLU.value}


def _blocks(config: ArchConfig) -> list[BlockSpec]:
    """Return blocks with experts, attention sinks, and a window in every second layer."""
    routing = config.routing("num_local_experts", 32, 4, Scoring.TOPK_SOFTMAX)
    experts = moe(config, routing, config.intermediate_size, router="router", bias=True)
    mixer = replace(
        attention(config, bias=config.flag("attention_bias", True)), sinks="self_attn.sinks"
    )
    return windowed_blocks(config, _PERIOD, pre_norms(config), mixer, experts)


def _model(config: ArchConfig) -> ModelFields:
    """Return the limit of the clamped SwiGLU."""
    limit = config.positive("swiglu_limit", 7.0)
    return {"activation": ActivationSpec(Activation.CLAMPED_SWIGLU, limit)}


def _gguf_config(_: Gguf, raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return YaRN without truncation, which files don't say."""
    scaling = raw.get("rope_scaling")
    return {"rope_scaling": {"truncate": False, **scaling}} if scaling else {}


SPEC = Arch(
    "gpt_oss",
    _blocks,
    _model,
    normalize=_normalize,
    gguf=GgufArchitecture(
        "gpt-oss",
        tensors={"ffn_gate_inp": "mlp.router", "attn_sinks.weight": "self_attn.sinks"},
        keys={"intermediate_size": "expert_feed_forward_length"},
        defaults={"sliding_window": 128, "swiglu_limit": 7.0},
        config=_gguf_config,
        full_attention_every=_PERIOD,
        has_experts=True,
    ),
)
