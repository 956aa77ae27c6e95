"""Bar of shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.theme.appearance import Appearance

_HEIGHT_EM = 0.8
_TICK = 2  # pixels


class Share(NamedTuple):
    """Part of a bar.

    Attributes:
        length: Share of the bar, 0 to 1.
        colour: As "#rrggbb".
    """

    length: float
    colour: str


class ShareBar(QWidget):
    """Bar of shares with a tick; a text beside it says the same."""

    def __init__(self, appearance: Appearance) -> None:
        super().__init__()
        self._appearance = appearance
        self._shares: tuple[Share, ...] = ()
        self._tick: float | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_shares(self, shares: Sequence[Share], tick: float | None = None) -> None:
        """Show shares; the rest of the bar is empty.

        Args:
            shares: Shares from left to right.
            tick: Position of the tick, 0 to 1.
        """
        self._shares, self._tick = tuple(shares), tick
        self.update()

    def sizeHint(self) -> QSize:
        scale = self._appearance.scale
        return QSize(scale.px(8), scale.px(_HEIGHT_EM))

    def minimumSizeHint(self) -> QSize:
        return QSize(self._appearance.scale.px(4), self._appearance.scale.px(_HEIGHT_EM))

    def paintEvent(self, _: QPaintEvent) -> None:
        theme = self._appearance.theme
        painter = QPainter(self)
        whole = QRectF(self.rect())
        painter.fillRect(whole, QColor(theme.raised))
        left, seam = 0.0, QPen(QColor(theme.window))
        for share in self._shares:
            part = QRectF(left, 0, whole.width() * share.length, whole.height())
            painter.fillRect(part, QColor(share.colour))
            left = part.right()
            painter.setPen(seam)
            painter.drawLine(round(left), 0, round(left), self.height())
        painter.setPen(QPen(QColor(theme.border)))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(whole.adjusted(0.5, 0.5, -0.5, -0.5))
        if self._tick is not None:
            x = min(self._tick * whole.width(), whole.width() - _TICK)
            painter.fillRect(QRectF(x, 0, _TICK, whole.height()), QColor(theme.text))
        painter.end()
