"""Bar chart of a model's drafters; a click selects the drafter of the conversation."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QLineF, QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QKeyEvent, QPainter, QPen
from PySide6.QtWidgets import (
    QLabel,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from app.chat_settings.race_bars import RaceBar
from app.theme.appearance import Appearance
from app.widgets.explain import explain, wrapped
from app.widgets.flow_layout import FlowLayout

_BAR = Qt.ItemDataRole.UserRole + 1
_SMALL = 0.85  # of the text's size
_BAR_EM, _GAP_EM = 0.5, 0.35
_CHOOSES = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)
_Index = QModelIndex | QPersistentModelIndex


class RaceList(QListWidget):
    """Rows of drafters, fastest first: text, and a bar with a mark for plain decoding.

    Attributes:
        bars: The displayed bars.

    Signals:
        drafter_chosen: The user selected a drafter (its name).
    """

    drafter_chosen = Signal(str)

    def __init__(self, appearance: Appearance, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("race")
        self.setAccessibleName(self.tr("Speed of each drafter on this computer"))
        self.setAccessibleDescription(
            self.tr("The dashed line is plain decoding. Enter selects a drafter for this chat.")
        )
        self.setMouseTracking(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.bars: tuple[RaceBar, ...] = ()
        self._chosen = ""
        self._rows = _RaceRows(self, appearance)
        self.setItemDelegate(self._rows)
        self.itemClicked.connect(self._choose)
        self.hide()

    def show_race(self, bars: Sequence[RaceBar]) -> None:
        """Show bars; hide the chart if nothing was measured."""
        self.bars = tuple(bars)
        self.clear()
        for bar in self.bars:
            item = QListWidgetItem(bar.label)
            item.setData(_BAR, bar)
            item.setToolTip(wrapped(bar.words))
            self.addItem(item)
        self.setVisible(bool(self.bars))
        self.show_chosen(self._chosen)
        self.restyle()

    def show_chosen(self, name: str) -> None:
        """Mark the selected drafter."""
        self._chosen = name
        for row, bar in enumerate(self.bars):
            is_chosen = bar.name == name
            words = self.tr("{0} Chosen.").format(bar.words) if is_chosen else bar.words
            item = self.item(row)
            item.setData(Qt.ItemDataRole.AccessibleTextRole, words)
            if is_chosen:
                self.setCurrentItem(item)
        self.viewport().update()

    def is_chosen(self, bar: RaceBar) -> bool:
        """Whether a bar's drafter is selected."""
        return bar.name == self._chosen

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        self.setFixedHeight(len(self.bars) * self._rows.height + 2 * self.frameWidth())
        self.scheduleDelayedItemsLayout()
        self.viewport().update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        item = self.currentItem()
        if event.key() in _CHOOSES and item is not None:
            self._choose(item)
        else:
            super().keyPressEvent(event)

    def _choose(self, item: QListWidgetItem) -> None:
        self.drafter_chosen.emit(item.data(_BAR).name)


class _RaceRows(QStyledItemDelegate):
    """Paints a row: name and gain, its bar, shape and speed."""

    def __init__(self, view: RaceList, appearance: Appearance) -> None:
        super().__init__(view)
        self._view = view
        self._appearance = appearance

    @property
    def height(self) -> int:
        """Height of a row in pixels."""
        scale = self._appearance.scale
        words = QFontMetrics(scale.font()).height() + QFontMetrics(scale.font(_SMALL)).height()
        return words + scale.px(_BAR_EM + 4 * _GAP_EM)

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        return QSize(0, self.height)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        bar, scale, theme = index.data(_BAR), self._appearance.scale, self._appearance.theme
        gap = scale.px(_GAP_EM)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        place = QRectF(option.rect)
        self._paint_ground(painter, place, option.state)
        inside = place.adjusted(2 * gap, gap, -2 * gap, -gap)
        painter.setFont(scale.font())
        line = QRectF(inside)
        line.setHeight(painter.fontMetrics().height())
        dot = self._paint_dot(painter, line, self._view.is_chosen(bar))
        self._paint_words(painter, line.adjusted(dot, 0, 0, 0), bar.label, bar.factor, theme.text)
        track = QRectF(inside.left(), line.bottom() + gap, inside.width(), scale.px(_BAR_EM))
        self._paint_bar(painter, track, bar)
        small = QRectF(inside)
        small.setTop(track.bottom() + gap / 2)
        painter.setFont(scale.font(_SMALL))
        self._paint_words(painter, small, bar.shape, bar.speed, theme.muted)
        if bar.plain:
            x = inside.left() + bar.plain * inside.width()
            painter.setPen(QPen(QColor(theme.text), 1, Qt.PenStyle.DashLine))
            painter.drawLine(QLineF(x, track.top() - gap, x, track.bottom() + gap))
        painter.restore()

    def _paint_ground(self, painter: QPainter, place: QRectF, state: QStyle.StateFlag) -> None:
        theme = self._appearance.theme
        is_current = bool(state & QStyle.StateFlag.State_Selected)
        has_focus = bool(state & QStyle.StateFlag.State_HasFocus)
        if not is_current and not state & QStyle.StateFlag.State_MouseOver:
            return
        painter.setPen(QPen(QColor(theme.accent), 2) if has_focus else Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme.hover))
        gap = self._appearance.scale.px(_GAP_EM)
        painter.drawRoundedRect(place.adjusted(1, 1, -1, -1), gap, gap)

    def _paint_dot(self, painter: QPainter, line: QRectF, is_chosen: bool) -> float:
        """Paint a radio button; returns its width."""
        theme, side = self._appearance.theme, self._appearance.scale.px(0.7)
        ring = QRectF(line.left(), line.center().y() - side / 2, side, side)
        painter.setPen(QPen(QColor(theme.accent if is_chosen else theme.muted), 1.4))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawEllipse(ring)
        if is_chosen:
            painter.setBrush(QColor(theme.accent))
            painter.drawEllipse(ring.adjusted(3, 3, -3, -3))
        return side + self._appearance.scale.px(0.4)

    def _paint_bar(self, painter: QPainter, track: QRectF, bar: RaceBar) -> None:
        theme, radius = self._appearance.theme, track.height() / 2
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme.raised))
        painter.drawRoundedRect(track, radius, radius)
        filled = QRectF(track)
        filled.setWidth(max(track.height(), bar.length * track.width()))
        painter.setBrush(QColor(theme.agreed.line if bar.pays else theme.target_bar))
        painter.drawRoundedRect(filled, radius, radius)

    def _paint_words(
        self, painter: QPainter, room: QRectF, left: str, right: str, colour: str
    ) -> None:
        """Paint texts left and right on a line; only the left one is elided."""
        painter.setPen(QColor(colour))
        middle = Qt.AlignmentFlag.AlignVCenter
        painter.drawText(room, Qt.AlignmentFlag.AlignRight | middle, right)
        metrics = painter.fontMetrics()
        rest = room.width() - metrics.horizontalAdvance(f"{right}  ")
        shown = metrics.elidedText(left, Qt.TextElideMode.ElideRight, int(rest))
        painter.drawText(room, Qt.AlignmentFlag.AlignLeft | middle, shown)


class MeasureRow(QWidget):
    """Button that requests new measurements, after a note if some are missing.

    Signals:
        requested: The user wants the model to be measured again.
    """

    requested = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.lack_label = QLabel(self.tr("Not measured fully."))
        self.lack_label.setObjectName("note")
        self.button = QPushButton(self.tr("Measure again"))
        explain(
            self.button,
            self.tr(
                "Forgets what was measured of this model on this computer, and measures it while "
                "nobody asks. Do it when the computer isn't busy."
            ),
        )
        self.button.clicked.connect(self.requested)
        row = FlowLayout(6, self)
        row.addWidget(self.lack_label)
        row.addWidget(self.button)

    def show_speeds(self, are_known: bool) -> None:
        """Show the note unless the drafters' speeds are known."""
        self.lack_label.setVisible(not are_known)
