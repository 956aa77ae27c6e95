"""A notification, and the interface of services that show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from PySide6.QtCore import SignalInstance


@dataclass(frozen=True, slots=True)
class DesktopNotification:
    """A notification of the desktop.

    Attributes:
        title: The event in a few words.
        name: Name of its subject, such as a conversation's title; empty if others mustn't see it.
    """

    title: str
    name: str = ""


class NoticeService(Protocol):
    """Service that shows notifications of the desktop.

    Signals:
        clicked: The user clicks a notification.
        failed: A notification couldn't be shown.
    """

    @property
    def clicked(self) -> SignalInstance: ...
    @property
    def failed(self) -> SignalInstance: ...
    def show(self, notification: DesktopNotification) -> None:
        """Show a notification; returns at once."""

    def close(self) -> None:
        """Stop the service."""
