"""Notices what other programs write into the history."""

from __future__ import annotations

import logging

from PySide6.QtCore import QObject, QTimer, Signal

from medusa_core.api import History
from medusa_core.errors import StorageError

log = logging.getLogger(__name__)

_LOOK_MS = 1_000


class HistoryWatch(QObject):
    """Looks once a second, which takes some 10 µs.

    Signals:
        changed: Somebody else has written.
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
        """Emit `changed` if another program has written to the history since the last call."""
        try:
            has_changed = self._history.changed_elsewhere()
        except StorageError as error:
            log.warning("what others write can't be seen: %s", error.message)
            return
        if has_changed:
            self.changed.emit()

    def stop(self) -> None:
        """The history is about to be closed."""
        self._timer.stop()
