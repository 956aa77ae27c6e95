"""Gemma 3's text models: Gemma 2 with norms of queries and keys, and a local RoPE."""

from __future__ import annotations

from medusa_core.models.arch.gemma2 import (
    GEMMA_DEFAULTS,
    GGUF_SOFTCAPS,
    gemma_attention,
    gemma_model,
    gguf_attention_scalar,
)
from medusa_core.models.architecture import Arch, ArchConfig, LocalRope, ModelFields, local_theta
from medusa_core.models.blocks.compose import QkNorm, mlp, sandwich_norms, windowed_blocks
from medusa_core.models.blocks.spec import BlockSpec
from medusa_core.models.gguf_architecture import GgufArchitecture

_PERIOD = 6  # of layers with full attention


def _blocks(config: ArchConfig) -> list[BlockSpec]:
    """Return blocks with QK norm; sliding-window layers have the local RoPE."""
    mixer = gemma_attention(config, QkNorm(offset=1.0))
    norms = sandwich_norms(config, offset=1.0)
    return windowed_blocks(config, _PERIOD, norms, mixer, mlp(config), ropes=(0, 1))


def _model(config: ArchConfig) -> ModelFields:
    """Return Gemma 2's model settings and the local RoPE."""
    theta = local_theta(config.raw, config.positive("rope_local_base_freq", 10000.0))
    return {**gemma_model(config), "local_rope": LocalRope(theta, config.head_dim)}


SPEC = Arch(
    "gemma3_text",
    _blocks,
    _model,
    defaults=GEMMA_DEFAULTS,
    gguf=GgufArchitecture(
        "gemma3",
        {"ffn_norm": "pre_feedforward_layernorm"},
        keys={**GGUF_SOFTCAPS, "rope_local_base_freq": "rope.freq_base_swa"},
        defaults={"rope_theta": 1e6},
        config=gguf_attention_scalar,
        full_attention_every=_PERIOD,
        norm_offset=1.0,
    ),
)
