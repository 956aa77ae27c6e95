"""Gemma 1 and CodeGemma: Gemma 2 with norms before each half alone, and without windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from medusa_core.models.arch.gemma2 import gemma_traits
from medusa_core.models.architecture import Arch
from medusa_core.models.gguf_architecture import GgufArchitecture
from medusa_core.models.traits import Activation, NormPlaces, Traits


def _as_usual(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """A configuration that names the activation; those of the first files call it gelu."""
    named = raw.get("hidden_activation") or raw.get("hidden_act") or "gelu"
    named = Activation.GELU_TANH.value if named == "gelu" else named
    return {"head_dim": 256, **raw, "hidden_activation": named}


def _traits(raw: Mapping[str, Any]) -> Traits:
    return replace(gemma_traits(raw, 1), norm_places=NormPlaces.BEFORE, windows=())


SPEC = Arch("gemma", _traits, as_usual=_as_usual, gguf=GgufArchitecture("gemma", norm_offset=1.0))
