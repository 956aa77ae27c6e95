"""One conversation as the engine sees it: turns of a prompt and its answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import uuid4

from medusa_core.messages import ChatMessage, GenerateSettings, GenerationDone, Role

NewId = Callable[[], str]


def new_id() -> str:
    """A name for a session or a request that no other one has."""
    return uuid4().hex


@dataclass(slots=True)
class Turn:
    """A prompt and its answer so far.

    Attributes:
        prompt: What the user wrote.
        request_id: Names the request that answers it; a regenerated answer has another one.
        settings: What it is decoded with.
        answer: Text of the answer, once it is complete or was cut short.
        done: How the answer ended; None while it is written or when it failed.
    """

    prompt: str
    request_id: str
    settings: GenerateSettings
    answer: str = ""
    done: GenerationDone | None = None


class Conversation:
    """The turns of one session.

    Attributes:
        session_id: Names the session for the engine.
        turns: Oldest first.
    """

    def __init__(self, make_id: NewId = new_id) -> None:
        self._make_id = make_id
        self.session_id = make_id()
        self.turns: list[Turn] = []

    def ask(self, prompt: str, settings: GenerateSettings) -> Turn:
        """Add a turn that waits for its answer."""
        turn = Turn(prompt, self._make_id(), settings)
        self.turns.append(turn)
        return turn

    def ask_again(self, settings: GenerateSettings) -> Turn:
        """Forget the last answer and wait for another one to the same prompt."""
        return self.ask(self.turns.pop().prompt, settings)

    def take_back(self) -> Turn:
        """Remove the last turn, as if it had never been asked."""
        return self.turns.pop()

    def messages(self) -> tuple[ChatMessage, ...]:
        """What the model is to read: all turns, the last prompt at the end.

        A turn that was stopped before its first word is left out: templates want the roles to
        take turns.
        """
        *earlier, last = self.turns
        read: list[ChatMessage] = []
        for turn in earlier:
            if turn.answer:
                read.append(ChatMessage(Role.USER, turn.prompt))
                token_ids = () if turn.done is None else turn.done.token_ids
                read.append(ChatMessage(Role.ASSISTANT, turn.answer, token_ids))
        return (*read, ChatMessage(Role.USER, last.prompt))
