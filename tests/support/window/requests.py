"""Requests that no engine answers."""

from __future__ import annotations

from app.state.chat import ChatState
from medusa_core.chats.conversation import Turn
from medusa_core.messages import GenerateSettings


class FakeRequest:
    """Notes what becomes of it."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def cancel(self) -> None:
        self.calls.append("cancel")

    def drop(self) -> None:
        self.calls.append("drop")


def begin(state: ChatState) -> tuple[Turn, FakeRequest]:
    """Begin an answer of the shown conversation."""
    turn, request = state.conversation.ask("Hello", GenerateSettings()), FakeRequest()
    state.begin(turn, request)  # type: ignore[arg-type]
    return turn, request
