"""Colours of tiers."""

from __future__ import annotations

from app.theme.tokens import Theme
from medusa_core.messages import Tier


def tier_colour(tier: Tier, theme: Theme) -> str:
    """Return the colour of a tier; the device's is that of weights in the memory bar."""
    if tier is Tier.DEVICE:
        return theme.series(1).line
    return theme.series(8 if tier is Tier.MEMORY else 7).line
