"""Duplicate conversations."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

from medusa_core.chats.history.conversation_list import ConversationList
from medusa_core.chats.history.messages import Messages
from medusa_core.chats.history.part import clean
from medusa_core.chats.history.records import AnswerState, StoredAnswer


class Copying(ConversationList, Messages):
    """The part of the history that duplicates conversations."""

    def duplicate(self, conversation_id: str, copy_id: str, title: str) -> None:
        """Copy a conversation with all its branches, figures and traces.

        Args:
            conversation_id: Id of the conversation.
            copy_id: New id for the copy.
            title: Title of the copy.

        Raises:
            RequestError: The conversation was deleted.
            StorageError: The database can't be written; nothing was.
        """
        with self._database.transaction():
            source, title, now_s = self._conversation(conversation_id), clean(title), self._clock()
            copy = self._database.write(
                "INSERT INTO conversations (id, title, has_own_title, folder, created_s, changed_s,"
                " place, num_messages, settings)"
                " SELECT ?, ?, 1, folder, ?, ?, ?, num_messages, settings"
                " FROM conversations WHERE number = ?",
                *(copy_id, title, now_s, now_s, self._next_place(now_s), source),
            )
            self._index_title(copy, title)
            self._database.write(
                "INSERT INTO conversation_collections (conversation, collection)"
                " SELECT ?, collection FROM conversation_collections WHERE conversation = ?"
                " ORDER BY number",
                *(copy, source),
            )
            numbers = self._copy_messages(conversation_id, source, copy)
            leaf = self._database.row("SELECT leaf FROM conversations WHERE number = ?", source)
            if leaf is not None and leaf[0] is not None:
                self._database.write(
                    "UPDATE conversations SET leaf = ? WHERE number = ?", numbers[leaf[0]], copy
                )

    def _copy_messages(self, conversation_id: str, source: int, copy: int) -> dict[int, int]:
        """Copy the tree of messages; returns the number of each copy by that of the original."""
        numbers: dict[int, int] = {}
        for message in self._read_messages(conversation_id, source):
            number = self._message(message.id)
            parent = None if message.parent_id is None else self._message(message.parent_id)
            copied = replace(message, answer=_ended(message.answer))
            numbers[number] = self._insert(
                copy, None if parent is None else numbers[parent], uuid4().hex, copied
            )
            self._database.write(
                "INSERT INTO traces (message, num_bytes, packed)"
                " SELECT ?, num_bytes, packed FROM traces WHERE message = ?",
                *(numbers[number], number),
            )
        return numbers


def _ended(answer: StoredAnswer | None) -> StoredAnswer | None:
    """Return an answer for a copy, which is not generated further, and whose calls don't run."""
    if answer is None:
        return None
    state = AnswerState.CUT if answer.state is AnswerState.STREAMING else answer.state
    return replace(answer, state=state, calls=tuple(call.not_run for call in answer.calls))
