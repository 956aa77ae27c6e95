"""Read-only rich-text view of full height that never loads resources."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence

from PySide6.QtCore import (
    QCoreApplication,
    QEvent,
    QMimeData,
    QObject,
    QPoint,
    QPointF,
    QRectF,
    Qt,
    QUrl,
    Signal,
)
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QDesktopServices,
    QFont,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QTextBlock,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextLine,
    QTextOption,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QMessageBox, QSizePolicy, QTextBrowser, QWidget

from app.chat.messages.code_headers import CodeHeaders
from app.i18n.numbers import Number
from app.markdown.model import CITATION, UNKNOWN_CITATION
from app.markdown.selection import Copied, Selection
from app.theme.appearance import Appearance
from app.widgets.qt_text import (
    passed_on,
    showable,
)

OPENABLE_SCHEMES = ("http", "https")
# A text layout takes a line as a whole, and a view all lines before it is shown.
_MOST_CHARS, _MOST_LINES = 20_000, 1_000
_LONG_LINE = re.compile(r"[^\n]{2000}(?=[^\n])")


_LEVEL = QTextFormat.Property.BlockQuoteLevel
_BAR_SHARE = 0.18  # of a level's indent


def quote_bars(document: QTextDocument, area: QRectF, step_px: float) -> Iterator[QRectF]:
    """Return the rectangles of quotation bars in a part of a document.

    Args:
        document: Document after layout.
        area: The part to draw.
        step_px: Indentation of a quotation level.
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


class InertDocument(QTextDocument):
    """A document that loads no picture, style sheet or other document, from anywhere."""

    def loadResource(self, kind: int, name: QUrl | str) -> object:
        """Return nothing: no resource of an answer is loaded."""
        return None


class TextView(QTextBrowser):
    """Shows a document at its full height; asks before opening a link.

    Args:
        document: The shown document.
        name: Accessible name.

    Attributes:
        framed: Document positions between which the text is framed: start and end of each part.

    Signals:
        hovered: The mouse is on the character after a document position; −1 for none.
        pressed: That character was clicked with Ctrl, or Enter pressed with the cursor before it.
        menu_requested: A context menu is requested (document position, screen position).
        citation_pressed: The user opens a citation (the number of its passage).
    """

    hovered = Signal(int)
    pressed = Signal(int)
    menu_requested = Signal(int, QPoint)
    citation_pressed = Signal(int)

    def __init__(self, document: QTextDocument, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.framed: tuple[tuple[int, int], ...] = ()
        self._frame_colour = QColor()
        self._bar_colour, self._bar_step_px = QColor(), 0.0
        self._headers: CodeHeaders | None = None
        self._copies: Callable[[Selection], Copied] = self._selected_plainly
        document.setParent(self)
        document.setDocumentMargin(0)
        self.setDocument(document)
        self.setAccessibleName(name)
        self.setOpenLinks(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextBrowserInteraction
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.viewport().setMouseTracking(True)
        document.documentLayout().documentSizeChanged.connect(self._fit)
        self.anchorClicked.connect(self._ask_to_open)
        self._fit()

    def head_code(self, appearance: Appearance) -> None:
        """Put a header with a Copy button above each block of code."""
        self._headers = CodeHeaders(self.document(), self.viewport(), appearance)
        self._headers.refresh()

    def bar_quotes(self, colour: QColor, step_px: float) -> None:
        """Draw bars beside quotations, at an indentation per level."""
        self._bar_colour, self._bar_step_px = colour, step_px

    def copy_by(self, copies: Callable[[Selection], Copied]) -> None:
        """Set the function that converts a selection for the clipboard."""
        self._copies = copies

    @property
    def selected(self) -> str:
        """The selected text, without formatting."""
        return self._copied().text

    def _copied(self) -> Copied:
        """Return the selection, or the selected cells of a table, for the clipboard."""
        cursor = self.textCursor()
        if not cursor.hasComplexSelection():
            return self._copies(Selection(cursor.selectionStart(), cursor.selectionEnd()))
        # Cells of a table.
        cells = cursor.selectedTableCells()
        assert isinstance(cells, tuple)  # whatever PySide's stubs say
        row, num_rows, column, num_columns = cells
        table = cursor.currentTable()
        last = table.cellAt(row + num_rows - 1, column + num_columns - 1)
        first = table.cellAt(row, column).firstPosition()
        columns = range(column, column + num_columns)
        return self._copies(Selection(first, last.lastPosition() + 1, columns))

    def createMimeDataFromSelection(self) -> QMimeData:
        copied = self._copied()
        data = QMimeData()
        data.setText(passed_on(copied.text))
        if copied.html:
            data.setHtml(copied.html)
        return data

    def _selected_plainly(self, selection: Selection) -> Copied:
        cursor = QTextCursor(self.document())
        cursor.setPosition(selection.start)
        cursor.setPosition(selection.end, QTextCursor.MoveMode.KeepAnchor)
        return Copied(cursor.selectedText().replace("\u2029", "\n").replace("\u2028", "\n"))

    def set_font(self, font: QFont) -> None:
        """Set the default font of the document."""
        if self.document().defaultFont() != font:
            self.document().setDefaultFont(font)

    def frame(self, parts: Sequence[tuple[int, int]], colour: QColor) -> None:
        """Replace the framed parts of the text."""
        self.framed, self._frame_colour = tuple(parts), colour
        self.viewport().update()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._bar_step_px:
            self._paint_bars(QRectF(event.rect()))
        if not self.framed:
            return
        painter = QPainter(self.viewport())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(self._frame_colour, 2))
        for start, end in self.framed:
            for place in self._text_rects(start, end):
                painter.drawRoundedRect(place.adjusted(-1, 0, 1, 0), 3, 3)
        painter.end()

    def _paint_bars(self, area: QRectF) -> None:
        painter = QPainter(self.viewport())
        for bar in quote_bars(self.document(), area, self._bar_step_px):
            painter.fillRect(bar, self._bar_colour)
        painter.end()

    def _text_rects(self, start: int, end: int) -> Iterator[QRectF]:
        """Yield the rectangles of the characters from `start` to `end`, line by line."""
        block = self.document().findBlock(start)
        while block.isValid() and block.position() < end:
            corner = self.document().documentLayout().blockBoundingRect(block).topLeft()
            for number in range(block.layout().lineCount()):
                line = block.layout().lineAt(number)
                first = max(start - block.position(), line.textStart())
                last = min(end - block.position(), line.textStart() + line.textLength())
                for left, right in _x_ranges(line, range(first, last)):
                    top = corner + QPointF(left, line.y())
                    yield QRectF(top.x(), top.y(), right - left, line.height())
            block = block.next()

    def loadResource(self, kind: int, name: QUrl | str) -> object:
        """Return nothing: images in answers, remote or local, aren't loaded."""
        return None

    def changeEvent(self, event: QEvent) -> None:
        # Who fills the document sets its fonts. Qt would lay out every answer again, twice, each
        # time the style sheet changes.
        if event.type() != QEvent.Type.FontChange:
            super().changeEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        # The conversation scrolls, not the message.
        event.ignore()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        self.hovered.emit(-1 if event.buttons() else self.position_at(event.position()))

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.hovered.emit(-1)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        # A plain click is for the cursor, and for words that are selected.
        is_click = (
            event.button() == Qt.MouseButton.LeftButton
            and event.modifiers() == Qt.KeyboardModifier.ControlModifier
        )
        if is_click and not self.textCursor().hasSelection():
            self.pressed.emit(self.position_at(event.position()))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if is_enter and not self.textCursor().charFormat().isAnchor():
            self.pressed.emit(self.textCursor().position())
            return
        super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        by_key = event.reason() == QContextMenuEvent.Reason.Keyboard
        at = self.textCursor().position() if by_key else self.position_at(QPointF(event.pos()))
        self.menu_requested.emit(at, event.globalPos())

    def position_at(self, point: QPointF) -> int:
        """Document position before the character at a point of the view; −1 if there is none."""
        layout = self.document().documentLayout()
        near = layout.hitTest(point, Qt.HitTestAccuracy.ExactHit)
        if near < 0:
            return -1
        block = self.document().findBlock(near)
        line = block.layout().lineForTextPosition(near - block.position())
        if not line.isValid():
            return -1
        x = point.x() - layout.blockBoundingRect(block).left()
        found = line.xToCursor(x, QTextLine.CursorPosition.CursorOnCharacter)
        return block.position() + int(found)

    def _fit(self) -> None:
        height = math.ceil(self.document().size().height())
        if height != self.height():
            self.setFixedHeight(max(1, height))
        if self._headers is not None:
            self._headers.refresh()

    def _ask_to_open(self, url: QUrl) -> None:
        if f"{url.scheme()}:" in (CITATION, UNKNOWN_CITATION):
            self.citation_pressed.emit(int(url.path()))
        if url.scheme().lower() not in OPENABLE_SCHEMES:
            return
        box = link_question(self, url)
        box.finished.connect(lambda _result: _open_if_agreed(box, url))
        box.open()


def _x_ranges(line: QTextLine, positions: range) -> list[tuple[float, float]]:
    """Horizontal extents of a line's characters; bidirectional text yields several."""
    edges = (QTextLine.Edge.Leading, QTextLine.Edge.Trailing)
    found: list[tuple[float, float]] = []
    for left, right in sorted(
        tuple(sorted(_x_of(line, position, edge) for edge in edges)) for position in positions
    ):
        if found and left <= found[-1][1] + 0.5:
            left, right = found[-1][0], max(right, found.pop()[1])
        found.append((left, right))
    return found


def _x_of(line: QTextLine, position: int, edge: QTextLine.Edge) -> float:
    """Return the x coordinate of an edge of a character."""
    found = line.cursorToX(position, edge)
    assert isinstance(found, tuple)  # the position comes back, too
    return float(found[0])


def link_question(parent: QWidget, url: QUrl) -> QMessageBox:
    """Return a confirmation dialog that shows a link's actual target."""
    box = QMessageBox(parent)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setWindowTitle(QCoreApplication.translate("Chat", "Open this link?"))
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setText(QCoreApplication.translate("Chat", "Open this address in your browser?"))
    box.setInformativeText(url.toString(QUrl.ComponentFormattingOption.FullyEncoded))
    box.setStandardButtons(QMessageBox.StandardButton.Open | QMessageBox.StandardButton.Cancel)
    box.setDefaultButton(QMessageBox.StandardButton.Cancel)
    return box


def _open_if_agreed(box: QMessageBox, url: QUrl) -> None:
    if box.result() == QMessageBox.StandardButton.Open:
        QDesktopServices.openUrl(url)


def plain_document(text: str, parent: QObject | None = None) -> QTextDocument:
    """Return a document of plain text, without markup.

    A very long text is truncated, with a note about the omitted length.
    """
    document = InertDocument(parent)
    document.setPlainText(cut_for_view(showable(text)))
    return document


def cut_for_view(text: str) -> str:
    """Truncate a long text, with a note about the omitted length."""
    shown = "\n".join(text[:_MOST_CHARS].split("\n")[:_MOST_LINES])
    num_more = len(text) - len(shown)
    cut = _LONG_LINE.sub("\\g<0>\n", shown)
    return (
        QCoreApplication.translate("Chat", "{0}\n… and {1:,} more characters").format(
            cut, Number(num_more)
        )
        if num_more
        else cut
    )
