"""Captions of a tree: its shape in words, and frames around blocks that one pass drafted."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QCoreApplication, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from app.i18n.setting_texts import setting_text
from app.insight.layout import DrawnBlock, NodeState, TreeLayout
from app.insight.tree_items import COLUMN_EM, NODE_EM, ROW_EM, place_of
from app.insight.words import as_spoken
from app.theme.appearance import Appearance
from app.theme.legend import Legend, Mark

_TEXT = 0.78  # of the text's size, as badges
_LINE_EM = 1.5  # of a caption
_MARGIN_EM = 0.55  # between a frame and what it holds


def shape_of(layout: TreeLayout) -> str:
    """Describe the shape of the verified tree in two or three words."""
    count = len(layout.drafts)
    if not count:
        return QCoreApplication.translate("Insight", "no drafts")
    if layout.is_chain:
        return QCoreApplication.translate("Insight", "chain of {0}").format(count)
    return QCoreApplication.translate("Insight", "tree of {0}").format(count)


def block_words(block: DrawnBlock, legend: Legend) -> str:
    """Describe which source drafted a block."""
    label = setting_text(legend.info(block.source).label)
    return QCoreApplication.translate("Insight", "{0}: places {1} to {2} from one pass").format(
        label, block.first, block.last
    )


def describe_tree(layout: TreeLayout, legend: Legend) -> str:
    """Describe a step's tree; empty without one."""
    return "; ".join(_parts(layout, legend)) if layout.nodes else ""


def outcome_of(layout: TreeLayout) -> str:
    """Describe the accepted draft tokens of a step and the bonus token."""
    accepted = [node for node in layout.nodes if node.state is NodeState.ACCEPTED]
    shown_text = QCoreApplication.translate("Insight", "{0} of {1} draft tokens accepted").format(
        len(accepted), len(layout.drafts)
    )
    if accepted:
        shown_text = QCoreApplication.translate("Insight", "{0}: {1}").format(
            shown_text, ", ".join(as_spoken(node.text) for node in accepted)
        )
    ghost = next((node for node in layout.nodes if node.state is NodeState.GHOST), None)
    if ghost is None:
        return shown_text
    own = QCoreApplication.translate("Insight", "then the model's own: {0}")
    return f"{shown_text}; {own.format(as_spoken(ghost.text))}"


def _parts(layout: TreeLayout, legend: Legend) -> Iterator[str]:
    yield shape_of(layout)
    if layout.drafts and not layout.num_of(NodeState.PLANNED):
        yield outcome_of(layout)
    for block in layout.blocks:
        yield block_words(block, legend)
    if pruned := layout.num_of(NodeState.PRUNED):
        yield QCoreApplication.translate(
            "Insight", "likely draft tokens without a row: {0}"
        ).format(pruned)


class Caption(QGraphicsItem):
    """Text above the root: the tree's shape."""

    def __init__(self, words: str, appearance: Appearance) -> None:
        super().__init__()
        self._words, self._appearance = words, appearance
        scale = appearance.scale
        top, height = _top(appearance), scale.px(_LINE_EM)
        self._rect = QRectF(0, top, scale.px(NODE_EM[0]), height)

    def boundingRect(self) -> QRectF:
        return self._rect

    def paint(
        self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None
    ) -> None:
        _paint_words(painter, self._rect, self._words, self._appearance)


class BlockFrame(QGraphicsItem):
    """Frame around a block that one pass drafted, with a text above it."""

    def __init__(self, block: DrawnBlock, layout: TreeLayout, appearance: Appearance) -> None:
        super().__init__()
        self._appearance = appearance
        self._words = block_words(block, appearance.legend)
        self._mark = Mark(block.source, 1)
        scale = appearance.scale
        margin, top = scale.px(_MARGIN_EM), _top(appearance)
        left = block.first * scale.px(COLUMN_EM) - margin
        last = (node for node in layout.nodes if node.depth == block.last)
        edge = block.last * scale.px(COLUMN_EM) + scale.px(NODE_EM[0])
        right = max((edge, *(place_of(node, appearance).right() for node in last))) + margin
        bottom = (layout.num_rows - 1) * scale.px(ROW_EM) + scale.px(NODE_EM[1]) + margin
        self._rect = QRectF(left, top, right - left, bottom - top)
        self.setZValue(-1)  # behind what it holds

    def boundingRect(self) -> QRectF:
        return self._rect.adjusted(-2, -2, 2, 2)

    def paint(
        self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None
    ) -> None:
        appearance, scale = self._appearance, self._appearance.scale
        colour = appearance.mark(self._mark)
        fill = QColor(colour.tint)
        fill.setAlphaF(0.35)
        painter.setPen(QPen(QColor(colour.line), 1.4, Qt.PenStyle.DashLine))
        painter.setBrush(fill)
        painter.drawRoundedRect(self._rect, scale.px(0.6), scale.px(0.6))
        words = QRectF(self._rect.left(), self._rect.top(), self._rect.width(), scale.px(_LINE_EM))
        margin = scale.px(_MARGIN_EM)
        _paint_words(painter, words.adjusted(margin, 0, -margin, 0), self._words, appearance)


def _top(appearance: Appearance) -> float:
    """Return the y-coordinate of captions, above the first row."""
    return -float(appearance.scale.px(_LINE_EM + 0.2))


def _paint_words(painter: QPainter, room: QRectF, words: str, appearance: Appearance) -> None:
    painter.setPen(QColor(appearance.theme.muted))
    painter.setFont(appearance.scale.font(_TEXT))
    shown = painter.fontMetrics().elidedText(words, Qt.TextElideMode.ElideRight, int(room.width()))
    painter.drawText(room, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, shown)
