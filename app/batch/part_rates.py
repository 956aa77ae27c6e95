"""Forecast and actual rate of each part of a batch's work."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from app.batch.policy_words import compared_words, part_name, rate_words
from app.batch.share_bar import Share, ShareBar
from app.theme.appearance import Appearance
from medusa_core.messages import PartRate

_NAME, _FORECAST, _REACHED, _BAR, _NOTE = range(5)
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class PartRates(QWidget):
    """A line for each part: forecast, actual rate, and both as a bar; hidden without parts.

    Attributes:
        words: Description for screen readers.
    """

    def __init__(self, appearance: Appearance) -> None:
        super().__init__()
        self._appearance = appearance
        self._parts: tuple[PartRate, ...] = ()
        self._lines: list[_Line] = []
        self.words = ""
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setColumnStretch(_BAR, 1)
        for column, text in (
            (_FORECAST, self.tr("Forecast")),
            (_REACHED, self.tr("Reached")),
            (_BAR, self.tr("The tick is the forecast")),
        ):
            head = _muted(text)
            if column != _BAR:
                head.setAlignment(_RIGHT)
            self._grid.addWidget(head, 0, column)
        self.setAccessibleName(self.tr("Forecast and reached"))
        self.restyle()
        self.hide()

    def show_parts(self, parts: Sequence[PartRate]) -> None:
        """Show parts."""
        if tuple(parts) != self._parts:
            self._parts = tuple(parts)
            self._fill()

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        scale = self._appearance.scale
        self._grid.setHorizontalSpacing(scale.px(0.8))
        self._grid.setVerticalSpacing(scale.px(0.15))
        self._fill()

    def _fill(self) -> None:
        while len(self._lines) < len(self._parts):
            self._lines.append(_Line(self._appearance, self._grid, len(self._lines) + 1))
        for place, line in enumerate(self._lines):
            line.show_part(self._parts[place] if place < len(self._parts) else None)
        self.words = ". ".join(map(compared_words, self._parts))
        self.setAccessibleDescription(self.words)
        self.setVisible(bool(self._parts))


class _Line:
    """The widgets of a part."""

    def __init__(self, appearance: Appearance, grid: QGridLayout, row: int) -> None:
        self._appearance = appearance
        self._name, self._forecast, self._reached = QLabel(), _muted(), QLabel()
        self._bar, self._note = ShareBar(appearance), QLabel()
        self._widgets = (self._name, self._forecast, self._reached, self._bar, self._note)
        for column, widget in enumerate(self._widgets):
            grid.addWidget(widget, row, column)
        for label in (self._forecast, self._reached):
            label.setAlignment(_RIGHT)

    def show_part(self, part: PartRate | None) -> None:
        """Show a part; None hides the line."""
        for widget in self._widgets:
            widget.setVisible(part is not None)
        if part is None:
            return
        theme = self._appearance.theme
        self._name.setText(part_name(part))
        self._forecast.setText(rate_words(part.forecast, part.unit))
        self._reached.setText(rate_words(part.reached, part.unit))
        most = max(part.forecast or 0.0, part.reached or 0.0)
        colour = theme.accent if part.binds else theme.target_bar
        filled = (part.reached or 0.0) / most if most else 0.0
        tick = part.forecast / most if part.forecast and most else None
        self._bar.show_shares([Share(filled, colour)], tick)
        self._note.setText(QCoreApplication.translate("Batch", "binds") if part.binds else "")


def _muted(text: str = "") -> QLabel:
    label = QLabel(text)
    label.setProperty("class", "figure")
    return label
