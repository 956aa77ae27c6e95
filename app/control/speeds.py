"""Drafters in words: what they do, and how fast they were on this computer."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication

from app.control.said import said
from app.settings.words import QT_TRANSLATE_NOOP
from medusa_core.messages import DrafterChoice, DrafterSpeed

_MEASURED = QT_TRANSLATE_NOOP(
    "Speeds", "{0}: {1:.1f} tokens per step, {2:.1f} × plain, measured on this computer."
)
_FASTEST = QT_TRANSLATE_NOOP("Speeds", "The fastest here.")


class Speeds:
    """What was measured of the drafters of one model, the fastest first; nothing at first."""

    def __init__(self, speeds: Sequence[DrafterSpeed] = ()) -> None:
        self._speeds = {speed.name: speed for speed in speeds}
        self._fastest = speeds[0].name if speeds else ""

    def explained(self, drafter: DrafterChoice) -> str:
        """What a drafter does, and what was measured of it."""
        return f"{said(drafter.explanation)} {self.measured(drafter)}".rstrip()

    def measured(self, drafter: DrafterChoice | None) -> str:
        """What was measured of a drafter; empty where nothing was."""
        speed = self._speeds.get(drafter.name) if drafter is not None else None
        if drafter is None or speed is None:
            return ""
        told = _tr(_MEASURED).format(said(drafter.label), speed.tau, speed.x_plain)
        return f"{told} {_tr(_FASTEST)}" if speed.name == self._fastest else told


def _tr(text: str) -> str:
    return QCoreApplication.translate("Speeds", text)
