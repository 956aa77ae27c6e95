"""Boxes of choices: entries that explain themselves, and those that can't be chosen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtGui import QStandardItemModel
from PySide6.QtWidgets import QComboBox

from app.i18n.setting_texts import setting_text
from app.widgets.explain import wrapped


class Offered(Protocol):
    """A drafter, a rule, or what else has a name and words of its own."""

    @property
    def name(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def explanation(self) -> str: ...


def offer(box: QComboBox, choices: Iterable[Offered]) -> None:
    """Offer these, their names as data, and keep what is chosen where it is among them.

    The box tells nobody.
    """
    chosen = box.currentData()
    with QSignalBlocker(box):
        box.clear()
        for row, choice in enumerate(choices):
            box.addItem(setting_text(choice.label), choice.name)
            box.setItemData(
                row, wrapped(setting_text(choice.explanation)), Qt.ItemDataRole.ToolTipRole
            )
        box.setCurrentIndex(max(0, box.findData(chosen)))


def add_entry(box: QComboBox, words: str, data: object, reason: str = "") -> None:
    """Add an entry; with a reason why not it can be read, but not chosen."""
    box.addItem(f"{words} – {reason}" if reason else words, data)
    model = box.model()
    if reason and isinstance(model, QStandardItemModel):
        model.item(box.count() - 1).setEnabled(False)
