"""Mistral: Llama with a window on the past."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medusa_core.models.family import FamilySpec, sliding_window
from medusa_core.models.traits import Traits


def _traits(raw: Mapping[str, Any]) -> Traits:
    return Traits(window=sliding_window(raw))


SPEC = FamilySpec("mistral", _traits)
