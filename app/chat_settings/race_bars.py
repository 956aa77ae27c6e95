"""Bars of a model's drafters: measured speed, draft shape, and its reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from PySide6.QtCore import QCoreApplication

from app.chat_settings.speeds import why_words
from app.i18n.numbers import Number
from app.i18n.setting_texts import setting_text
from app.i18n.words import QT_TRANSLATE_NOOP
from medusa_core.messages import CHAIN, TREE, DrafterChoice, DrafterSpeed

_PLAIN = QT_TRANSLATE_NOOP("Speeds", "the dashed line")
_NOTHING = QT_TRANSLATE_NOOP("Speeds", "mostly no drafts")
_SHAPES = {
    CHAIN: QT_TRANSLATE_NOOP("Speeds", "chain, {0:.1f} rows"),
    TREE: QT_TRANSLATE_NOOP("Speeds", "tree, {0:.1f} rows"),
}
_X_PLAIN = QT_TRANSLATE_NOOP("Speeds", "{0:.2f} × plain")
_PER_S = QT_TRANSLATE_NOOP("Speeds", "{0} tokens/s")


class RaceBar(NamedTuple):
    """One drafter's bar.

    Attributes:
        name: Its name in the engine.
        label: Display name.
        speed: Tokens per second, as text.
        shape: Predominant shape of its drafts, as text.
        gain: Speed-up over plain decoding, as text; empty for plain decoding.
        factor: Speed-up over plain decoding.
        why: Reason for the shape; empty if unknown.
        length: Speed relative to the fastest drafter, 0 to 1.
        plain: Relative speed of plain decoding; 0 if not measured.
        pays: Whether it is faster than plain decoding.
    """

    name: str
    label: str
    speed: str
    shape: str
    gain: str
    factor: str
    why: str
    length: float
    plain: float
    pays: bool

    @property
    def words(self) -> str:
        """Text of the whole bar for screen readers."""
        figures = ", ".join(part for part in (self.speed, self.gain, self.shape) if part)
        return f"{self.label}: {figures}. {self.why}".rstrip()


def race_bars(
    drafters: Sequence[DrafterChoice], speeds: Sequence[DrafterSpeed]
) -> tuple[RaceBar, ...]:
    """Return the measured drafters, fastest first."""
    known = {drafter.name: drafter for drafter in drafters}
    raced = sorted(
        (speed for speed in speeds if speed.name in known), key=lambda each: -each.tokens_per_s
    )
    most = max((speed.tokens_per_s for speed in raced), default=0.0)
    if not most:
        return ()
    plain = next((s.tokens_per_s for s in raced if not known[s.name].drafts), 0.0) / most
    return tuple(_bar(known[speed.name], speed, most, plain) for speed in raced)


def _bar(drafter: DrafterChoice, speed: DrafterSpeed, most: float, plain: float) -> RaceBar:
    per_s = Number(speed.tokens_per_s)
    return RaceBar(
        drafter.name,
        setting_text(drafter.label),
        _tr(_PER_S).format(f"{per_s:.1f}" if speed.tokens_per_s < 20 else f"{per_s:,.0f}"),
        _shape(drafter, speed),
        _tr(_X_PLAIN).format(Number(speed.x_plain)) if drafter.drafts else "",
        f"{Number(speed.x_plain):.2f} ×",
        why_words(speed) if drafter.drafts else "",
        speed.tokens_per_s / most,
        plain,
        speed.x_plain > 1,
    )


def _shape(drafter: DrafterChoice, speed: DrafterSpeed) -> str:
    if not drafter.drafts:
        return _tr(_PLAIN)
    shape = _SHAPES.get(speed.growth, _NOTHING)
    return _tr(shape).format(Number(speed.num_rows))


def _tr(text: str) -> str:
    return QCoreApplication.translate("Speeds", text)
