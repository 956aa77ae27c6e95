"""Tells the user something while they look elsewhere, by what the desktop has for that."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QGuiApplication, QIcon
from PySide6.QtWidgets import QApplication, QWidget

from app.desktop.notification import DesktopNotification, NoticeService
from app.desktop.screenless import SCREENLESS

_WITH_TRAY = ("windows", "cocoa")


class Notifier(QObject):
    """Shows notifications; where that can't be done the window asks for attention.

    Attributes:
        service: What shows them; None until the first one, and where nobody sees a desktop.

    Signals:
        clicked: The user wants to see the window.
    """

    clicked = Signal()

    def __init__(self, window: QWidget, icon: Path) -> None:
        super().__init__(window)
        self._window, self._icon = window, icon
        self.service: NoticeService | None = None

    @property
    def is_needed(self) -> bool:
        """Whether the user looks at something else."""
        return QGuiApplication.applicationState() is not Qt.ApplicationState.ApplicationActive

    def notify(self, notification: DesktopNotification) -> None:
        """Show one, unless the user looks at the window."""
        if not self.is_needed:
            return
        if self.service is None and QGuiApplication.platformName() not in SCREENLESS:
            self.use(self._make_service())
        if self.service is None:
            self.ask_for_attention()
        else:
            self.service.show(notification)

    def use(self, service: NoticeService) -> None:
        """Let this show them."""
        self.service = service
        service.clicked.connect(self.clicked)
        service.failed.connect(self.ask_for_attention)

    def ask_for_attention(self) -> None:
        """Mark the window among the others until the user looks at it."""
        QApplication.alert(self._window)

    def close(self) -> None:
        """Tell nothing from now on."""
        if self.service is not None:
            self.service.close()

    def _make_service(self) -> NoticeService:
        if QGuiApplication.platformName() in _WITH_TRAY:
            from app.desktop.tray import TrayNotices

            return TrayNotices(QIcon(str(self._icon)), self)
        from app.desktop.session_bus import BusNotices

        return BusNotices(self._icon, self)
