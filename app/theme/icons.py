"""Icons: SVG files in one colour, painted in the colours of the theme."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

# Screens at 100 %, 150 %, 200 % and 300 %.
PIXEL_RATIOS = (1.0, 1.5, 2.0, 3.0)
# What the files paint with, replaced by a colour of the theme.
INK = b"currentColor"
_MOST_DRAWN = 256  # two themes at a few zooms; drawing one takes half a millisecond


class IconSet:
    """Icons of one folder.

    Attributes:
        folder: Folder of the SVG files.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._drawn: dict[tuple[str, str, int], QIcon] = {}

    def icon(self, name: str, colour: str, size_px: int) -> QIcon:
        """Return an icon in a colour.

        Args:
            name: File name without its extension.
            colour: "#rrggbb".
            size_px: Size in device-independent pixels.
        """
        key = (name, colour, size_px)
        if key not in self._drawn:
            if len(self._drawn) >= _MOST_DRAWN:
                self._drawn.clear()
            self._drawn[key] = self._draw(*key)
        return self._drawn[key]

    def _draw(self, name: str, colour: str, size_px: int) -> QIcon:
        renderer = self._renderer(name, colour)
        icon = QIcon()
        for ratio in PIXEL_RATIOS:
            icon.addPixmap(_render(renderer, size_px, ratio))
        return icon

    def pixmap(self, name: str, colour: str, size_px: int, ratio: float) -> QPixmap:
        """Return an icon as a pixmap for a screen's pixel ratio."""
        return _render(self._renderer(name, colour), size_px, ratio)

    def _renderer(self, name: str, colour: str) -> QSvgRenderer:
        svg = (self.folder / f"{name}.svg").read_bytes().replace(INK, colour.encode("ascii"))
        return QSvgRenderer(QByteArray(svg))


def _render(renderer: QSvgRenderer, size_px: int, ratio: float) -> QPixmap:
    side = round(size_px * ratio)
    pixmap = QPixmap(side, side)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    renderer.render(painter, QRectF(0, 0, side, side))
    painter.end()
    pixmap.setDevicePixelRatio(ratio)
    return pixmap
