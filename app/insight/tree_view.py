"""Draws a token tree: layers from left to right, what was accepted thick, the rest muted."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPen,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import (
    QGraphicsItem,
    QGraphicsScene,
    QGraphicsView,
    QStyleOptionGraphicsItem,
    QWidget,
)

from app.insight.layout import Node, State, TreeLayout
from app.insight.words import as_tip, origin, percent
from app.markdown.tokens import mark_of
from app.theme.appearance import Appearance
from app.theme.tokens import HeadColour

COLUMN_EM = 11.5
ROW_EM = 2.0
NODE_EM = (8.6, 1.55)
MOST_ZOOM = 4.0
_ARROWS = (Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Up, Qt.Key.Key_Down)
LEAST_READABLE = 0.55  # a tree is shown whole down to this scale; beyond, it scrolls


class TreeView(QGraphicsView):
    """Shows one tree; a node can be chosen by mouse and by arrow keys.

    Attributes:
        layout_shown: What is drawn.
        chosen: Index of the chosen node; −1 for none.

    Signals:
        node_chosen: A node was chosen.
    """

    node_chosen = Signal(int)

    def __init__(self, appearance: Appearance, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._appearance = appearance
        self.layout_shown = TreeLayout()
        self.chosen = -1
        self._fits = True
        scene = QGraphicsScene(self)
        scene.setItemIndexMethod(QGraphicsScene.ItemIndexMethod.NoIndex)
        self.setScene(scene)
        self.setObjectName("treeView")
        self.setAccessibleName("Token tree")
        self.setRenderHint(QPainter.RenderHint.Antialiasing)
        self.setDragMode(QGraphicsView.DragMode.ScrollHandDrag)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.viewport().setCursor(Qt.CursorShape.ArrowCursor)

    def show_layout(self, layout: TreeLayout) -> None:
        """Draw a tree."""
        self.layout_shown = layout
        self.chosen = -1
        self._draw()

    def choose(self, index: int) -> None:
        """Frame a node, and say what it is."""
        self.chosen = index
        known = 0 <= index < len(self.layout_shown.nodes)
        self.setAccessibleDescription(describe(self.layout_shown.nodes[index]) if known else "")
        self.scene().update()

    def fit(self) -> None:
        """Show the whole tree, as large as it fits; from now on, too."""
        self._fits = True
        self._scale_to_fit()

    def zoom(self, factor: float) -> None:
        """Draw larger or smaller."""
        self._fits = False
        wanted = self.transform().m11() * factor
        if 0.1 < wanted < MOST_ZOOM:
            self.scale(factor, factor)

    def restyle(self) -> None:
        """Take the sizes and colours of the theme."""
        self._draw()

    def paint_picture(self, painter: QPainter, target: QRectF) -> None:
        """Paint the whole tree with its background, such as into a file."""
        painter.fillRect(target, QColor(self._appearance.theme.window))
        self.scene().render(painter, target, self.picture_rect())

    def picture_rect(self) -> QRectF:
        """The part of the scene that a picture shows."""
        margin = self._appearance.scale.px(1.0)
        return self.scene().sceneRect().adjusted(-margin, -margin, margin, margin)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() not in _ARROWS or not self.layout_shown.nodes:
            super().keyPressEvent(event)
            return
        found = 0 if self.chosen < 0 else self._neighbour(event.key())
        self.choose(found)
        place = _place(self.layout_shown.nodes[found], self._appearance)
        self.ensureVisible(place)
        self.node_chosen.emit(found)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        item = self.itemAt(event.position().toPoint())
        if isinstance(item, _NodeItem):
            self.choose(item.node.index)
            self.node_chosen.emit(item.node.index)

    def wheelEvent(self, event: QWheelEvent) -> None:
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.zoom(1.15 if event.angleDelta().y() > 0 else 1 / 1.15)
        else:
            super().wheelEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._fits:
            self._scale_to_fit()

    def _draw(self) -> None:
        scene, nodes = self.scene(), self.layout_shown.nodes
        scene.clear()
        if not nodes:
            return
        scene.addItem(_Edges(nodes, self._appearance))
        for node in nodes:
            scene.addItem(_NodeItem(node, self))
        scene.setSceneRect(scene.itemsBoundingRect())
        if self._fits:
            self._scale_to_fit()

    def _scale_to_fit(self) -> None:
        if not self.layout_shown.nodes:
            return
        picture, room = self.picture_rect(), self.viewport().rect()
        whole = min(room.width() / picture.width(), room.height() / picture.height())
        scale = min(1.0, max(whole, LEAST_READABLE))
        self.resetTransform()
        self.scale(scale, scale)
        if whole >= LEAST_READABLE:
            self.centerOn(picture.center())
        else:  # the path lies in the first row
            self.horizontalScrollBar().setValue(self.horizontalScrollBar().minimum())
            self.verticalScrollBar().setValue(self.verticalScrollBar().minimum())

    def _neighbour(self, key: int) -> int:
        """The node that an arrow key leads to."""
        if key == Qt.Key.Key_Left:
            return max(self.layout_shown.nodes[self.chosen].parent, 0)
        if key == Qt.Key.Key_Right:
            children = [n for n in self.layout_shown.nodes if n.parent == self.chosen]
            return min(children, key=lambda n: n.row).index if children else self.chosen
        return self._in_column(-1 if key == Qt.Key.Key_Up else 1)

    def _in_column(self, step: int) -> int:
        """The next node of the same column."""
        here = self.layout_shown.nodes[self.chosen]
        column = sorted(
            (n for n in self.layout_shown.nodes if n.depth == here.depth), key=lambda n: n.row
        )
        at = column.index(here) + step
        return column[min(max(at, 0), len(column) - 1)].index


def describe(node: Node) -> str:
    """A node in words."""
    if node.state in (State.ROOT, State.GHOST):
        return f"{node.text}: {node.state.value}"
    known = "" if node.probability is None else f", {percent(node.probability)}"
    return f"{node.text}: {node.state.value}, from {origin(node.source)}{known}"


def badge_of(node: Node) -> str:
    """Who drafted a node, in short, and how likely it found it."""
    names = {"target": "model", "ngram": "lookup", "medusa+ngram": f"h{node.source.head}+lookup"}
    name = names.get(node.source.drafter, f"h{node.source.head}")
    return name if node.probability is None else f"{name} {node.probability:.0%}"


def _place(node: Node, appearance: Appearance) -> QRectF:
    scale = appearance.scale
    width, height = scale.px(NODE_EM[0]), scale.px(NODE_EM[1])
    return QRectF(node.depth * scale.px(COLUMN_EM), node.row * scale.px(ROW_EM), width, height)


class _Edges(QGraphicsItem):
    """All lines of a tree in one item."""

    def __init__(self, nodes: Sequence[Node], appearance: Appearance) -> None:
        super().__init__()
        self._lines: list[tuple[QPainterPath, QPen]] = []
        self._rect = QRectF()
        places = [_place(node, appearance) for node in nodes]
        for node in nodes[1:]:
            path = _curve(places[node.parent], places[node.index])
            self._lines.append((path, _pen(node, appearance)))
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


def _pen(node: Node, appearance: Appearance) -> QPen:
    theme = appearance.theme
    if node.state is State.ACCEPTED:
        return QPen(QColor(_colour(node, appearance).line), 3.5)
    if node.state is State.GHOST:
        return QPen(QColor(theme.text), 2.0, Qt.PenStyle.DotLine)
    if node.state is State.MISMATCH:
        return QPen(QColor(theme.danger), 1.6, Qt.PenStyle.DashLine)
    if node.state is State.PLANNED:
        colour = QColor(_colour(node, appearance).line)
        colour.setAlphaF(_opacity(node))
        return QPen(colour, 1.6)
    return QPen(QColor(theme.border), 1.2)


def _opacity(node: Node) -> float:
    """Likely nodes are plain to see; unlikely ones still are there."""
    return 1.0 if node.probability is None else 0.4 + 0.6 * min(1.0, node.probability) ** 0.5


def _colour(node: Node, appearance: Appearance) -> HeadColour:
    return appearance.theme.of_mark(mark_of(node.source) or 1)


class _NodeItem(QGraphicsItem):
    """One node: its token, who drafted it, and how likely that found it."""

    def __init__(self, node: Node, view: TreeView) -> None:
        super().__init__()
        self.node = node
        self._view = view
        self._appearance = view._appearance
        self._rect = _place(node, self._appearance)
        self.setToolTip(as_tip(describe(node)))

    def boundingRect(self) -> QRectF:
        return self._rect.adjusted(-3, -3, 3, 3)

    def paint(
        self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None
    ) -> None:
        node, theme, scale = self.node, self._appearance.theme, self._appearance.scale
        is_muted = node.state in (State.PASSED, State.UNREACHED, State.MISMATCH)
        colour = _colour(node, self._appearance)
        pen, fill = _frame(node, colour, self._appearance)
        if self._view.chosen == node.index:
            pen = QPen(QColor(theme.accent), 3)
        painter.setPen(pen)
        painter.setBrush(fill)
        radius = scale.px(0.4)
        painter.drawRoundedRect(self._rect, radius, radius)
        inner = self._rect.adjusted(scale.px(0.4), 0, -scale.px(0.4), 0)
        ink = QColor(theme.muted if is_muted else theme.text)
        ink.setAlphaF(max(0.75, _opacity(node)) if is_muted else 1.0)
        painter.setPen(ink)
        note = "" if node.state is State.ROOT else badge_of(node)
        painter.setFont(scale.font(0.72))
        note_width = painter.fontMetrics().horizontalAdvance(note) if note else 0
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(inner, right, note)
        painter.setFont(scale.font(0.9))
        words = inner.adjusted(0, 0, -note_width - scale.px(0.3), 0)
        text = painter.fontMetrics().elidedText(
            node.text, Qt.TextElideMode.ElideRight, int(words.width())
        )
        painter.drawText(words, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, text)


def _frame(node: Node, colour: HeadColour, appearance: Appearance) -> tuple[QPen, QColor]:
    """Line and fill of a node's box."""
    theme = appearance.theme
    match node.state:
        case State.ROOT:
            return QPen(QColor(theme.muted), 1.4), QColor(theme.raised)
        case State.ACCEPTED:
            return QPen(QColor(colour.line), 2.2), QColor(colour.tint)
        case State.GHOST:
            return QPen(QColor(theme.text), 1.6, Qt.PenStyle.DotLine), QColor(theme.window)
        case State.MISMATCH:
            return QPen(QColor(theme.danger), 1.6, Qt.PenStyle.DashLine), QColor(theme.window)
        case State.PLANNED:
            fill = QColor(colour.tint)
            fill.setAlphaF(_opacity(node))
            return QPen(QColor(colour.line), 1.2), fill
    fill = QColor(colour.tint)
    fill.setAlphaF(0.45 * _opacity(node))
    return QPen(QColor(theme.border), 1.0), fill
