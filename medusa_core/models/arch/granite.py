"""Granite 3 (dense): Llama with multipliers of embeddings, attention, residuals and logits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from medusa_core.errors import ModelError
from medusa_core.models.architecture import Arch, ArchConfig, ModelFields
from medusa_core.models.blocks.compose import attention, mlp, pre_norms
from medusa_core.models.blocks.spec import AttentionSpec, BlockSpec
from medusa_core.models.gguf_architecture import GgufArchitecture
from medusa_core.system.files.gguf import Gguf


def granite_attention(config: ArchConfig) -> AttentionSpec:
    """Return attention with `attention_multiplier` instead of 1/√head_dim."""
    mixer = attention(config, bias=config.flag("attention_bias"))
    return replace(mixer, scale=config.positive("attention_multiplier", 1.0))


def granite_blocks(config: ArchConfig) -> list[BlockSpec]:
    """Return Llama's blocks with `attention_multiplier` and `residual_multiplier`."""
    return [
        BlockSpec(
            pre_norms(config),
            (granite_attention(config),),
            mlp(config, bias=config.flag("mlp_bias")),
            residual_multiplier=config.positive("residual_multiplier", 1.0),
        )
    ] * config.num_layers


def granite_model(config: ArchConfig) -> ModelFields:
    """Return model settings: multipliers of embeddings and logits."""
    return {
        "embedding_multiplier": config.positive("embedding_multiplier", 1.0),
        "logits_scaling": config.positive("logits_scaling", 1.0),
    }


GGUF_FACTORS = {
    "attention_multiplier": "attention.scale",
    "embedding_multiplier": "embedding_scale",
    "residual_multiplier": "residual_scale",
    "logits_scaling": "logit_scale",
}


def _gguf_config(gguf: Gguf, _: Mapping[str, Any]) -> Mapping[str, Any]:
    """Refuse models without RoPE."""
    if gguf.of_model("rope.scaling.finetuned") is False:  # llama.cpp's switch for RoPE
        raise ModelError(
            "This Granite has no RoPE, which isn't supported.",
            "Choose Granite 3, or a Granite 4 that does.",
        )
    return {}


SPEC = Arch(
    "granite",
    granite_blocks,
    granite_model,
    gguf=GgufArchitecture("granite", keys=GGUF_FACTORS, config=_gguf_config, interleaved_rope=True),
)
