"""OLMo 2: norms behind both halves of a block, and over all queries and keys at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medusa_core.models.architecture import Arch
from medusa_core.models.gguf_architecture import GgufArchitecture
from medusa_core.models.traits import NormPlaces, Traits


def _traits(raw: Mapping[str, Any]) -> Traits:
    bias = bool(raw.get("attention_bias", False))
    return Traits(qkv_bias=bias, output_bias=bias, wide_qk_norm=True, norm_places=NormPlaces.BEHIND)


SPEC = Arch(
    "olmo2",
    _traits,
    gguf=GgufArchitecture("olmo2", full_attention_every=4, windowed_type="olmo3"),
)
