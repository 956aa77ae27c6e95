"""OLMo 3: OLMo 2 with a window in three of four layers, which stretch no positions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medusa_core.models.architecture import Arch, layer_kinds, layer_windows, local_theta, positive
from medusa_core.models.traits import NormPlaces, Traits


def _traits(raw: Mapping[str, Any]) -> Traits:
    bias = bool(raw.get("attention_bias", False))
    return Traits(
        qkv_bias=bias,
        output_bias=bias,
        wide_qk_norm=True,
        norm_places=NormPlaces.BEHIND,
        windows=layer_windows(raw, layer_kinds(raw, 4)),
        local_theta=local_theta(raw, positive(raw, "rope_theta", 500000.0)),
        scales_local=False,
    )


SPEC = Arch("olmo3", _traits)
