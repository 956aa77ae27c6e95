"""Export of conversations as PDF, laid out by Qt."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QBuffer, QIODevice, QMarginsF, QRectF, QSizeF, Qt
from PySide6.QtGui import (
    QAbstractTextDocumentLayout,
    QColor,
    QFont,
    QPageLayout,
    QPageSize,
    QPainter,
    QPalette,
    QPdfWriter,
    QTextDocument,
)

from app.chat.messages.text_view import InertDocument
from app.theme.fonts import CODE_FAMILY, TEXT_FAMILY
from medusa_core.api import APP_NAME, Exported, History, export_page, write_whole

_DOTS_PER_INCH = 300
_MARGINS_MM = (20.0, 15.0, 20.0, 12.0)  # left, top, right, bottom
_POINTS = 10.0
_FOOTER_LINES = 2.0  # between the text and the page's number, with the number
# Qt's subset of CSS: it knows no rem, and takes `auto` for a margin of its own. It scales px to the
# printer's resolution, but not margins of quotations and tables, which are in dots.
_STYLE = f"""
h1 {{ font-size: 16pt; font-weight: 600; margin: 0px 0px 10px 0px; }}
h2 {{ font-size: 10pt; font-weight: 600; margin: 18px 0px 3px 0px; }}
small {{ font-size: 8.5pt; font-weight: 400; color: #666666; }}
section h1, section h2, section h3, section h4, section h5, section h6 {{
  font-size: 11.5pt; font-weight: 600; margin: 10px 0px 3px 0px; }}
strong, th {{ font-weight: 600; }}
p {{ margin: 0px 0px 6px 0px; }}
ul, ol {{ margin: 0px 0px 6px 0px; }}
.plain {{ white-space: pre-wrap; }}
pre, code {{ font-family: "{CODE_FAMILY}", monospace; font-size: 9pt; background: #eeeeee; }}
pre {{ white-space: pre-wrap; margin: 4px 0px 8px 0px; }}
blockquote {{ margin: 12px 0px 18px 56px; color: #444444; }}
table {{ border-collapse: collapse; margin: 12px 0px 24px 0px; }}
th, td {{ border: 1px solid #888888; padding: 3px 8px; }}
a {{ color: #0b57d0; }}
"""


def export_pdf(history: History, path: Path, conversation_ids: Sequence[str] | None) -> Exported:
    """Write the selected branch of conversations as PDF; returns what was written.

    Raises:
        ConversationFileError: The file can't be written.
        StorageError: The history can't be read.
    """
    page = export_page(history, conversation_ids, _STYLE)
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QPdfWriter(buffer)
    writer.setTitle(page.title)
    writer.setCreator(APP_NAME)
    writer.setResolution(_DOTS_PER_INCH)
    writer.setPageSize(QPageSize(QPageSize.PageSizeId.A4))
    writer.setPageMargins(QMarginsF(*_MARGINS_MM), QPageLayout.Unit.Millimeter)
    document = InertDocument()
    font = QFont(TEXT_FAMILY)
    font.setPointSizeF(_POINTS)
    document.setDefaultFont(font)
    document.setHtml(page.html)
    _paint_pages(document, writer)
    del writer
    write_whole(path, [bytes(buffer.data().data())])
    return Exported(page.num_conversations)


def _paint_pages(document: QTextDocument, writer: QPdfWriter) -> None:
    """Paint the pages of a document with page numbers.

    `QTextDocument.print_` would add margins of 2 cm to those of the page.
    """
    painter = QPainter(writer)
    painter.setFont(document.defaultFont())
    footer = _FOOTER_LINES * painter.fontMetrics().height()
    width, height = writer.width(), writer.height() - footer
    layout = document.documentLayout()
    layout.setPaintDevice(writer)
    document.setDocumentMargin(0)
    document.setPageSize(QSizeF(width, height))
    context = QAbstractTextDocumentLayout.PaintContext()
    palette = QPalette()
    palette.setColor(QPalette.ColorRole.Text, QColor(Qt.GlobalColor.black))  # in a dark theme, too
    context.palette = palette
    for number in range(document.pageCount()):
        if number:
            writer.newPage()
        context.clip = QRectF(0, number * height, width, height)
        painter.save()
        painter.translate(0, -number * height)
        painter.setClipRect(context.clip)
        layout.draw(painter, context)
        painter.restore()
        place = QRectF(0, height, width, footer)
        side = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignBottom
        painter.drawText(place, int(side), str(number + 1))
    painter.end()
