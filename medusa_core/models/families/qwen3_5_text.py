"""Qwen 3.5 and 3.6 (dense, what reads and writes text): gated delta nets and gated attention."""

from __future__ import annotations

from medusa_core.models.delta_net import (
    delta_net_as_usual,
    delta_net_parts,
    delta_net_traits,
)
from medusa_core.models.family import FamilySpec

SPEC = FamilySpec(
    "qwen3_5_text",
    delta_net_traits,
    delta_net_parts,
    delta_net_as_usual,
)
