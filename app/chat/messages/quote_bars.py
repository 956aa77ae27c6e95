"""The bars beside quotations."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QTextBlock, QTextCursor, QTextDocument, QTextFormat

_LEVEL = QTextFormat.Property.BlockQuoteLevel
_BAR_SHARE = 0.18  # of a level's indent


def quote_bars(document: QTextDocument, area: QRectF, step_px: float) -> Iterator[QRectF]:
    """Where bars stand in a part of a document.

    Args:
        document: Laid out.
        area: The part that is drawn.
        step_px: How far a level is indented.
    """
    layout = document.documentLayout()
    block = document.findBlock(max(0, layout.hitTest(area.topLeft(), Qt.HitTestAccuracy.FuzzyHit)))
    root = document.rootFrame()
    while block.isValid():
        frame = QTextCursor(block).currentFrame()
        is_framed = frame != root
        box = layout.frameBoundingRect(frame) if is_framed else layout.blockBoundingRect(block)
        if box.top() > area.bottom():
            return
        fmt = frame.frameFormat() if is_framed else block.blockFormat()
        # Up to the block before it, so that the bar of a quotation of several paragraphs is one.
        gap = 0.0 if is_framed or not _goes_on(block) else fmt.toBlockFormat().topMargin()
        for level in range(int(fmt.property(_LEVEL) or 0)):
            x = document.rootFrame().frameFormat().leftMargin() + level * step_px
            if block.textDirection() == Qt.LayoutDirection.RightToLeft and not is_framed:
                x = document.size().width() - (level + _BAR_SHARE) * step_px
            yield QRectF(x, box.top() - gap, step_px * _BAR_SHARE, box.height() + gap)
        block = document.findBlock(frame.lastPosition()).next() if is_framed else block.next()


def _goes_on(block: QTextBlock) -> bool:
    before = block.previous()
    return before.isValid() and bool(before.blockFormat().property(_LEVEL))
