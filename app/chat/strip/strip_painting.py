"""The two drawings of the strip of steps: tokens per step, and acceptance per head."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QRect, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.chat.strip.acceptance import (
    MEANING,
    AcceptanceRate,
)
from app.chat.strip.tally import (
    StepBar,
    StepTally,
)
from app.i18n.numbers import Number
from app.theme.appearance import Appearance
from app.widgets.explain import wrapped

# The scale of the bars grows with the highest bar, but never below a useful one.
MIN_SCALE_TOKENS = 4
CELL_EM = 7.2  # wide enough for the longest name with 100 %
MIN_CELLS = 1


class StepBars(QWidget):
    """Stacked bar per decoding step: the target's own token, then accepted tokens by source."""

    def __init__(self, appearance: Appearance, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._appearance = appearance
        self._bars: tuple[StepBar, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName(self.tr("Tokens per step"))
        self.setToolTip(
            wrapped(
                self.tr(
                    "One bar for each decoding step, as high as the tokens it gave: grey those "
                    "that the model chose itself, in colours the accepted ones by who drafted "
                    "them."
                )
            )
        )

    def show_tally(self, tally: StepTally) -> None:
        """Draw the last steps."""
        self._bars = tuple(tally.bars)
        self.update()

    def sizeHint(self) -> QSize:
        scale = self._appearance.scale
        return QSize(scale.px(8), scale.px(3))  # sources come first

    def minimumSizeHint(self) -> QSize:
        return QSize(self._appearance.scale.px(6), 1)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        theme = self._appearance.theme
        pitch = self._appearance.scale.px(0.42)
        bar_width = max(1, pitch - max(1, pitch // 4))
        base = self.height() - 1
        painter.fillRect(0, base, self.width(), 1, QColor(theme.border))
        shown = self._bars[-(self.width() // pitch) :]
        highest = max([MIN_SCALE_TOKENS, *(bar.num_tokens for bar in shown)])
        token_height = max(2, (self.height() - 2) // highest)
        own = QColor(theme.target_bar)
        look = self._appearance.mark
        lines = {mark: QColor(look(mark).line) for bar in shown for mark in bar.marks}
        for index, bar in enumerate(shown):
            x, y = index * pitch, base
            for colour in [own] * bar.num_own + [lines[mark] for mark in bar.marks]:
                y -= token_height
                painter.fillRect(x, y + 1, bar_width, token_height - 1, colour)
        painter.end()


class HeadBars(QWidget):
    """Swatch, bar and acceptance rate of each head; also the legend of the marks."""

    def __init__(self, appearance: Appearance, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._appearance = appearance
        self._rates: tuple[AcceptanceRate, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Expanding)
        self.setAccessibleName(self.tr("Acceptance by source"))

    def show_rates(self, rates: tuple[AcceptanceRate, ...]) -> None:
        """Show rates in this order."""
        if len(rates) != len(self._rates):
            self.updateGeometry()
        self._rates = rates
        shown_text = ", ".join(f"{rate.name}: {_share(rate)}" for rate in rates)
        self.setAccessibleDescription(shown_text or self.tr("no heads"))
        meaning = QCoreApplication.translate("Chat", MEANING)
        self.setToolTip(wrapped(f"{shown_text}\n{meaning}" if shown_text else meaning))
        self.update()

    def sizeHint(self) -> QSize:
        scale = self._appearance.scale
        return QSize(len(self._rates) * scale.px(CELL_EM), scale.px(3))

    def minimumSizeHint(self) -> QSize:
        return QSize(min(MIN_CELLS, len(self._rates)) * self._appearance.scale.px(CELL_EM), 1)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        scale = self._appearance.scale
        painter.setFont(scale.font(0.88))
        pitch = scale.px(CELL_EM)
        num_shown = self.num_shown
        for index, rate in enumerate(self._rates[:num_shown]):
            cell = QRect(index * pitch, 0, pitch - scale.px(0.8), self.height())
            self._paint_rate(painter, rate, cell)
        if num_left := len(self._rates) - num_shown:
            painter.setPen(QColor(self._appearance.theme.muted))
            rest = QRect(num_shown * pitch, 0, self.width() - num_shown * pitch, self.height())
            painter.drawText(rest, Qt.AlignmentFlag.AlignVCenter, f"+{num_left}")
        painter.end()

    @property
    def num_shown(self) -> int:
        """Number of cells that fit; the tooltip lists the others."""
        pitch = self._appearance.scale.px(CELL_EM)
        fitting = self.width() // pitch
        if fitting >= len(self._rates):
            return len(self._rates)
        more = self._appearance.scale.px(1.5)  # "+2" needs room, too
        return max(1, (self.width() - more) // pitch)

    def _paint_rate(self, painter: QPainter, rate: AcceptanceRate, cell: QRect) -> None:
        theme, scale = self._appearance.theme, self._appearance.scale
        colour = self._appearance.mark(rate.mark)
        thickness = scale.px(0.36)
        words = QRect(cell.left(), 0, cell.width(), cell.height() - 2 * thickness)
        share = _share(rate)
        metrics, gap = painter.fontMetrics(), scale.px(0.5)
        room = words.width() - metrics.horizontalAdvance(share) - 2 * gap
        label = metrics.elidedText(rate.name, Qt.TextElideMode.ElideRight, room)
        # The label looks as a marked token does in the text.
        advance = metrics.horizontalAdvance(label) + gap
        mark = QRect(words.left(), 0, advance, metrics.height())
        mark.moveCenter(words.center())
        mark.moveLeft(words.left())
        painter.fillRect(mark, QColor(colour.tint))
        painter.fillRect(mark.left(), mark.bottom(), mark.width(), 2, QColor(colour.line))
        painter.setPen(QColor(theme.text))
        painter.drawText(mark, Qt.AlignmentFlag.AlignCenter, label)
        painter.setPen(QColor(theme.muted))
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(words, right, share)
        top = cell.bottom() - thickness + 1
        painter.fillRect(cell.left(), top, cell.width(), thickness, QColor(theme.hover))
        filled = round(cell.width() * rate.share)
        painter.fillRect(cell.left(), top, filled, thickness, QColor(colour.line))


def _share(rate: AcceptanceRate) -> str:
    return f"{Number(rate.share):.0%}" if rate.num_steps else "—"
