"""Qwen3-Next: as Qwen 3.5 with experts, the projections of gated delta nets in two tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from medusa_core.models.architecture import Arch
from medusa_core.models.delta_net import (
    as_usual_with_experts,
    delta_net_parts,
    delta_net_traits,
    with_experts,
)
from medusa_core.models.traits import DeltaNet, Traits


def _traits(raw: Mapping[str, Any]) -> Traits:
    traits = replace(delta_net_traits(raw), delta_net=DeltaNet(is_fused=True))
    return with_experts(traits, raw)


SPEC = Arch("qwen3_next", _traits, delta_net_parts, as_usual_with_experts)
