"""Accessible names of combo boxes."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QComboBox, QLabel


class _HiddenLabel(QLabel):
    """Invisible label that names a combo box.

    On Linux, screen readers take a combo box's name only from its label: Qt reports the selected
    entry as its name. The label must have the same parent.
    """

    def __init__(self, box: QComboBox, name: str) -> None:
        super().__init__(name.replace("&", "&&"), box.parentWidget() or box)
        self.hide()
        self.setBuddy(box)
        self._box = box
        box.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ParentChange and watched is self._box:
            self.setParent(self._box.parentWidget() or self._box)
            self.hide()
        return False


def name_box(box: QComboBox, name: str) -> None:
    """Name a combo box without a visible label."""
    box.setAccessibleName(name)
    _HiddenLabel(box, name)
