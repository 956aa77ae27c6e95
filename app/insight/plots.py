"""Plots of the steps panel."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QColor, QFocusEvent, QKeyEvent

from app.i18n.numbers import localize_separators
from app.insight.steps_figures import Floats
from app.theme.appearance import Appearance

_AXES = ("left", "bottom")
LEAST_EM = 6.5  # height; with less room the panel scrolls
# How far each key moves; Home and End go as far as there is.
_MOVES = {
    Qt.Key.Key_Left: -1,
    Qt.Key.Key_Right: 1,
    Qt.Key.Key_PageUp: -10,
    Qt.Key.Key_PageDown: 10,
    Qt.Key.Key_Home: -(10**9),
    Qt.Key.Key_End: 10**9,
}


class _Axis(pg.AxisItem):  # type: ignore[misc]  # pyqtgraph has no types
    """Axis with numbers in the window's language."""

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        return [localize_separators(text) for text in super().tickStrings(values, scale, spacing)]


class Plot(pg.PlotWidget):  # type: ignore[misc]  # pyqtgraph has no types
    """Plot with a title and an explanation.

    Args:
        name: Title.
        meaning: Definition of the plotted figure.
    """

    def __init__(self, name: str, meaning: str) -> None:
        super().__init__(axisItems={side: _Axis(side) for side in _AXES})
        self._name = name
        self._unit = ""
        self._focus_colour = ""
        self.setAccessibleName(name)
        self.setToolTip(meaning)
        self.setMenuEnabled(False)
        self.setMouseEnabled(False, False)  # all of it is shown, and nothing brings it back
        self.hideButtons()
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)

    def sizeHint(self) -> QSize:
        # As little as can be read; what room there is comes on top.
        return QSize(self.minimumWidth(), self.minimumHeight())

    def take_unit(self, unit: str) -> None:
        """Set the unit of the y-axis."""
        self._unit = f" ({unit})"
        self.setAccessibleName(f"{self._name}{self._unit}")

    def restyle(self, appearance: Appearance) -> None:
        """Apply the theme's sizes and colours."""
        scale, theme = appearance.scale, appearance.theme
        self._focus_colour = theme.accent
        self.setMinimumSize(scale.px(12), scale.px(LEAST_EM))
        self.setBackground(QColor(theme.window))
        self.getPlotItem().titleLabel.setAttr("size", f"{scale.px(0.8)}px")
        self.getPlotItem().titleLabel.setAttr("color", theme.text)
        self.describe()
        for side in _AXES:
            axis = self.getPlotItem().getAxis(side)
            axis.setPen(QColor(theme.border))
            axis.setTextPen(QColor(theme.muted))
            axis.setTickFont(scale.font(0.75))

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        # Not by the style sheet: whatever that frames is painted five times slower.
        self.getPlotItem().getViewBox().setBorder(pg.mkPen(self._focus_colour, width=2))

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.getPlotItem().getViewBox().setBorder(None)

    def describe(self, *parts: tuple[str, str]) -> None:
        """Append a legend to the title.

        Args:
            parts: Plain texts with their colours.
        """
        legend = " ".join(f'<span style="color:{colour}">■</span> {name}' for name, colour in parts)
        name = self._name + self._unit
        self.getPlotItem().setTitle(f"{name}: {legend}" if parts else name)


class TimePlot(Plot):
    """Plot over the steps, with a marker at the shown step.

    Signals:
        step_chosen: The user clicks a step, or drags the marker to it; its number.
        step_moved: The user moves the marker by a number of steps.
    """

    step_chosen = Signal(int)
    step_moved = Signal(int)

    def __init__(self, name: str, meaning: str) -> None:
        super().__init__(name, meaning)
        self.marker = pg.InfiniteLine(movable=True)
        self.marker.sigDragged.connect(lambda line: self.step_chosen.emit(round(line.value())))
        self.marker.setZValue(1)
        self.marker.hide()
        self.addItem(self.marker, ignoreBounds=True)
        self.scene().sigMouseClicked.connect(self._clicked)

    def restyle(self, appearance: Appearance) -> None:
        """Apply the theme's sizes and colours."""
        super().restyle(appearance)
        self.marker.setPen(pg.mkPen(appearance.theme.accent, width=2))
        self.marker.setHoverPen(pg.mkPen(appearance.theme.accent_hover, width=4))

    def clear_curves(self) -> None:
        """Remove the curves, and keep the marker."""
        self.clear()
        self.addItem(self.marker, ignoreBounds=True)

    def stack(self, numbers: Floats, parts: Floats, colours: tuple[str, ...]) -> None:
        """Draw stacked bars.

        Each part is one curve: thousands of bar items would be slow.

        Args:
            numbers: Numbers of the steps. [steps]
            parts: Heights of each part. [parts, steps]
            colours: Colour of each part, as "#rrggbb".
        """
        edges = np.append(numbers - 0.5, numbers[-1] + 0.5)
        tops = zip(np.cumsum(parts, axis=0), colours, strict=True)
        for heights, colour in reversed(list(tops)):  # the whole first, the smaller before it
            bars = pg.PlotCurveItem(
                edges, heights, stepMode="center", fillLevel=0, brush=colour, pen=pg.mkPen(colour)
            )
            self.addItem(bars)

    def mark(self, number: int | None) -> None:
        """Move the marker to a step; None hides it."""
        self.marker.setVisible(number is not None)
        if number is not None and not self.marker.moving:
            self.marker.setValue(number)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in _MOVES:
            self.step_moved.emit(_MOVES[Qt.Key(event.key())])
        else:
            super().keyPressEvent(event)

    def _clicked(self, event: object) -> None:
        place = self.getPlotItem().vb.mapSceneToView(event.scenePos())  # type: ignore[attr-defined]
        self.step_chosen.emit(round(place.x()))
