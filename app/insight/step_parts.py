"""The parts of a step that don't overlap, as `StepTimes.parts` has them."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QCoreApplication

from app.i18n.words import QT_TRANSLATE_NOOP
from app.insight.words import micro

PARTS = (
    QT_TRANSLATE_NOOP("Insight", "draft"),
    QT_TRANSLATE_NOOP("Insight", "verify"),
    QT_TRANSLATE_NOOP("Insight", "transfer"),
    QT_TRANSLATE_NOOP("Insight", "other machines"),
    QT_TRANSLATE_NOOP("Insight", "accept"),
    QT_TRANSLATE_NOOP("Insight", "commit"),
)
RARE = (2, 3)  # all layers of most models lie on the device


def part_words(times: Iterable[float]) -> str:
    """Describe the parts of a step with their times; rare parts are left out if they took none.

    Args:
        times: Seconds of each of `PARTS`.
    """
    return ", ".join(
        QCoreApplication.translate("Insight", name) + f" {micro(seconds)}"
        for part, (name, seconds) in enumerate(zip(PARTS, times, strict=True))
        if seconds or part not in RARE
    )
