"""Lists of what the engine offers: each entry under its label, explained by a tooltip."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtWidgets import QComboBox

from app.i18n.said import said
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
            box.addItem(said(choice.label), choice.name)
            box.setItemData(row, wrapped(said(choice.explanation)), Qt.ItemDataRole.ToolTipRole)
        box.setCurrentIndex(max(0, box.findData(chosen)))
