"""Reads attached files in a background thread, one at a time."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from medusa_core.api import read_attachment
from medusa_core.errors import MedusaError


class FileReader(QObject):
    """Converts files to attachments; a file may take some seconds.

    Signals:
        read: A file was read: its conversation and its text (an `Attachment`).
        failed: A file can't be attached (message, hint).
        finished: All requested files of a conversation have been read.
    """

    read = Signal(str, object)
    failed = Signal(object, object)
    finished = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._running: list[str] = []  # the conversations that files are read for
        self._is_stopped = False
        self._ended.connect(self._end)

    _ended = Signal(str)

    def is_reading(self, session_id: str) -> bool:
        """Whether files of a conversation are being read."""
        return session_id in self._running

    def start(self, session_id: str, paths: Sequence[Path]) -> None:
        """Start to read files for a conversation."""
        self._running.append(session_id)
        work = (session_id, tuple(paths))
        threading.Thread(target=self._work, args=work, name="attachments").start()

    def stop(self) -> None:
        """Stop after the current file, for the program's exit."""
        self._is_stopped = True

    def _work(self, session_id: str, paths: tuple[Path, ...]) -> None:
        for path in paths:
            if self._is_stopped:
                break
            try:
                self.read.emit(session_id, read_attachment(path))
            except MedusaError as error:
                self.failed.emit(error.message, error.hint)
        self._ended.emit(session_id)

    def _end(self, session_id: str) -> None:
        self._running.remove(session_id)
        if session_id not in self._running:
            self.finished.emit()
