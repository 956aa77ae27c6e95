"""Graphics items of a tree: a box for each node, and the lines between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QCoreApplication, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPainterPath, QPen
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from app.insight.layout import Node, NodeState
from app.insight.tree_style import (
    BADGE_SIZE,
    badge_width,
    badges_of,
    look_of,
    note_of,
    paint_badge,
    words_of,
)
from app.insight.words import as_tip, origin, percent
from app.theme.appearance import Appearance
from app.theme.legend import Legend

COLUMN_EM = 13.0
ROW_EM = 1.95
NODE_EM = (10.4, 1.55)
_GHOST_EM = 13.5  # at least; nothing is drawn behind it
_TEXT_EM = 0.9
_INSET_EM = 0.4


def place_of(node: Node, appearance: Appearance) -> QRectF:
    """Return the rectangle of a node's box."""
    scale = appearance.scale
    width = scale.px(NODE_EM[0])
    if node.state is NodeState.GHOST:
        words = QFontMetrics(scale.font(_TEXT_EM)).horizontalAdvance(f"{words_of(node)} ")
        width = max(scale.px(_GHOST_EM), words + 2 * scale.px(_INSET_EM))
    left, top = node.depth * scale.px(COLUMN_EM), node.row * scale.px(ROW_EM)
    return QRectF(left, top, width, scale.px(NODE_EM[1]))


def describe(node: Node, legend: Legend) -> str:
    """Describe a node in words."""
    state = QCoreApplication.translate("Insight", node.state.value)
    if node.state is NodeState.ROOT:
        return f"{node.text}: {state}"
    if node.state is NodeState.GHOST:
        return f"{node.text}: {state}" + (
            "" if node.judged is None else f", {percent(node.judged)}"
        )
    known = "" if node.probability is None else f", {percent(node.probability)}"
    if node.state is NodeState.FORBIDDEN:
        return f"{node.text}: {state}{known}"
    if node.state is NodeState.PRUNED:  # of which nobody tells who offered it
        shown_text = f"{node.text}: {state}{known}"
    else:
        shown_text = QCoreApplication.translate("Insight", "{0}: {1}, from {2}{3}").format(
            node.text, state, origin(node.source, legend), known
        )
    if node.judged is None:
        return shown_text
    return QCoreApplication.translate("Insight", "{0}; the model gave it {1}").format(
        shown_text, percent(node.judged)
    )


class Lines(QGraphicsItem):
    """All lines of a tree, as one item."""

    def __init__(self, nodes: Sequence[Node], appearance: Appearance) -> None:
        super().__init__()
        self._lines: list[tuple[QPainterPath, QPen]] = []
        self._rect = QRectF()
        places = [place_of(node, appearance) for node in nodes]
        for node in nodes[1:]:
            path = _curve(places[node.parent], places[node.index])
            look = look_of(node.state, node.probability, appearance.theme)
            self._lines.append((path, look.line))
            self._rect = self._rect.united(path.boundingRect())
        self._lines.sort(key=lambda line: line[1].widthF())  # what was accepted comes on top

    def boundingRect(self) -> QRectF:
        return self._rect.adjusted(-3, -3, 3, 3)

    def paint(
        self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None
    ) -> None:
        for path, pen in self._lines:
            painter.setPen(pen)
            painter.drawPath(path)


def _curve(parent: QRectF, child: QRectF) -> QPainterPath:
    start = QPointF(parent.right(), parent.center().y())
    end = QPointF(child.left(), child.center().y())
    middle = (start.x() + end.x()) / 2
    path = QPainterPath(start)
    path.cubicTo(QPointF(middle, start.y()), QPointF(middle, end.y()), end)
    return path


class NodeItem(QGraphicsItem):
    """Box of a node: its token, its drafter and the drafter's probability.

    Args:
        node: The node.
        appearance: Appearance of the window.
        is_chosen: Whether it is framed as the selected one.
    """

    def __init__(self, node: Node, appearance: Appearance, is_chosen: Callable[[], bool]) -> None:
        super().__init__()
        self.node = node
        self._appearance = appearance
        self._is_chosen = is_chosen
        self._rect = place_of(node, appearance)
        self.setToolTip(as_tip(describe(node, appearance.legend)))

    def boundingRect(self) -> QRectF:
        return self._rect.adjusted(-3, -3, 3, 3)

    def paint(
        self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None
    ) -> None:
        node, theme, scale = self.node, self._appearance.theme, self._appearance.scale
        look = look_of(node.state, node.probability, theme)
        painter.setPen(QPen(QColor(theme.text), 3) if self._is_chosen() else look.frame)
        painter.setBrush(look.fill)
        painter.drawRoundedRect(self._rect, scale.px(0.4), scale.px(0.4))
        inset = scale.px(_INSET_EM)
        room = self._rect.adjusted(inset, 0, -inset, 0)
        room.setRight(self._paint_note(painter, room, look.ink))
        room.setRight(self._paint_badges(painter, room))
        painter.setPen(look.ink)
        font = scale.font(_TEXT_EM)
        font.setStrikeOut(node.state is NodeState.FORBIDDEN)
        painter.setFont(font)
        text = painter.fontMetrics().elidedText(
            words_of(node), Qt.TextElideMode.ElideRight, int(room.width())
        )
        painter.drawText(room, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, text)

    def _paint_note(self, painter: QPainter, room: QRectF, ink: QColor) -> float:
        """Paint the probability at the right; returns the right edge of the remaining space."""
        note = note_of(self.node)
        painter.setPen(ink)
        painter.setFont(self._appearance.scale.font(BADGE_SIZE))
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(room, right, note)
        return room.right() - painter.fontMetrics().horizontalAdvance(f"{note} ")

    def _paint_badges(self, painter: QPainter, room: QRectF) -> float:
        """Paint the drafters' badges at the right; returns the remaining right edge."""
        right, scale = room.right(), self._appearance.scale
        for badge in reversed(badges_of(self.node.source, self._appearance.legend)):
            width = badge_width(badge, self._appearance)
            place = QRectF(right - width, room.top(), width, room.height())
            paint_badge(
                painter,
                place.adjusted(0, scale.px(0.25), 0, -scale.px(0.25)),
                badge,
                self._appearance,
            )
            right -= width + scale.px(0.2)
        return right
