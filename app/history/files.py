"""Export and import of conversations."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QObject, Signal
from PySide6.QtWidgets import QMenu, QWidget

from app.i18n.engine_texts import engine_text
from app.i18n.words import QT_TRANSLATE_NOOP
from app.state.tasks import Tasks
from app.widgets.file_dialogs import choose_files, choose_save_path
from medusa_core.api import ConversationFile, Exported, FileKind, History, export_gently
from medusa_core.errors import MedusaError

log = logging.getLogger(__name__)

_KINDS = {
    QT_TRANSLATE_NOOP("History", "Markdown (*.md)"): FileKind.MARKDOWN,
    QT_TRANSLATE_NOOP("History", "Web page (*.html)"): FileKind.HTML,
    QT_TRANSLATE_NOOP("History", "Everything, to be imported again (*.json)"): FileKind.JSON,
}
_BY_ENDING = {
    ".md": FileKind.MARKDOWN,
    ".markdown": FileKind.MARKDOWN,
    ".html": FileKind.HTML,
    ".htm": FileKind.HTML,
    ".json": FileKind.JSON,
    ".pdf": None,
}
_MOST_REASONS = 3
_IMPORTED = QT_TRANSLATE_NOOP("History", "Conversations (*.json *.zip);;All files (*)")


class ConversationFiles(QObject):
    """Exports and imports conversations, with file dialogs.

    Signals:
        imported: Conversations were imported.
        notice: Result, for people.
        failed: Message and hint of an error.
    """

    imported = Signal()
    notice = Signal(str)
    failed = Signal(object, object)

    def __init__(self, window: QWidget, history: History) -> None:
        super().__init__(window)
        self._window, self._history = window, history
        self.tasks = Tasks(self)

    def menu(self) -> QMenu:
        """Return the menu of import and export."""
        menu = QMenu(self._window)
        menu.addAction(self.tr("Import…"), self.ask_to_import)
        menu.addAction(self.tr("Export all…"), lambda: self.ask_to_export(None, "conversations"))
        return menu

    def ask_to_export(self, conversation_ids: Sequence[str] | None, name: str) -> None:
        """Ask for a file, and export conversations to it; None for all."""
        kinds = {
            QCoreApplication.translate("History", words): kind for words, kind in _KINDS.items()
        }
        proposed = f"{_file_name(name)}.md"
        text, kind = choose_save_path(
            self._window,
            self.tr("Export"),
            proposed,
            ";;".join((*kinds, "PDF (*.pdf)")),
        )
        if text:
            chosen = kinds.get(kind)
            if text.name == proposed and chosen is not FileKind.MARKDOWN:
                text = text.with_suffix("")  # nobody typed this ending: the filter was chosen
            self.tasks.start(self.export(text, chosen, conversation_ids))

    async def export(
        self, path: Path, kind: FileKind | None, conversation_ids: Sequence[str] | None
    ) -> None:
        """Export conversations to a file, and report the result.

        Args:
            path: The file; its extension selects the format, and is added if missing.
            kind: Format if the extension doesn't select one; None for PDF.
            conversation_ids: Conversations to export; None for all outside the trash.
        """
        kind = _BY_ENDING.get(path.suffix.lower(), kind)
        if not path.suffix:
            path = _free(path.with_suffix(".pdf" if kind is None else f".{kind.value}"))
        try:
            written = await self._write(path, kind, conversation_ids)
        except MedusaError as error:
            self.failed.emit(error.message, error.hint)
        except Exception:
            log.exception("conversations can't be exported")
            self.failed.emit(self.tr("{0} can't be written.").format(path.name), self._log_hint())
        else:
            self.notice.emit(self._describe(written, path.name))

    async def _write(
        self, path: Path, kind: FileKind | None, conversation_ids: Sequence[str] | None
    ) -> Exported:
        if kind is not None:
            return await export_gently(self._history, path, kind, conversation_ids)
        from app.history.pdf import export_pdf

        return export_pdf(self._history, path, conversation_ids)

    def _describe(self, written: Exported, name: str) -> str:
        count, num_damaged = written
        text = (
            self.tr("1 conversation written to {0}.").format(name)
            if count == 1
            else self.tr("{0} conversations written to {1}.").format(count, name)
        )
        if num_damaged:
            damaged = self.tr("Damaged steps are left out (answers: {0}); all texts are there.")
            text = f"{text} {damaged.format(num_damaged)}"
        return text

    def _log_hint(self) -> str:
        return self.tr("The log says why: please report it.")

    def ask_to_import(self) -> None:
        """Ask for files, and import their conversations."""
        files = QCoreApplication.translate("History", _IMPORTED)
        if text := choose_files(self._window, self.tr("Import"), files):
            self.tasks.start(self.import_all(text))

    async def import_all(self, paths: Sequence[Path]) -> None:
        """Import the conversations of files, and report how many, or the errors."""
        num_new = num_known = num_refused = 0
        reasons: list[str] = []
        for path in paths:
            self.notice.emit(self.tr("Reading {0}…").format(path.name))
            try:
                file = await asyncio.to_thread(ConversationFile, path)
                with file:
                    taken = await self._history.import_in_thread(file)
            except MedusaError as error:
                self.failed.emit(error.message, error.hint)
                continue
            except Exception:
                log.exception("conversations can't be imported")
                self.failed.emit(self.tr("{0} can't be read.").format(path.name), self._log_hint())
                continue
            num_new, num_known = num_new + taken.num_new, num_known + taken.num_known
            num_refused += file.num_refused
            reasons += file.reasons
        self.imported.emit()
        known = self.tr(", {0} were here already").format(num_known) if num_known else ""
        summary = (
            self.tr("{0} imported{1}, {2} not.").format(num_new, known, num_refused)
            if num_refused
            else self.tr("{0} imported{1}.").format(num_new, known)
        )
        self.notice.emit(summary)
        if num_refused:
            more = ["…"] if num_refused > _MOST_REASONS else []
            self.failed.emit(
                summary, "\n".join([*map(engine_text, reasons[:_MOST_REASONS]), *more])
            )


def _file_name(title: str) -> str:
    """Return a title as a file name that is valid on every system."""
    kept = "".join(char if char.isalnum() or char in " -_" else " " for char in title)
    return " ".join(kept.split())[:60] or "conversation"


def _free(path: Path) -> Path:
    """Return an unused path, as the dialog has checked only the name without extension."""
    free, number = path, 2
    while free.exists():
        free, number = path.with_stem(f"{path.stem} {number}"), number + 1
    return free
