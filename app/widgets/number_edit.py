"""Spin boxes padded like other fields, and one that distinguishes entered numbers."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Signal
from PySide6.QtWidgets import QDoubleSpinBox, QLineEdit, QSpinBox, QWidget


class WholeBox(QSpinBox):
    """Spin box of whole numbers."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        _pad(self.lineEdit())

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        _pad(self.lineEdit())


class DecimalBox(QDoubleSpinBox):
    """Spin box of decimal numbers."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        _pad(self.lineEdit())

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        _pad(self.lineEdit())


def _pad(edit: QLineEdit) -> None:
    """Keep text from the border by a digit's width; Qt ignores the style sheet's padding here."""
    margin = edit.fontMetrics().horizontalAdvance("0")
    if edit.textMargins().left() != margin:
        edit.setTextMargins(margin, 0, margin, 0)


class NumberEdit(DecimalBox):
    """Spin box that shows a rounded number and signals entered ones.

    Screen readers call `setValue`, so that counts as entered. A stored number is shown
    by `show_value`, so that rounding doesn't change it.

    Signals:
        chosen: The user enters a number.
    """

    chosen = Signal(float)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shows = False
        self.setKeyboardTracking(False)
        self.valueChanged.connect(self._changed)

    def show_value(self, value: float) -> None:
        """Show a stored number."""
        self._shows = True
        self.setValue(value)
        self._shows = False

    def _changed(self, value: float) -> None:
        if not self._shows:
            self.chosen.emit(value)
