"""The answers under way, in whichever conversations they are."""

from __future__ import annotations

from typing import NamedTuple

from app.engine.bridge import Request
from medusa_core.chats.conversation import (
    Answer,
    Conversation,
    Turn,
)


class _Pending(NamedTuple):
    """An answer under way."""

    conversation: Conversation
    turn: Turn
    request: Request


class Running:
    """Knows which turns of which conversations wait for their answers."""

    def __init__(self) -> None:
        self._pending: list[_Pending] = []

    def __len__(self) -> int:
        return len(self._pending)

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The answers under way."""
        return tuple(one.turn.answer for one in self._pending)

    @property
    def session_ids(self) -> frozenset[str]:
        """The conversations that have an answer under way."""
        return frozenset(one.conversation.session_id for one in self._pending)

    def begin(self, conversation: Conversation, turn: Turn, request: Request) -> None:
        """A turn waits for its answer."""
        self._pending.append(_Pending(conversation, turn, request))

    def end(self, turn: Turn) -> None:
        """An answer is complete, or will never be."""
        self._pending = [one for one in self._pending if one.turn is not turn]

    def stop(self, conversation: Conversation) -> None:
        """End the answer of a conversation; what there is of it stays."""
        for one in self._pending:
            if one.conversation is conversation:
                one.request.cancel()

    def forget(self, session_id: str) -> None:
        """Nobody waits for the answers of a conversation any more."""
        for one in [one for one in self._pending if one.conversation.session_id == session_id]:
            one.request.drop()
            self._pending.remove(one)

    def is_waiting(self, conversation: Conversation) -> bool:
        """Whether a turn of a conversation waits for its answer."""
        return any(one.conversation is conversation for one in self._pending)

    def known(self, conversation: Conversation) -> Conversation:
        """The conversation of that name which has an answer under way; else the given one."""
        pending = (one.conversation for one in self._pending)
        return next((c for c in pending if c.session_id == conversation.session_id), conversation)
