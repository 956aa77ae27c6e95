"""Signals the first paint of a window."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QTimer, Signal


class FirstPaint(QObject):
    """Event filter that signals the first paint of a window.

    Signals:
        painted: The window is visible.
    """

    painted = Signal()

    def __init__(self, window: QObject) -> None:
        super().__init__()
        self._window = window
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Paint:
            self._window.removeEventFilter(self)
            # The paint itself happens after the filter: tell when it is over.
            QTimer.singleShot(0, self.painted.emit)
        return False
