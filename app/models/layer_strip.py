"""Strip of cells that shows the tier of each layer, with a legend."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QLabel, QSizePolicy, QVBoxLayout, QWidget

from app.theme.appearance import Appearance
from app.theme.tiers import tier_colour
from app.widgets.offload_words import tier_words
from medusa_core.messages import Placement, Tier


class LayerStrip(QWidget):
    """The strip and its legend; hidden if all layers are on the device.

    Attributes:
        words: Text of the legend.
    """

    def __init__(self, appearance: Appearance) -> None:
        super().__init__()
        self._appearance = appearance
        self._cells = _Cells(appearance)
        self._legend = QLabel()
        self._legend.setProperty("class", "figure")
        self._legend.setTextFormat(Qt.TextFormat.RichText)
        self._legend.setWordWrap(True)
        self.words = ""
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self._cells)
        column.addWidget(self._legend)
        self.setAccessibleName(self.tr("Layers"))
        self.hide()

    def show_placement(self, placement: Placement | None) -> None:
        """Show the tier of each layer; None hides the strip."""
        self.setVisible(placement is not None)
        if placement is None:
            return
        theme = self._appearance.theme
        text = {tier: words for tier in Tier if (words := tier_words(placement, tier))}
        self.words = ", ".join(text.values())
        self.setAccessibleDescription(self.words)
        self._cells.show_tiers(placement.tiers)
        squares = " ".join(
            f'<span style="color:{tier_colour(tier, theme)};">&#9632;&#9632;</span> {words}'
            for tier, words in text.items()
        )
        self._legend.setText(self.tr("Layers: {0}").format(squares))


class _Cells(QWidget):
    """A cell for each layer."""

    def __init__(self, appearance: Appearance) -> None:
        super().__init__()
        self._appearance = appearance
        self._tiers: tuple[Tier, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_tiers(self, tiers: tuple[Tier, ...]) -> None:
        """Show the tier of each layer."""
        self._tiers = tiers
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(self._appearance.scale.px(20), self._appearance.scale.px(0.8))

    def paintEvent(self, _: QPaintEvent) -> None:
        theme = self._appearance.theme
        painter = QPainter(self)
        painter.setPen(QPen(QColor(theme.window)))
        width = self.width() / max(1, len(self._tiers))
        for layer, tier in enumerate(self._tiers):
            cell = QRectF(layer * width, 0, width, self.height() - 1)
            painter.setBrush(QColor(tier_colour(tier, theme)))
            painter.drawRect(cell)
        painter.end()
