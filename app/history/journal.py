"""Queue of writes to the history; failed writes are repeated."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Signal

from medusa_core.api import History
from medusa_core.errors import RequestError, StorageError

log = logging.getLogger(__name__)

Write = Callable[[History], object]

_RETRY_MS = 5_000
_CHECKPOINT_MS = 20_000


class Journal(QObject):
    """Queue of writes, mostly empty.

    On a full disk nothing is lost: writes wait until there is room again.

    Signals:
        failed: A write failed; message and hint.
        recovered: All pending writes were done.
    """

    failed = Signal(object, object)
    recovered = Signal()

    def __init__(self, history: History) -> None:
        super().__init__()
        self._history = history
        self._waiting: deque[Write] = deque()
        self._has_failed = False
        self._retry = QTimer(self)
        self._retry.setSingleShot(True)
        self._retry.setInterval(_RETRY_MS)
        self._retry.timeout.connect(self.flush)
        # Moves the log into the file while nothing is written: it must wait for the disk.
        self._idle = QTimer(self)
        self._idle.setSingleShot(True)
        self._idle.setInterval(_CHECKPOINT_MS)
        self._idle.timeout.connect(self._checkpoint)

    @property
    def is_waiting(self) -> bool:
        """Whether writes are pending."""
        return bool(self._waiting)

    def write(self, write: Write) -> None:
        """Do a write, after pending ones."""
        self._waiting.append(write)
        self.flush()

    def flush(self) -> None:
        """Do pending writes as far as possible."""
        while self._waiting:
            try:
                self._waiting[0](self._history)
            except StorageError as error:
                self._report(error)
                return
            except RequestError as error:
                # Its conversation was deleted meanwhile.
                log.info("nothing to write any more: %s", error.message)
            self._waiting.popleft()
        if self._has_failed:
            self._has_failed = False
            self.recovered.emit()
        self._idle.start()

    def checkpoint_later(self) -> None:
        """Schedule a checkpoint of the write-ahead log after writes by another process."""
        self._idle.start()

    def close(self) -> None:
        """Do pending writes as far as possible, and close the file."""
        self._retry.stop()
        self._idle.stop()
        self.flush()
        self._retry.stop()
        self._idle.stop()
        if self._waiting:
            log.error("%d writes to the history were lost at the end", len(self._waiting))
        self._checkpoint()
        self._history.close()

    def _checkpoint(self) -> None:
        try:
            self._history.checkpoint()
        except StorageError as error:
            log.warning("no checkpoint of the history: %s", error.message)

    def _report(self, error: StorageError) -> None:
        self._retry.start()
        if not self._has_failed:
            self._has_failed = True
            self.failed.emit(error.message, error.hint)
