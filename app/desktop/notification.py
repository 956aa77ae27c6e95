"""A notification, and what shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from PySide6.QtCore import SignalInstance


@dataclass(frozen=True, slots=True)
class DesktopNotification:
    """A notification of the desktop.

    Attributes:
        title: What has happened, in a few words.
        name: What it is about, such as a conversation's title; empty where others mustn't see it.
    """

    title: str
    name: str = ""


class NoticeService(Protocol):
    """Shows notifications beside all windows.

    Signals:
        clicked: The user wants to see what one is about.
        failed: One couldn't be shown.
    """

    @property
    def clicked(self) -> SignalInstance: ...
    @property
    def failed(self) -> SignalInstance: ...
    def show(self, notification: DesktopNotification) -> None:
        """Show one; returns at once."""

    def close(self) -> None:
        """Show and receive nothing from now on."""
