"""Detects writes to the history by other processes."""

from __future__ import annotations

import logging

from PySide6.QtCore import QObject, QTimer, Signal

from medusa_core.api import History
from medusa_core.errors import StorageError

log = logging.getLogger(__name__)

_LOOK_MS = 1_000


class HistoryWatch(QObject):
    """Checks the database once a second, which takes about 10 µs.

    Signals:
        changed: Another process has written.
    """

    changed = Signal()

    def __init__(self, history: History, parent: QObject) -> None:
        super().__init__(parent)
        self._history = history
        self._timer = QTimer(self)
        self._timer.setInterval(_LOOK_MS)
        self._timer.timeout.connect(self.look)
        if history.is_saved:
            self._timer.start()

    def look(self) -> None:
        """Emit `changed` if another process has written since the last call."""
        try:
            has_changed = self._history.changed_elsewhere()
        except StorageError as error:
            log.warning("what others write can't be seen: %s", error.message)
            return
        if has_changed:
            self.changed.emit()

    def stop(self) -> None:
        """Stop, before the history is closed."""
        self._timer.stop()
