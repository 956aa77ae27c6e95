"""Gemma 2: norms around both halves of a block, capped scores, a window in every second layer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from medusa_core.models.architecture import Arch, layer_kinds, layer_windows, positive
from medusa_core.models.gguf_architecture import GgufArchitecture, hidden_per_head
from medusa_core.models.traits import Activation, NormPlaces, Traits
from medusa_core.system.files.gguf import Gguf


def gemma_traits(raw: Mapping[str, Any], pattern: int) -> Traits:
    """What Gemma 2 and 3 share; each `pattern`-th layer sees everything."""
    width = positive(raw, "hidden_size", 1.0) or 1.0
    scalar = positive(raw, "query_pre_attn_scalar", positive(raw, "head_dim", 256.0)) or 256.0
    bias = bool(raw.get("attention_bias", False))
    return Traits(
        qkv_bias=bias,
        output_bias=bias,
        norm_places=NormPlaces.AROUND,
        norm_offset=1.0,
        activation=Activation.GELU_TANH,
        embedding_scale=math.sqrt(width),
        attention_scale=1 / math.sqrt(scalar),
        attention_cap=positive(raw, "attn_logit_softcapping", None),
        score_cap=positive(raw, "final_logit_softcapping", None),
        windows=layer_windows(raw, layer_kinds(raw, pattern)),
        is_tied=True,
    )


def _traits(raw: Mapping[str, Any]) -> Traits:
    return gemma_traits(raw, 2)


GGUF_SOFTCAPS = {name: name for name in ("attn_logit_softcapping", "final_logit_softcapping")}
_27B_LAYERS = (46, 62)  # of Gemma 2 and 3


def gguf_attention_scalar(_: Gguf, known: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return `query_pre_attn_scalar` of 27B models, where it isn't `head_dim`."""
    is_27b = known.get("num_hidden_layers") in _27B_LAYERS
    return {"query_pre_attn_scalar": hidden_per_head(known)} if is_27b else {}


SPEC = Arch(
    "gemma2",
    _traits,
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
        full_attention_every=2,
        norm_offset=1.0,
    ),
)
