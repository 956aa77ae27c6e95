"""Gemma 2: norms around attention and MLP, capped logits, a window in every second layer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from medusa_core.models.architecture import Arch, ArchConfig, ModelFields
from medusa_core.models.blocks.compose import (
    QkNorm,
    attention,
    mlp,
    sandwich_norms,
    windowed_blocks,
)
from medusa_core.models.blocks.spec import Activation, ActivationSpec, AttentionSpec, BlockSpec
from medusa_core.models.gguf_architecture import GgufArchitecture, hidden_per_head
from medusa_core.system.files.gguf import Gguf

_PERIOD = 2  # of layers with full attention
_27B_LAYERS = (46, 62)  # of Gemma 2 and 3


def gemma_attention(config: ArchConfig, qk_norm: QkNorm | None = None) -> AttentionSpec:
    """Return attention with `query_pre_attn_scalar` and a logit softcap."""
    mixer = attention(config, bias=config.flag("attention_bias"), qk_norm=qk_norm)
    return replace(
        mixer,
        scale=1 / math.sqrt(config.positive("query_pre_attn_scalar", float(config.head_dim))),
        attn_logit_softcapping=config.optional("attn_logit_softcapping"),
    )


def _blocks(config: ArchConfig) -> list[BlockSpec]:
    """Return blocks with norms around each sublayer, and a window in every second layer."""
    norms = sandwich_norms(config, offset=1.0)
    return windowed_blocks(config, _PERIOD, norms, gemma_attention(config), mlp(config))


def gemma_model(config: ArchConfig) -> ModelFields:
    """Return model settings: scaled embeddings, soft-capped logits, norms that store w − 1."""
    return {
        "activation": ActivationSpec(Activation.GELU_TANH),
        "embedding_multiplier": math.sqrt(config.hidden_size),
        "final_logit_softcapping": config.optional("final_logit_softcapping"),
        "norm_offset": 1.0,
    }


GEMMA_DEFAULTS = {"head_dim": 256, "tie_word_embeddings": True}
GGUF_SOFTCAPS = {name: name for name in ("attn_logit_softcapping", "final_logit_softcapping")}


def gguf_attention_scalar(_: Gguf, raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return `query_pre_attn_scalar`, which only 27B models need: it isn't `head_dim`."""
    is_27b = raw.get("num_hidden_layers") in _27B_LAYERS
    return {"query_pre_attn_scalar": hidden_per_head(raw)} if is_27b else {}


SPEC = Arch(
    "gemma2",
    _blocks,
    gemma_model,
    defaults=GEMMA_DEFAULTS,
    gguf=GgufArchitecture(
        "gemma2",
        {"ffn_norm": "pre_feedforward_layernorm"},
        keys=GGUF_SOFTCAPS,
        defaults={
            "sliding_window": 4096,
            "attn_logit_softcapping": 50.0,
            "final_logit_softcapping": 30.0,
        },
        config=gguf_attention_scalar,
        full_attention_every=_PERIOD,
        norm_offset=1.0,
    ),
)
