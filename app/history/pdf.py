"""Conversations as a PDF, laid out by Qt."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QIODevice, QMarginsF, QSaveFile
from PySide6.QtGui import QPageLayout, QPageSize, QPdfWriter

from app.chat.text_view import InertDocument
from medusa_core.api import FileKind, History, export
from medusa_core.errors import ConversationFileError

_DOTS_PER_INCH = 300
_MARGIN_MM = 18.0


def export_pdf(history: History, path: Path, conversation_ids: Sequence[str] | None) -> int:
    """Write conversations as they were shown last; returns how many.

    Raises:
        ConversationFileError: The file can't be written.
        StorageError: The history can't be read.
    """
    with tempfile.TemporaryDirectory(prefix="medusa-pdf-") as folder:
        page = Path(folder) / "page.html"
        count = export(history, page, FileKind.HTML, conversation_ids)
        file = QSaveFile(str(path))
        if not file.open(QIODevice.OpenModeFlag.WriteOnly):
            raise _not_written(path, file)
        writer = QPdfWriter(file)
        writer.setResolution(_DOTS_PER_INCH)
        writer.setPageSize(QPageSize(QPageSize.PageSizeId.A4))
        sides = QMarginsF(_MARGIN_MM, _MARGIN_MM, _MARGIN_MM, _MARGIN_MM)
        writer.setPageMargins(sides, QPageLayout.Unit.Millimeter)
        document = InertDocument()
        document.setHtml(page.read_text(encoding="utf-8"))
        document.print_(writer)
        del writer
        if not file.commit():
            raise _not_written(path, file)
    return count


def _not_written(path: Path, file: QSaveFile) -> ConversationFileError:
    return ConversationFileError(
        QCoreApplication.translate("History", "{0} can't be written: {1}.").format(
            path, file.errorString()
        ),
        QCoreApplication.translate("History", "Choose another folder, or make space."),
    )
