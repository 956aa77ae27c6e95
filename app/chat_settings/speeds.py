"""Descriptions of drafters with their measured speeds."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtWidgets import QComboBox, QStyledItemDelegate, QStyleOptionViewItem

from app.i18n.engine_texts import engine_text
from app.i18n.numbers import Number
from app.i18n.setting_texts import setting_text
from app.i18n.words import QT_TRANSLATE_NOOP
from app.widgets.explain import wrapped
from medusa_core.messages import CHAIN, TREE, DrafterChoice, DrafterSpeed

_MEASURED = QT_TRANSLATE_NOOP(
    "Speeds", "{0}: {1:.1f} tokens per step, {2:.1f} × plain, measured on this computer."
)
_FASTEST = QT_TRANSLATE_NOOP("Speeds", "The fastest here.")
_ROW = QT_TRANSLATE_NOOP("Speeds", "{0:.1f} tokens/step, {1:.1f}×")
_FASTEST_ROW = QT_TRANSLATE_NOOP("Speeds", "fastest here")
_WHY = {
    CHAIN: QT_TRANSLATE_NOOP(
        "Speeds",
        "Mostly chains of {0:.1f} draft tokens: a step takes {2:.1f} times as long as without, "
        "and brings {3:.1f} tokens.",
    ),
    TREE: QT_TRANSLATE_NOOP(
        "Speeds",
        "Mostly trees of {0:.1f} draft tokens, {1:.1f} deep: a step takes {2:.1f} times as long "
        "as without, and brings {3:.1f} tokens.",
    ),
}
_WHY_NOTHING = QT_TRANSLATE_NOOP(
    "Speeds", "Mostly no drafts: they would gain less than their rows cost."
)
_DETAIL = Qt.ItemDataRole.UserRole + 1


class Speeds:
    """Measured speeds of a model's drafters; empty before the first measurement."""

    def __init__(self, speeds: Sequence[DrafterSpeed] = ()) -> None:
        self._speeds = {speed.name: speed for speed in speeds}
        fastest = max(speeds, key=lambda speed: speed.tokens_per_s, default=None)
        self._fastest = "" if fastest is None else fastest.name

    def explained(self, drafter: DrafterChoice) -> str:
        """Return a drafter's description with its measured speed."""
        return f"{setting_text(drafter.explanation)} {self.measured(drafter)}".rstrip()

    def row(self, drafter: DrafterChoice) -> str:
        """Return a drafter's measured speed, shortened; empty if not measured."""
        speed = self._speeds.get(drafter.name)
        if speed is None:
            return ""
        shown_text = _tr(_ROW).format(Number(speed.tau), Number(speed.x_plain))
        return f"{shown_text} · {_tr(_FASTEST_ROW)}" if speed.name == self._fastest else shown_text

    def measured(self, drafter: DrafterChoice | None) -> str:
        """Return a drafter's measured speed and draft size as text; empty if not measured."""
        speed = self._speeds.get(drafter.name) if drafter is not None else None
        if drafter is None or speed is None:
            return ""
        shown_text = _tr(_MEASURED).format(
            setting_text(drafter.label), Number(speed.tau), Number(speed.x_plain)
        )
        if speed.name == self._fastest:
            shown_text = f"{shown_text} {_tr(_FASTEST)}"
        why = why_words(speed) if drafter.drafts else ""
        return f"{shown_text} {why}".rstrip()


def why_words(speed: DrafterSpeed) -> str:
    """Explain why a drafter's steps are mostly chains, trees or plain; empty if not measured."""
    if not speed.step_x:
        return engine_text(speed.why)
    words = _WHY.get(speed.growth, _WHY_NOTHING)
    num_drafted, figures = speed.num_rows - 1, (speed.levels, speed.step_x, speed.tau)
    return _tr(words).format(*map(Number, (num_drafted, *figures)))


def _tr(text: str) -> str:
    return QCoreApplication.translate("Speeds", text)


def in_order(drafters: Sequence[DrafterChoice]) -> list[DrafterChoice]:
    """Return drafters in display order, which doesn't depend on the default."""
    return sorted(drafters, key=lambda drafter: (not drafter.drafts, setting_text(drafter.label)))


def show_speeds(box: QComboBox, drafters: Sequence[DrafterChoice], speeds: Speeds) -> None:
    """Show the measured speed after each entry of an open drafter list."""
    for place, drafter in enumerate(drafters):
        box.setItemData(place, speeds.row(drafter), _DETAIL)
        tip = wrapped(speeds.explained(drafter))
        box.setItemData(place, tip, Qt.ItemDataRole.ToolTipRole)
    if not isinstance(box.itemDelegate(), _SpeedRows):
        box.setItemDelegate(_SpeedRows(box))


class _SpeedRows(QStyledItemDelegate):
    """Entries followed by their measured speed."""

    def initStyleOption(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        super().initStyleOption(option, index)
        detail = index.data(_DETAIL)
        if detail:
            option.text = f"{option.text} · {detail}"
