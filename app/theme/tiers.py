"""Colours of the places in which something may lie."""

from __future__ import annotations

from app.theme.tokens import Theme
from medusa_core.messages import Tier


def tier_colour(tier: Tier, theme: Theme) -> str:
    """The colour of a tier: on the device that of weights in the bar of its memory."""
    if tier is Tier.DEVICE:
        return theme.series(1).line
    return theme.series(8 if tier is Tier.MEMORY else 7).line
