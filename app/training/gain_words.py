"""Texts about the measured gain of trained heads."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from app.i18n.numbers import Number
from medusa_core.system.jobs.heads_gain import HeadsGain


def gain_text(gain: HeadsGain | None) -> str:
    """Say that heads are ready, with their gain."""
    if gain is None:
        return QCoreApplication.translate("Train", "Heads are ready.")
    if not gain.pays:
        return QCoreApplication.translate(
            "Train",
            "Heads are ready: {0:.2f} tokens per step, no gain ({1:.2f}× plain); train longer?",
        ).format(*map(Number, gain))
    return QCoreApplication.translate(
        "Train", "Heads are ready: {0:.2f} tokens per step, {1:.2f}× plain."
    ).format(*map(Number, gain))


def with_loss(name: str, gain: HeadsGain | None) -> str:
    """Return the name of heads for a list, with a remark if they have no gain."""
    if gain is None or gain.pays:
        return name
    return QCoreApplication.translate("Train", "{0} – no gain ({1:.2f}× plain)").format(
        name, Number(gain.x_plain)
    )
