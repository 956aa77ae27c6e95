"""Texts about offloaded layers and their speed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication

from app.i18n.numbers import Number
from app.i18n.words import QT_TRANSLATE_NOOP
from app.widgets.sizes import (
    gib,
    speed,
)
from medusa_core.messages import CpuParts, CpuReason, Placement, Tier

if TYPE_CHECKING:
    from medusa_core.api import CpuPlan, OffloadPlan

# {0} is how many of the layers, {1} their size.
TIER_WORDS = {
    Tier.DEVICE: QT_TRANSLATE_NOOP("Library", "{0} here"),
    Tier.MEMORY: QT_TRANSLATE_NOOP("Library", "{0} in the computer's memory, {1}"),
    Tier.DISK: QT_TRANSLATE_NOOP("Library", "{0} on the disk, {1}"),
}

# {0} is of how many layers the processor computes a part, {1} tokens per second, {2} the context.
OFFER_WORDS = {
    "context": QT_TRANSLATE_NOOP("Library", "· a context of {2} tokens: {0} layers, {1} tokens/s"),
    "drafter": QT_TRANSLATE_NOOP("Library", "· the drafter in 4 bits: {0} layers, {1} tokens/s"),
    "none": QT_TRANSLATE_NOOP("Library", "· no drafter: {0} layers, {1} tokens/s"),
}


def tier_words(placement: Placement, tier: Tier) -> str:
    """Describe the number of layers in a tier; empty for none."""
    num_layers = len(placement.layers(tier))
    if not num_layers:
        return ""
    words = QCoreApplication.translate("Library", TIER_WORDS[tier])
    return words.format(num_layers, gib(placement.nbytes(tier)))


def here_words(placement: Placement) -> str:
    """Describe the number of layers on the device."""
    here, total = len(placement.layers(Tier.DEVICE)), len(placement.tiers)
    return QCoreApplication.translate("Library", "{0} of {1} layers here").format(here, total)


def offload_plan_words(offloaded: OffloadPlan, has_heads: bool) -> str:
    """Describe the speed of an offloaded model, and whether there is a faster way."""
    layers, plain = here_words(offloaded.placement), speed(offloaded.plain_tokens_per_s)
    if has_heads and offloaded.tokens_per_s > offloaded.plain_tokens_per_s:
        text = QCoreApplication.translate(
            "Library",
            "Offloaded: {0}, {1} tokens/s plain, about {2} with heads (an estimate).",
        ).format(layers, plain, speed(offloaded.tokens_per_s))
    else:
        text = QCoreApplication.translate(
            "Library", "Offloaded: {0}, {1} tokens/s without drafts (an estimate)."
        ).format(layers, plain)
    if offloaded.is_worth_it:
        return text
    better = QCoreApplication.translate(
        "Library", "With other weights or a shorter context it fits whole, and is faster."
    )
    return f"{text} {better}"


def cpu_words(parts: CpuParts) -> str:
    """Describe what the processor computes beside a card."""
    if parts.num_experts and parts.num_mlps:
        words = QCoreApplication.translate("Library", "processor: parts of {0} of {1} layers")
    elif parts.num_experts:
        words = QCoreApplication.translate("Library", "processor: experts of {0} of {1} layers")
    else:
        words = QCoreApplication.translate("Library", "processor: MLPs of {0} of {1} layers")
    words = words.format(len(parts.layers), parts.num_layers)
    if not parts.drafter_layers:
        return words
    displaced = QCoreApplication.translate("Library", "{0}, {1} of them for the drafter")
    return displaced.format(words, parts.drafter_layers)


def cpu_plan_words(planned: CpuPlan) -> str:
    """Describe the speed of a model with parts on the processor, the reason, and alternatives."""
    parts, plain, drafted = planned.parts, planned.plain_tokens_per_s, planned.tokens_per_s
    lines = [
        QCoreApplication.translate("Library", "{0}, {1} in the computer's memory.").format(
            cpu_words(replace(parts, drafter_layers=0)), gib(parts.nbytes)
        ),
        _cpu_reason(parts),
    ]
    if drafted > plain:
        lines.append(
            QCoreApplication.translate(
                "Library", "{0} tokens/s plain, about {1} with heads (an estimate)."
            ).format(speed(plain), speed(drafted))
        )
    elif plain:
        lines.append(
            QCoreApplication.translate(
                "Library", "About {0} tokens/s without drafts (an estimate)."
            ).format(speed(plain))
        )
    if planned.offers:
        lines.append(
            QCoreApplication.translate(
                "Library", "{0} of these layers make room for the drafter. Instead:"
            ).format(parts.drafter_layers)
        )
    for offer in planned.offers:
        words = QCoreApplication.translate("Library", OFFER_WORDS[offer.change])
        tokens_per_s = max(offer.plain_tokens_per_s, offer.tokens_per_s)
        lines.append(words.format(offer.cpu_layers, speed(tokens_per_s), offer.context_tokens))
    return "\n".join(lines)


def _cpu_reason(parts: CpuParts) -> str:
    if parts.reason is CpuReason.REQUESTED:
        return QCoreApplication.translate("Library", "You have chosen this.")
    if parts.reason is CpuReason.FASTER:
        return QCoreApplication.translate(
            "Library",
            "A step takes {0:.0f} ms this way, and {1:.0f} ms with layers streamed to the card.",
        ).format(Number(1000 * parts.step_s), Number(1000 * parts.streamed_s))
    return QCoreApplication.translate("Library", "The card has no room for it.")
