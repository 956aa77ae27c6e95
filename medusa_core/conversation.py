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
        given: The answer that is gone on with; None for a new one.
        keep_tokens: How many of its tokens are kept; None for all.
        answer: Text of the answer, once it is complete or was cut short.
        done: How the answer ended; None while it is written or when it failed.
    """

    prompt: str
    request_id: str
    settings: GenerateSettings
    given: ChatMessage | None = None
    keep_tokens: int | None = None
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

    def reroll(self, token: int, settings: GenerateSettings) -> Turn:
        """Wait for another last answer that keeps the tokens before this one."""
        old = self.turns.pop()
        assert old.done is not None
        turn = self.ask(old.prompt, settings)
        turn.given = ChatMessage(Role.ASSISTANT, old.answer, old.done.token_ids)
        turn.keep_tokens = token
        return turn

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
        given = () if last.given is None else (last.given,)
        return (*read, ChatMessage(Role.USER, last.prompt), *given)

    def whole(self) -> tuple[ChatMessage, ...]:
        """All that has been said, the last answer included; empty before the first word."""
        if not self.turns:
            return ()
        last = self.turns[-1]
        read = tuple(message for message in self.messages() if message is not last.given)
        if not last.answer:
            return read
        token_ids = () if last.done is None else last.done.token_ids
        return (*read, ChatMessage(Role.ASSISTANT, last.answer, token_ids))
