"""Names of boxes of choices."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QComboBox, QLabel


class _HiddenLabel(QLabel):
    """Names a box beside which nothing is written.

    On Linux a screen reader takes the name of a box from its label alone: what Qt gives it as the
    name there is what is chosen. A label counts only under the same parent.
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
    """Name a box that has no label to be seen."""
    box.setAccessibleName(name)
    _HiddenLabel(box, name)
