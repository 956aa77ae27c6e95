"""Conversations as a PDF, laid out by Qt."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QBuffer, QIODevice, QMarginsF
from PySide6.QtGui import QPageLayout, QPageSize, QPdfWriter

from app.chat.messages.text_view import InertDocument
from medusa_core.api import APP_NAME, Exported, History, export_page, write_whole

_DOTS_PER_INCH = 300
_MARGIN_MM = 18.0


def export_pdf(history: History, path: Path, conversation_ids: Sequence[str] | None) -> Exported:
    """Write conversations as they were shown last; returns what was written.

    Raises:
        ConversationFileError: The file can't be written.
        StorageError: The history can't be read.
    """
    page = export_page(history, conversation_ids)
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QPdfWriter(buffer)
    writer.setTitle(page.title)
    writer.setCreator(APP_NAME)
    writer.setResolution(_DOTS_PER_INCH)
    writer.setPageSize(QPageSize(QPageSize.PageSizeId.A4))
    sides = QMarginsF(_MARGIN_MM, _MARGIN_MM, _MARGIN_MM, _MARGIN_MM)
    writer.setPageMargins(sides, QPageLayout.Unit.Millimeter)
    document = InertDocument()
    document.setHtml(page.html)
    document.print_(writer)
    del writer
    write_whole(path, [bytes(buffer.data().data())])
    return Exported(page.num_conversations)
