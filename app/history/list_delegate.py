"""Paints the rows of the list of conversations."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRect, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPen, QTextCharFormat, QTextLayout
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from app.history.grouping import Heading
from app.history.list_model import ROW, Index, ListModel, ListRow
from app.theme.appearance import Appearance
from medusa_core.api import SearchHit

_SNIPPET_LINES = 2


class ListDelegate(QStyledItemDelegate):
    """Delegate for headings, titles and search results."""

    def __init__(self, model: ListModel, appearance: Appearance) -> None:
        super().__init__()
        self._model = model
        self._appearance = appearance

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        row, scale = index.data(ROW), self._appearance.scale
        line = QFontMetrics(self._font(row)).height()
        if isinstance(row, SearchHit):
            small = QFontMetrics(self._font(row, small=True)).height()
            return QSize(0, line + _SNIPPET_LINES * small + scale.px(1.0))
        return QSize(0, line + scale.px(1.0 if isinstance(row, Heading) else 0.8))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row, theme, scale = index.data(ROW), self._appearance.theme, self._appearance.scale
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        place: QRect = option.rect
        state: QStyle.StateFlag = option.state
        if not isinstance(row, Heading):
            self._paint_ground(painter, place, state)
        inside = place.adjusted(scale.px(0.8), scale.px(0.4), -scale.px(0.6), -scale.px(0.4))
        painter.setFont(self._font(row))
        painter.setPen(QColor(theme.muted if isinstance(row, Heading) else theme.text))
        title = row.text if isinstance(row, Heading) else row.title
        metrics = painter.fontMetrics()
        if not isinstance(row, Heading | SearchHit) and row.id in self._model.running:
            self._paint_dot(painter, inside)
            inside.setRight(inside.right() - scale.px(0.9))
        line = QRect(inside.left(), inside.top(), inside.width(), metrics.height())
        if isinstance(row, Heading):
            line.moveBottom(inside.bottom())
        words = metrics.elidedText(title, Qt.TextElideMode.ElideRight, line.width())
        flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(line, flags | Qt.TextFlag.TextSingleLine, words)
        if isinstance(row, SearchHit):
            is_selected = bool(state & QStyle.StateFlag.State_Selected)
            painter.setPen(QColor(theme.text if is_selected else theme.muted))
            self._paint_snippet(painter, inside.adjusted(0, metrics.height(), 0, 0), row)
        painter.restore()

    def _paint_ground(self, painter: QPainter, place: QRect, state: QStyle.StateFlag) -> None:
        theme, scale = self._appearance.theme, self._appearance.scale
        selected = bool(state & QStyle.StateFlag.State_Selected)
        if not selected and not state & QStyle.StateFlag.State_MouseOver:
            return
        gap = scale.px(0.3)
        painter.setPen(Qt.PenStyle.NoPen)
        if selected and state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(QPen(QColor(theme.accent), 1))
        painter.setBrush(QColor(theme.selection if selected else theme.hover))
        painter.drawRoundedRect(place.adjusted(gap, 1, -gap, -1), gap, gap)

    def _paint_dot(self, painter: QPainter, inside: QRect) -> None:
        """Paint the dot of a conversation whose answer is under way."""
        side = self._appearance.scale.px(0.45)
        painter.save()
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._appearance.theme.accent))
        painter.drawEllipse(inside.right() - side, inside.center().y() - side // 2, side, side)
        painter.restore()

    def _paint_snippet(self, painter: QPainter, place: QRect, hit: SearchHit) -> None:
        """Paint the excerpt of a search result with the match highlighted."""
        text = hit.snippet.replace("\n", " ")
        layout = QTextLayout(text, self._font(hit, small=True))
        ranges = []
        for start, end in hit.spans:
            found = QTextLayout.FormatRange()
            found.start, found.length = start, end - start
            style = QTextCharFormat()
            style.setFontWeight(QFont.Weight.DemiBold)
            style.setForeground(QColor(self._appearance.theme.text))
            found.format = style
            ranges.append(found)
        layout.setFormats(ranges)
        layout.beginLayout()
        top = 0.0
        for _ in range(_SNIPPET_LINES):
            line = layout.createLine()
            if not line.isValid():
                break
            line.setLineWidth(place.width())
            line.setPosition(QPointF(0, top))
            top += line.height()
        layout.endLayout()
        layout.draw(painter, QPointF(place.topLeft()))

    def _font(self, row: ListRow, *, small: bool = False) -> QFont:
        is_small = small or isinstance(row, Heading)
        stands_out = isinstance(row, SearchHit) and not small
        weight = QFont.Weight.DemiBold if stands_out else QFont.Weight.Normal
        return self._appearance.scale.font(0.88 if is_small else 1.0, weight)
