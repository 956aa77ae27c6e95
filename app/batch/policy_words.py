"""Texts about a batch's policy and the rates of its parts."""

from __future__ import annotations

import math

from PySide6.QtCore import QCoreApplication

from app.i18n.numbers import Number
from app.i18n.words import QT_TRANSLATE_NOOP
from app.widgets.sizes import gib
from medusa_core.messages import PartRate, Policy, Shares, Tier

# By a policy's fields.
WHAT = {
    "weights": QT_TRANSLATE_NOOP("Batch", "Weights"),
    "cache": QT_TRANSLATE_NOOP("Batch", "Cache"),
    "activations": QT_TRANSLATE_NOOP("Batch", "Activations"),
}
_PLACES = {
    Tier.DEVICE: QT_TRANSLATE_NOOP("Batch", "{0} here"),
    Tier.MEMORY: QT_TRANSLATE_NOOP("Batch", "{0} in the computer's memory"),
    Tier.DISK: QT_TRANSLATE_NOOP("Batch", "{0} on the disk"),
}
_PARTS = {
    "weights read": QT_TRANSLATE_NOOP("Batch", "Weights read"),
    "cached rows read": QT_TRANSLATE_NOOP("Batch", "Cached rows read"),
    "cached rows written": QT_TRANSLATE_NOOP("Batch", "Cached rows written"),
    "computed": QT_TRANSLATE_NOOP("Batch", "Computed"),
    "waited": QT_TRANSLATE_NOOP("Batch", "Waited"),
    "answers": QT_TRANSLATE_NOOP("Batch", "Answers"),
}
_UNITS = {
    "tokens/s": QT_TRANSLATE_NOOP("Batch", "tokens/s"),
    "ms a layer": QT_TRANSLATE_NOOP("Batch", "ms a layer"),
    "s a pass": QT_TRANSLATE_NOOP("Batch", "s a pass"),
}
_LEAST_BYTES = 1 << 20
_UNKNOWN = "–"
_DIGITS = 3  # of a rate


def placed_label(name: str) -> str:
    """Return the label of what a field of an offload policy places (weights, KV cache, …)."""
    return _tr(WHAT[name])


def used_tiers(shares: Shares) -> dict[Tier, float]:
    """Return the used tiers, from the device down."""
    by_tier = {
        Tier.DEVICE: shares.device,
        Tier.MEMORY: shares.memory,
        Tier.DISK: shares.disk,
    }
    return {tier: share for tier, share in by_tier.items() if share > 0}


def share_words(tier: Tier, share: float, nbytes: int) -> str:
    """Describe the share of a tier, with its size if that is known and not tiny."""
    words = _tr(_PLACES[tier]).format(f"{Number(share):.0%}")
    size = round(share * nbytes)
    return f"{words}, {gib(size)}" if size >= _LEAST_BYTES else words


def schedule_words(policy: Policy) -> str:
    """Describe the block schedule of a batch, its attention and its KV cache."""
    block, num_batches = policy.num_sequences, policy.num_batches
    if num_batches > 1:
        text = QCoreApplication.translate(
            "Batch", "{0} conversations at once, in {1} batches of {2} one after the other."
        ).format(block, num_batches, policy.batch)
    else:
        text = QCoreApplication.translate("Batch", "{0} conversations at once.").format(block)
    return " ".join((text, _attention_words(policy)))


def _attention_words(policy: Policy) -> str:
    if policy.attention == Tier.MEMORY.value:
        where = QCoreApplication.translate(
            "Batch", "Attention is computed by the processor, beside the KV cache in memory."
        )
    elif policy.cache.below:
        where = QCoreApplication.translate(
            "Batch",
            "Attention is computed on the device; offloaded rows of the KV cache are prefetched.",
        )
    else:
        where = QCoreApplication.translate("Batch", "Attention is computed on the device.")
    texts = [where]
    if policy.cache_format:
        texts.append(QCoreApplication.translate("Batch", "The KV cache has 4 bits."))
    if policy.attended:
        texts.append(
            QCoreApplication.translate(
                "Batch", "Only the {0} rows with the largest attention weights are used."
            ).format(policy.attended)
        )
    return " ".join(texts)


def part_name(part: PartRate) -> str:
    """Return the name of a part of the work."""
    return _tr(_PARTS[part.name]) if part.name in _PARTS else part.name


def rate_words(rate: float | None, unit: str) -> str:
    """Format a rate or a time with its unit; a dash for None."""
    if rate is None:
        return _UNKNOWN
    whole_digits = 1 + math.floor(math.log10(rate)) if rate > 0 else _DIGITS
    digits = min(_DIGITS, max(0, _DIGITS - whole_digits))
    return f"{Number(rate):,.{digits}f} {_tr(_UNITS.get(unit, unit))}"


def answers_part(forecast: float | None, tokens_per_s: float) -> PartRate:
    """Return the figure that summarizes the batch: answer tokens per second."""
    return PartRate("answers", forecast, tokens_per_s or None, "tokens/s")


def compared_words(part: PartRate) -> str:
    """Describe a part for screen readers."""
    text = QCoreApplication.translate("Batch", "{0}: forecast {1}, actual {2}").format(
        part_name(part), rate_words(part.forecast, part.unit), rate_words(part.reached, part.unit)
    )
    if not part.binds:
        return text
    return QCoreApplication.translate("Batch", "{0}; it binds").format(text)


def _tr(text: str) -> str:
    return QCoreApplication.translate("Batch", text)
