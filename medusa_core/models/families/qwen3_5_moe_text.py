"""Qwen 3.5 and 3.6 with experts: Qwen 3.5 whose rows pass through a few of many MLPs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medusa_core.models.delta_net import (
    as_usual_with_experts,
    delta_net_parts,
    delta_net_traits,
    with_experts,
)
from medusa_core.models.family import FamilySpec
from medusa_core.models.traits import Traits


def _traits(raw: Mapping[str, Any]) -> Traits:
    return with_experts(delta_net_traits(raw), raw)


SPEC = FamilySpec("qwen3_5_moe_text", _traits, delta_net_parts, as_usual_with_experts)
