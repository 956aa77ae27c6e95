"""Ministral 3: Mistral whose queries grow with their position."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medusa_core.models.architecture import Arch, positive, sliding_window
from medusa_core.models.traits import Traits


def _traits(raw: Mapping[str, Any]) -> Traits:
    rope = raw.get("rope_parameters") or raw.get("rope_scaling") or {}
    settings = rope if isinstance(rope, Mapping) else {}
    return Traits(
        window=sliding_window(raw),
        query_growth=positive(settings, "llama_4_scaling_beta", 0.0) or 0.0,
    )


SPEC = Arch("ministral3", _traits)
