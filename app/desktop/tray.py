"""Notifications of Windows and macOS, by a temporary tray icon."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QSystemTrayIcon

from app.desktop.notification import DesktopNotification

_SHOWN_MS = 10_000


class TrayNotices(QObject):
    """Shows notifications by a tray icon.

    Signals:
        clicked: As in `NoticeService`.
        failed: As in `NoticeService`: this desktop has no tray.
    """

    clicked = Signal()
    failed = Signal()

    def __init__(self, icon: QIcon, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.icon = QSystemTrayIcon(icon, self)
        self.icon.messageClicked.connect(self.clicked)
        self.icon.activated.connect(lambda _reason: self.clicked.emit())
        self._end = QTimer(self)
        self._end.setSingleShot(True)
        self._end.timeout.connect(self.icon.hide)

    def show(self, notification: DesktopNotification) -> None:
        if not (QSystemTrayIcon.isSystemTrayAvailable() and QSystemTrayIcon.supportsMessages()):
            self.failed.emit()
            return
        self.icon.show()  # messages come from an icon that is seen
        self.icon.showMessage(notification.title, notification.name, self.icon.icon(), _SHOWN_MS)
        self._end.start(2 * _SHOWN_MS)

    def close(self) -> None:
        self._end.stop()
        self.icon.hide()
