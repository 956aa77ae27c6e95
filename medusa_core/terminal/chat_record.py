"""A chat in the history that the window shows, written while it is led."""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Callable

from medusa_core.chats.conversation import Conversation, Turn
from medusa_core.chats.history.history import History
from medusa_core.chats.history.stored_chats import (
    first_words,
    state_of,
    stored_answer,
    stored_prompt,
)
from medusa_core.chats.settings import ChatSettings
from medusa_core.errors import RequestError, StorageError
from medusa_core.messages import StepDone

log = logging.getLogger(__name__)

_UNTITLED = "New chat"


class ChatRecord:
    """Writes conversations; what can't be written waits for the next time.

    Attributes:
        history: Where they are; None where none is kept.
    """

    def __init__(self, history: History | None, complain: Callable[[str, str], None]) -> None:
        """Record.

        Args:
            history: Where to; None for nowhere.
            complain: Called with a message and a hint when nothing can be written any more.
        """
        self.history = history
        self._complain = complain
        self._waiting: deque[Callable[[History], object]] = deque()
        self._has_failed = False
        self._has_said_deleted = False
        self._known: set[str] = set()

    def know(self, conversation_id: str) -> None:
        """It is in the history already."""
        self._known.add(conversation_id)

    def begin_turn(self, conversation: Conversation, turn: Turn, settings: ChatSettings) -> None:
        """Write a prompt, and the answer that is about to come; the first one begins the chat."""
        name = conversation.session_id
        if name not in self._known:
            self._known.add(name)
            title = first_words(turn.prompt.text) or _UNTITLED
            self._write(lambda history: history.begin(name, title))
        raw = json.dumps(settings.as_json(), ensure_ascii=False)
        self._write(lambda history: history.set_settings(name, raw))
        prompt, answer = stored_prompt(conversation, turn.prompt), stored_answer(conversation, turn)
        if turn.prompt.answers == [turn.answer]:
            self._write(lambda history: history.add_prompt(prompt))
        self._write(lambda history: history.begin_answer(answer))

    def set_reasoning(self, turn: Turn) -> None:
        """Write how an answer sets reasoning apart."""
        answer = turn.answer
        reasoning, begins_inside = answer.reasoning, answer.begins_inside
        self._write(lambda history: history.set_reasoning(answer.id, reasoning, begins_inside))

    def add_steps(self, turn: Turn, steps: tuple[StepDone, ...]) -> None:
        """Write more of an answer."""
        if steps:
            self._write(lambda history: history.append_steps(turn.answer.id, steps))

    def end_turn(self, turn: Turn) -> None:
        """Write how an answer ended."""
        answer = turn.answer
        text, done, state, spans = answer.text, answer.done, state_of(answer), answer.spans
        self._write(lambda history: history.finish_answer(answer.id, text, done, state, spans))
        self._checkpoint()

    def move(self, conversation: Conversation) -> None:
        """Write which path of a conversation is shown."""
        name, leaf = conversation.session_id, conversation.leaf_id
        if leaf:
            self._write(lambda history: history.set_leaf(name, leaf))

    def rename(self, conversation_id: str, title: str) -> None:
        """Give a conversation a name."""
        self._write(lambda history: history.rename(conversation_id, title))

    def close(self) -> None:
        """Write what can be written, and close the history."""
        self._flush()
        if self._waiting:
            log.error("%d writes to the history were lost at the end", len(self._waiting))
        if self.history is not None:
            self.history.close()

    def _checkpoint(self) -> None:
        """Move the log into its file while the answer is read, for it waits for the disk."""
        if self.history is not None and not self._waiting:
            try:
                self.history.checkpoint()
            except StorageError as error:
                log.info("no checkpoint of the history: %s", error.message)

    def _write(self, write: Callable[[History], object]) -> None:
        if self.history is not None:
            self._waiting.append(write)
            self._flush()

    def _flush(self) -> None:
        """Do what waits, in order, as far as that is possible."""
        if self.history is None:
            return
        while self._waiting:
            try:
                self._waiting[0](self.history)
            except StorageError as error:
                if not self._has_failed:
                    self._has_failed = True
                    hint = f"{error.hint} What you write is kept here, and saved once it can be."
                    self._complain(error.message, hint.strip())
                return
            except RequestError as error:
                log.info("nothing to write any more: %s", error.message)
                self._say_deleted()
            self._waiting.popleft()
        self._has_failed = False

    def _say_deleted(self) -> None:
        if not self._has_said_deleted:
            self._has_said_deleted = True
            self._complain(
                "This conversation was deleted, so what is said in it isn't kept any more.",
                "/clear begins a new one.",
            )
