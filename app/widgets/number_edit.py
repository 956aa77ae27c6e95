"""A box for a number that tells what was chosen from what is only shown."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QDoubleSpinBox, QWidget


class NumberEdit(QDoubleSpinBox):
    """Shows a number, rounded to its decimals, and reports which one is chosen.

    Screen readers set a value as `setValue` does, so both are a choice. A stored number is shown
    by `show_value`: rounding it is no choice.

    Signals:
        chosen: This number is wanted.
    """

    chosen = Signal(float)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shows = False
        self.setKeyboardTracking(False)
        self.valueChanged.connect(self._changed)

    def show_value(self, value: float) -> None:
        """Show the number that is stored."""
        self._shows = True
        self.setValue(value)
        self._shows = False

    def _changed(self, value: float) -> None:
        if not self._shows:
            self.chosen.emit(value)
