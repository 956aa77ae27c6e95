"""Notifications of Linux desktops: `org.freedesktop.Notifications` on the session's bus.

Qt's own D-Bus can't be used for it from Python: it writes no unsigned number, which `Notify` wants.

Source: Desktop Notifications Specification 1.2 (freedesktop.org).
"""

from __future__ import annotations

import html
import logging
import os
import threading
from collections import deque
from pathlib import Path
from typing import Any

from PySide6.QtCore import QCoreApplication, QObject, QSocketNotifier, Signal

from app.desktop.notification import DesktopNotification

log = logging.getLogger(__name__)

_NAME = "org.freedesktop.Notifications"
_PATH = "/org/freedesktop/Notifications"
_PROGRAM, _DESKTOP_FILE = "Medusa Chat", "medusa-chat"
_PATIENCE_S = 2.0
_DEFAULT_TIMEOUT = -1  # the desktop knows how long
_DEFAULT_ACTION = "default"  # a click on the notification itself


class BusNotices(QObject):
    """Shows notifications by the desktop's service, and receives clicks on them.

    Requests block, so each is sent in a thread; replies are read when the socket
    has data.

    Signals:
        clicked: As in `NoticeService`.
        failed: As in `NoticeService`: no bus, no service, or an error of the service.
        sent: The service has accepted a notification.
    """

    clicked = Signal()
    failed = Signal()
    sent = Signal()

    def __init__(self, icon: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._icon = icon
        self._lock = threading.Lock()
        self._bus: _Bus | None = None
        self._reader: QSocketNotifier | None = None
        self.sent.connect(self._listen)
        self.failed.connect(self.close)

    def show(self, notification: DesktopNotification) -> None:
        label = QCoreApplication.translate("Notices", "Show")
        threading.Thread(
            target=self._send, args=(notification, label), name="notification", daemon=True
        ).start()

    def close(self) -> None:
        # A thread that asks may wait for seconds, the window mustn't; what it opens ends with it.
        if self._lock.acquire(blocking=False):
            try:
                self._drop()
            finally:
                self._lock.release()

    def _send(self, notification: DesktopNotification, label: str) -> None:
        """Send a notification; runs in a thread."""
        try:
            with self._lock:
                self._bus = self._bus or _Bus()
                self._bus.notify(notification, self._icon, label)
        except Exception as error:  # noqa: BLE001 - whatever a foreign service does costs no more
            log.info("no notification by the desktop: %r", error)
            self.failed.emit()
        else:
            self.sent.emit()

    def _listen(self) -> None:
        if self._bus is not None and self._reader is None:
            self._reader = QSocketNotifier(self._bus.fileno, QSocketNotifier.Type.Read, self)
            self._reader.activated.connect(self._read)
        self._read()

    def _read(self) -> None:
        # A thread that asks reads, too, and `sent` follows.
        if not self._lock.acquire(blocking=False):
            return
        try:
            is_clicked = self._bus is not None and self._bus.take_click()
        except (OSError, RuntimeError, ValueError, IndexError) as error:
            log.info("the session's bus is gone, or says what makes no sense: %r", error)
            is_clicked = False
            self._drop()
        finally:
            self._lock.release()
        if is_clicked:
            self.clicked.emit()

    def _drop(self) -> None:
        """Close the connection; the next notification connects again."""
        if self._reader is not None:
            self._reader.setEnabled(False)
            self._reader.deleteLater()
            self._reader = None
        if self._bus is not None:
            self._bus.close()
            self._bus = None


class _Bus:
    """Connection to the session's bus for notifications."""

    def __init__(self) -> None:
        """Connect; blocks.

        Raises:
            Exception: There is no bus, or no notification service on it.
        """
        from jeepney import DBusAddress
        from jeepney.io.blocking import open_dbus_connection

        self._address = DBusAddress(_PATH, bus_name=_NAME, interface=_NAME)
        self._connection = open_dbus_connection("SESSION", auth_timeout=_PATIENCE_S)
        self._received: deque[Any] = deque()
        self._numbers: set[int] = set()
        try:
            self._subscribe()
            (self._abilities,) = self._call("GetCapabilities")
        except Exception:
            self.close()
            raise

    @property
    def fileno(self) -> int:
        """File descriptor that becomes readable when a notification is clicked."""
        number: int = self._connection.sock.fileno()
        return number

    def notify(self, notification: DesktopNotification, icon: Path, label: str) -> None:
        """Show a notification; blocks.

        Args:
            notification: Its texts.
            icon: Icon of the program.
            label: Label of the click's action.

        Raises:
            Exception: The service refuses it, or doesn't reply.
        """
        body = (
            html.escape(notification.name)
            if "body-markup" in self._abilities
            else notification.name
        )
        actions = [_DEFAULT_ACTION, label] if "actions" in self._abilities else []
        hints = {"desktop-entry": ("s", _DESKTOP_FILE)}
        arguments = (
            _PROGRAM,
            0,
            str(icon),
            notification.title,
            body,
            actions,
            hints,
            _DEFAULT_TIMEOUT,
        )
        (number,) = self._call("Notify", "susssasa{sv}i", arguments)
        self._numbers.add(number)

    def take_click(self) -> bool:
        """Read pending bus messages; returns whether one of our notifications was clicked.

        Raises:
            OSError: The connection is lost.
        """
        from jeepney import HeaderFields

        try:
            while True:
                self._connection.recv_messages(timeout=0)
        except TimeoutError:
            pass  # that was all
        is_clicked = False
        while self._received:
            message = self._received.popleft()
            signal, (number, *rest) = message.header.fields[HeaderFields.member], message.body
            if number not in self._numbers:
                continue
            if signal == "ActivationToken":  # lets the window come up under Wayland, by Qt
                os.environ["XDG_ACTIVATION_TOKEN"] = str(rest[0])
            elif signal == "ActionInvoked":
                is_clicked = True
            elif signal == "NotificationClosed":
                self._numbers.discard(number)
        return is_clicked

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _subscribe(self) -> None:
        """Subscribe to the service's signals."""
        from jeepney import MatchRule, message_bus
        from jeepney.io.blocking import Proxy

        rule = MatchRule(type="signal", interface=_NAME, path=_PATH)
        self._connection.filter(rule, queue=self._received)
        Proxy(message_bus, self._connection, timeout=_PATIENCE_S).AddMatch(rule)

    def _call(self, method: str, signature: str | None = None, body: tuple[Any, ...] = ()) -> Any:
        from jeepney import DBusErrorResponse, MessageType, new_method_call

        message = new_method_call(self._address, method, signature, body)
        reply = self._connection.send_and_get_reply(message, timeout=_PATIENCE_S)
        if reply.header.message_type is MessageType.error:
            raise DBusErrorResponse(reply)
        return reply.body
