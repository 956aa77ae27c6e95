"""Spin box that distinguishes entered numbers from shown ones."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QDoubleSpinBox, QWidget


class NumberEdit(QDoubleSpinBox):
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
