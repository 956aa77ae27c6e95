"""The answers under way, in whichever conversations they are."""

from __future__ import annotations

from medusa_core.chats.conversation import (
    Conversation,
    Turn,
)


class Running:
    """Knows by its request which turn of which conversation an answer belongs to."""

    def __init__(self) -> None:
        self._turns: dict[str, tuple[Conversation, Turn]] = {}

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._turns

    def __len__(self) -> int:
        return len(self._turns)

    def __getitem__(self, request_id: str) -> tuple[Conversation, Turn]:
        return self._turns[request_id]

    @property
    def session_ids(self) -> frozenset[str]:
        """The conversations that have an answer under way."""
        return frozenset(conversation.session_id for conversation, _ in self._turns.values())

    def begin(self, conversation: Conversation, turn: Turn) -> None:
        """A turn waits for its answer."""
        self._turns[turn.answer.id] = (conversation, turn)

    def end(self, request_id: str) -> tuple[Conversation, Turn]:
        """An answer is complete, or will never be."""
        conversation, turn = self._turns.pop(request_id)
        turn.answer.is_running = False
        return conversation, turn

    def forget(self, session_id: str) -> None:
        """Nobody waits for the answers of a conversation any more."""
        for request_id, (conversation, _) in list(self._turns.items()):
            if conversation.session_id == session_id:
                del self._turns[request_id]

    def turn_of(self, conversation: Conversation) -> Turn | None:
        """The turn of a conversation that waits for its answer."""
        turns = (turn for one, turn in self._turns.values() if one is conversation)
        return next(turns, None)

    def known(self, conversation: Conversation) -> Conversation:
        """The conversation of that name which has an answer under way; else the given one."""
        same = (c for c, _ in self._turns.values() if c.session_id == conversation.session_id)
        return next(same, conversation)
