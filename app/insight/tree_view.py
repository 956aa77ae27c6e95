"""Draws a token tree from left to right; the accepted path is thick, the rest muted."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QCoreApplication, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QGraphicsScene, QGraphicsView, QWidget

from app.i18n.words import QT_TRANSLATE_NOOP
from app.insight.layout import TreeLayout
from app.insight.tree_captions import BlockFrame, Caption, describe_tree, shape_of
from app.insight.tree_items import Lines, NodeItem, describe, place_of
from app.insight.words import as_spoken
from app.theme.appearance import Appearance
from app.widgets.announce import announce

MOST_ZOOM = 4.0
ZOOM_STEP = 1.25
_ARROWS = (Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Up, Qt.Key.Key_Down)
LEAST_EM = 9  # height; with less room the panel scrolls
NOTHING = QT_TRANSLATE_NOOP("Insight", "No step to show yet: ask something.")
UNKEPT = QT_TRANSLATE_NOOP("Insight", "Steps of this answer aren't kept: ask something.")
_ZOOMS = {Qt.Key.Key_Plus: 1, Qt.Key.Key_Equal: 1, Qt.Key.Key_Minus: -1}
LEAST_READABLE = 0.65  # a tree is shown whole down to this scale; beyond, it scrolls


class TreeView(QGraphicsView):
    """View of one tree; mouse and arrow keys select a node, the keys + − 0 zoom.

    Attributes:
        layout_shown: The drawn layout.
        chosen: Index of the selected node; −1 for none.
        has_answers: Whether the conversation has answers without recorded steps.

    Signals:
        node_chosen: The user selects a node.
    """

    node_chosen = Signal(int)

    def __init__(self, appearance: Appearance, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._appearance = appearance
        self.layout_shown = TreeLayout()
        self.chosen = -1
        self.has_answers = False
        self._fits = True
        scene = QGraphicsScene(self)
        scene.setItemIndexMethod(QGraphicsScene.ItemIndexMethod.NoIndex)
        self.setScene(scene)
        self.setObjectName("treeView")
        self.setAccessibleName(self.tr("Token tree"))
        self.setRenderHint(QPainter.RenderHint.Antialiasing)
        self.setDragMode(QGraphicsView.DragMode.ScrollHandDrag)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAcceptDrops(False)  # traces are dropped on the window
        self.viewport().setCursor(Qt.CursorShape.ArrowCursor)

    def minimumSizeHint(self) -> QSize:
        scale = self._appearance.scale
        return QSize(scale.px(20), scale.px(LEAST_EM))

    def sizeHint(self) -> QSize:
        # As little as can be read; what room there is comes on top.
        return self.minimumSizeHint()

    def show_layout(self, layout: TreeLayout) -> None:
        """Draw a tree."""
        self.layout_shown = layout
        self.chosen = -1
        self.setAccessibleDescription(self._spoken(-1))
        self._draw()

    def choose(self, index: int) -> None:
        """Select a node, and announce it."""
        self.chosen = index
        self.setAccessibleDescription(self._spoken(index))
        if index >= 0 and self.hasFocus():
            announce(self, self._spoken(index))
        self.scene().update()

    def _spoken(self, index: int) -> str:
        """Describe the selected node for screen readers, or the whole tree if none is selected."""
        nodes, legend = self.layout_shown.nodes, self._appearance.legend
        if not 0 <= index < len(nodes):
            return describe_tree(self.layout_shown, legend)
        text = nodes[index].text
        return as_spoken(text) + describe(nodes[index], legend).removeprefix(text)

    def fit(self) -> None:
        """Fit the whole tree into the view, also after later changes."""
        self._fits = True
        self._scale_to_fit()

    def zoom(self, steps: float) -> None:
        """Zoom in (positive) or out."""
        self._fits = False
        factor = ZOOM_STEP**steps
        if 0.1 < self.transform().m11() * factor < MOST_ZOOM:
            self.scale(factor, factor)

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        self._draw()

    def paint_picture(self, painter: QPainter, target: QRectF) -> None:
        """Paint the whole tree with its background, for a file."""
        painter.fillRect(target, QColor(self._appearance.theme.window))
        self.scene().render(painter, target, self.picture_rect())

    def picture_rect(self) -> QRectF:
        """Rectangle of the scene that a picture shows."""
        margin = self._appearance.scale.px(1.0)
        return self.scene().sceneRect().adjusted(-margin, -margin, margin, margin)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in _ZOOMS:
            self.zoom(_ZOOMS[Qt.Key(event.key())])
            return
        if event.key() == Qt.Key.Key_0:
            self.fit()
            return
        if event.key() not in _ARROWS or not self.layout_shown.nodes:
            super().keyPressEvent(event)
            return
        found = 0 if self.chosen < 0 else self._neighbour(event.key())
        self.choose(found)
        place = place_of(self.layout_shown.nodes[found], self._appearance)
        self.ensureVisible(place)
        self.node_chosen.emit(found)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        item = self.itemAt(event.position().toPoint())
        if isinstance(item, NodeItem):
            self.choose(item.node.index)
            self.node_chosen.emit(item.node.index)

    def wheelEvent(self, event: QWheelEvent) -> None:
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.zoom(0.5 if event.angleDelta().y() > 0 else -0.5)
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
            self._clear_note()
            return
        for block in self.layout_shown.blocks:
            scene.addItem(BlockFrame(block, self.layout_shown, self._appearance))
        scene.addItem(Caption(shape_of(self.layout_shown), self._appearance))
        scene.addItem(Lines(nodes, self._appearance))
        for node in nodes:
            is_chosen = partial(self._is_chosen, node.index)
            scene.addItem(NodeItem(node, self._appearance, is_chosen))
        scene.setSceneRect(scene.itemsBoundingRect())
        if self._fits:
            self._scale_to_fit()

    def _clear_note(self) -> None:
        """Show why there is no tree."""
        words = self.scene().addText(
            QCoreApplication.translate("Insight", UNKEPT if self.has_answers else NOTHING),
            self._appearance.scale.font(),
        )
        words.setDefaultTextColor(QColor(self._appearance.theme.muted))
        self.scene().setSceneRect(words.boundingRect())
        self.resetTransform()

    def _is_chosen(self, index: int) -> bool:
        return self.chosen == index

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
        """Return the node that an arrow key selects."""
        if key == Qt.Key.Key_Left:
            return max(self.layout_shown.nodes[self.chosen].parent, 0)
        if key == Qt.Key.Key_Right:
            children = [n for n in self.layout_shown.nodes if n.parent == self.chosen]
            return min(children, key=lambda n: n.row).index if children else self.chosen
        return self._in_column(-1 if key == Qt.Key.Key_Up else 1)

    def _in_column(self, step: int) -> int:
        """Return the next node of the same column."""
        here = self.layout_shown.nodes[self.chosen]
        column = sorted(
            (n for n in self.layout_shown.nodes if n.depth == here.depth), key=lambda n: n.row
        )
        at = column.index(here) + step
        return column[min(max(at, 0), len(column) - 1)].index
