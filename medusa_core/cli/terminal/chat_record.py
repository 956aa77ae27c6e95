"""Writes terminal chats into the history of the app."""

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
from medusa_core.chats.rounds import RoundCall
from medusa_core.chats.settings import ChatSettings
from medusa_core.errors import RequestError, StorageError
from medusa_core.messages import StepDone

log = logging.getLogger(__name__)

_UNTITLED = "New chat"


class ChatRecord:
    """Writes conversations; failed writes are retried with the next one.

    Attributes:
        history: The history; None without one.
    """

    def __init__(self, history: History | None, on_error: Callable[[str, str], None]) -> None:
        """Initialize.

        Args:
            history: The history; None discards all writes.
            on_error: Called with a message and a hint when writing fails.
        """
        self.history = history
        self._on_error = on_error
        self._pending: deque[Callable[[History], object]] = deque()
        self._has_failed = False
        self._has_reported_deleted = False
        self._known: set[str] = set()

    def set_known(self, conversation_id: str) -> None:
        """Mark a conversation as present in the history."""
        self._known.add(conversation_id)

    def begin_turn(self, conversation: Conversation, turn: Turn, settings: ChatSettings) -> None:
        """Write a prompt and its empty answer; the first prompt also creates the conversation."""
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

    def begin_round(self, conversation: Conversation, turn: Turn) -> None:
        """Write the next round of an answer, which is empty."""
        stored = stored_answer(conversation, turn)
        self._write(lambda history: history.begin_answer(stored))

    def save_call(self, round_id: str, place: int, call: RoundCall) -> bool:
        """Write the state of a call; return whether it is stored, or needn't be.

        Args:
            round_id: Id of its round.
            place: Index of the call in the round.
            call: The call.
        """
        self._write(lambda history: history.save_call(round_id, place, call))
        return not self._pending

    def is_requested(self, round_id: str, place: int) -> bool:
        """Return whether a call waits for a decision; a window may have decided about it.

        Args:
            round_id: Id of its round.
            place: Index of the call in the round.
        """
        if self.history is None:
            return True
        try:
            return self.history.is_requested(round_id, place)
        except StorageError as error:
            log.info("the state of a call can't be read: %s", error.message)
            return True

    def set_reasoning(self, turn: Turn) -> None:
        """Write the reasoning format of an answer."""
        answer = turn.answer
        reasoning, begins_inside = answer.content.reasoning, answer.content.begins_inside
        self._write(lambda history: history.set_reasoning(answer.id, reasoning, begins_inside))

    def add_steps(self, turn: Turn, steps: tuple[StepDone, ...]) -> None:
        """Append steps to an answer."""
        if steps:
            self._write(lambda history: history.append_steps(turn.answer.id, steps))

    def end_turn(self, turn: Turn) -> None:
        """Write the final state of an answer."""
        answer = turn.answer
        text, done, state = answer.text, answer.done, state_of(answer)
        spans, calls = tuple(answer.content.spans), answer.last.calls
        ended = (answer.id, text, done, state, spans, calls)
        self._write(lambda history: history.finish_answer(*ended))
        self._checkpoint()

    def move(self, conversation: Conversation) -> None:
        """Write the shown path of a conversation."""
        name, leaf = conversation.session_id, conversation.leaf_id
        if leaf:
            self._write(lambda history: history.set_leaf(name, leaf))

    def rename(self, conversation_id: str, title: str) -> None:
        """Rename a conversation."""
        self._write(lambda history: history.rename(conversation_id, title))

    def close(self) -> None:
        """Retry failed writes, and close the history."""
        self._flush()
        if self._pending:
            log.error("%d writes to the history were lost at the end", len(self._pending))
        if self.history is not None:
            self.history.close()

    def _checkpoint(self) -> None:
        """Checkpoint the write-ahead log between answers: it blocks on the disk."""
        if self.history is not None and not self._pending:
            try:
                self.history.checkpoint()
            except StorageError as error:
                log.info("no checkpoint of the history: %s", error.message)

    def _write(self, write: Callable[[History], object]) -> None:
        """Queue a write and run all pending ones."""
        if self.history is not None:
            self._pending.append(write)
            self._flush()

    def _flush(self) -> None:
        """Run the pending writes in order until one fails."""
        if self.history is None:
            return
        while self._pending:
            try:
                self._pending[0](self.history)
            except StorageError as error:
                if not self._has_failed:
                    self._has_failed = True
                    hint = f"{error.hint} What you write is kept here, and saved once it can be."
                    self._on_error(error.message, hint.strip())
                return
            except RequestError as error:
                log.info("dropped a write to the history: %s", error.message)
                self._report_deleted()
            self._pending.popleft()
        self._has_failed = False

    def _report_deleted(self) -> None:
        """Report once that another program deleted the conversation."""
        if not self._has_reported_deleted:
            self._has_reported_deleted = True
            self._on_error(
                "This conversation was deleted, so what is said in it isn't kept any more.",
                "/clear begins a new one.",
            )
