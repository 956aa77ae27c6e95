"""Notifies the user while another window is active."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QGuiApplication, QIcon
from PySide6.QtWidgets import QApplication, QWidget

from app.desktop.notification import DesktopNotification, NoticeService
from app.desktop.screenless import SCREENLESS

_WITH_TRAY = ("windows", "cocoa")


class Notifier(QObject):
    """Shows notifications; if that fails, the window requests attention.

    Attributes:
        service: Service of the desktop; None before the first notification, and without a screen.

    Signals:
        clicked: The user clicks a notification.
    """

    clicked = Signal()

    def __init__(self, window: QWidget, icon: Path) -> None:
        super().__init__(window)
        self._window, self._icon = window, icon
        self.service: NoticeService | None = None

    @property
    def is_needed(self) -> bool:
        """Whether another window is active."""
        return QGuiApplication.applicationState() is not Qt.ApplicationState.ApplicationActive

    def notify(self, notification: DesktopNotification) -> None:
        """Show a notification, unless the window is active."""
        if not self.is_needed:
            return
        if self.service is None and QGuiApplication.platformName() not in SCREENLESS:
            self.use(self._make_service())
        if self.service is None:
            self.ask_for_attention()
        else:
            self.service.show(notification)

    def use(self, service: NoticeService) -> None:
        """Set the service."""
        self.service = service
        service.clicked.connect(self.clicked)
        service.failed.connect(self.ask_for_attention)

    def ask_for_attention(self) -> None:
        """Highlight the window in the task bar until it is activated."""
        QApplication.alert(self._window)

    def close(self) -> None:
        """Stop the service."""
        if self.service is not None:
            self.service.close()

    def _make_service(self) -> NoticeService:
        if QGuiApplication.platformName() in _WITH_TRAY:
            from app.desktop.tray import TrayNotices

            return TrayNotices(QIcon(str(self._icon)), self)
        from app.desktop.session_bus import BusNotices

        return BusNotices(self._icon, self)
