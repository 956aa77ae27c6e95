"""Fixture of chats at a terminal."""

from tests.support.terminal.fixtures import start_chat

__all__ = ["start_chat"]
