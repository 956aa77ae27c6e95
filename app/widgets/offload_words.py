"""Which layers lie where, and what that means for the speed, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication

from app.i18n.words import QT_TRANSLATE_NOOP
from app.widgets.sizes import (
    gib,
    speed,
)
from medusa_core.messages import Placement, Tier

if TYPE_CHECKING:
    from medusa_core.api import OffloadPlan

# {0} is how many of the layers, {1} their size.
TIER_WORDS = {
    Tier.DEVICE: QT_TRANSLATE_NOOP("Library", "{0} here"),
    Tier.MEMORY: QT_TRANSLATE_NOOP("Library", "{0} in the computer's memory, {1}"),
    Tier.DISK: QT_TRANSLATE_NOOP("Library", "{0} on the disk, {1}"),
}


def tier_words(placement: Placement, tier: Tier) -> str:
    """How many layers lie in a tier; empty where none does."""
    num_layers = len(placement.layers(tier))
    if not num_layers:
        return ""
    words = QCoreApplication.translate("Library", TIER_WORDS[tier])
    return words.format(num_layers, gib(placement.nbytes(tier)))


def here_words(placement: Placement) -> str:
    """How many of all layers lie on the device."""
    here, total = len(placement.layers(Tier.DEVICE)), len(placement.tiers)
    return QCoreApplication.translate("Library", "{0} of {1} layers here").format(here, total)


def offload_plan_words(offloaded: OffloadPlan, has_heads: bool) -> str:
    """What a model would do offloaded, and whether there is a better way."""
    layers, plain = here_words(offloaded.placement), speed(offloaded.plain_tokens_per_s)
    if has_heads and offloaded.tokens_per_s > offloaded.plain_tokens_per_s:
        text = QCoreApplication.translate(
            "Library",
            "Offloaded: {0}, {1} tokens/s plain, about {2} with heads (an estimate).",
        ).format(layers, plain, speed(offloaded.tokens_per_s))
    else:
        text = QCoreApplication.translate(
            "Library", "Offloaded: {0}, {1} tokens/s without guesses (an estimate)."
        ).format(layers, plain)
    if offloaded.is_worth_it:
        return text
    better = QCoreApplication.translate(
        "Library", "With other weights or a shorter context it fits whole, and is faster."
    )
    return f"{text} {better}"
