"""The bundled fonts, and lengths measured in them."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from PySide6.QtGui import QFont, QFontDatabase, QFontMetricsF

log = logging.getLogger(__name__)

TEXT_FAMILY = "Inter"
CODE_FAMILY = "JetBrains Mono"
BASE_POINT_SIZE = 10.5
MIN_ZOOM = 0.7
MAX_ZOOM = 2.0
ZOOM_STEP = 0.1


@cache
def load_fonts(folder: Path) -> None:
    """Register the fonts of a folder; broken files are ignored."""
    for path in sorted(folder.glob("*.[ot]tf")):
        if QFontDatabase.addApplicationFont(str(path)) < 0:
            log.warning("The font %s can't be read; another one is used.", path.name)
    _height.cache_clear()


@dataclass(frozen=True, slots=True)
class FontScale:
    """Font sizes and lengths at the user's zoom.

    Attributes:
        zoom: 1.0 for the normal size.
        family: Font of all text except code.
    """

    zoom: float = 1.0
    family: str = TEXT_FAMILY

    @property
    def point_size(self) -> float:
        """Size of body text in points."""
        return BASE_POINT_SIZE * self.zoom

    def font(self, relative: float = 1.0, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
        """Return the text font at a size relative to body text."""
        font = QFont(self.family)
        font.setPointSizeF(self.point_size * relative)
        font.setWeight(weight)
        return font

    def px(self, em: float) -> int:
        """Convert a length in heights of body text to device-independent pixels."""
        return max(1, round(em * _height(self) / 1.21))

    def zoomed(self, steps: int) -> FontScale:
        """Return the scale some zoom steps away, within the limits."""
        return self.zoomed_to(round(self.zoom + steps * ZOOM_STEP, 2))

    def zoomed_to(self, zoom: float) -> FontScale:
        """Return the scale at a zoom factor, within the limits."""
        return replace(self, zoom=min(MAX_ZOOM, max(MIN_ZOOM, zoom)))


@cache
def _height(scale: FontScale) -> float:
    """Return the height of body text; cached, since drawing needs it often."""
    return QFontMetricsF(scale.font()).height()
