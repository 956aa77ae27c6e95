"""Gemma 3's text models: Gemma 2 with norms of queries and keys, and two bases of rotation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from medusa_core.models.arch.gemma2 import GGUF_SOFTCAPS, gemma_traits, gguf_attention_scalar
from medusa_core.models.architecture import Arch, local_theta, positive
from medusa_core.models.gguf_architecture import GgufArchitecture
from medusa_core.models.traits import Traits


def _traits(raw: Mapping[str, Any]) -> Traits:
    theta = positive(raw, "rope_local_base_freq", 10000.0)
    return replace(
        gemma_traits(raw, 6),
        qk_norm=True,
        local_theta=local_theta(raw, theta),
        scales_local=False,
    )


SPEC = Arch(
    "gemma3_text",
    _traits,
    gguf=GgufArchitecture(
        "gemma3",
        {"ffn_norm": "pre_feedforward_layernorm"},
        keys={**GGUF_SOFTCAPS, "rope_local_base_freq": "rope.freq_base_swa"},
        defaults={"rope_theta": 1e6},
        config=gguf_attention_scalar,
        full_attention_every=6,
        norm_offset=1.0,
    ),
)
