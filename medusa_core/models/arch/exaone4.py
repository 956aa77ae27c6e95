"""EXAONE 4: OLMo's places of norms, norms of heads; with windows, who sees all isn't turned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medusa_core.models.architecture import Arch, layer_kinds, layer_windows, sliding_window
from medusa_core.models.gguf_architecture import GgufArchitecture
from medusa_core.models.traits import NormPlaces, Traits


def _traits(raw: Mapping[str, Any]) -> Traits:
    windows = layer_windows(raw, layer_kinds(raw, 4))
    still = () if sliding_window(raw) is None else enumerate(windows)
    return Traits(
        qk_norm=True,
        norm_places=NormPlaces.BEHIND,
        windows=windows if any(windows) else (),
        unturned=frozenset(index for index, window in still if window is None),
    )


SPEC = Arch("exaone4", _traits, gguf=GgufArchitecture("exaone4", full_attention_every=4))
