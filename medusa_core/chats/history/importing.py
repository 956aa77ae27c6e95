"""Import conversations from files, all or none."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple
from uuid import uuid4

from medusa_core.chats.history.conversation_list import ConversationList
from medusa_core.chats.history.exchange.our_json import (
    Json,
    message_from_json,
    time_of,
)
from medusa_core.chats.history.messages import Messages
from medusa_core.chats.history.part import clean
from medusa_core.chats.history.records import Stored
from medusa_core.chats.history.trash import Trash
from medusa_core.errors import StorageError


class ImportCounts(NamedTuple):
    """Result of an import.

    Attributes:
        num_new: Number of imported conversations.
        num_known: Number of conversations that the history already had, maybe in the trash.
    """

    num_new: int
    num_known: int


PIECE_S = 0.015  # length of a transaction, which blocks other writers


class Importing(Trash, ConversationList, Messages):
    """The part of the history that imports conversations."""

    def import_all(self, conversations: Iterable[Json]) -> ImportCounts:
        """Add conversations with new ids in one transaction.

        Args:
            conversations: JSON in the form of `conversations-4.json`, such as a `ConversationFile`.

        Raises:
            StorageError: The database can't be written; nothing was.
        """
        with self._database.transaction():
            folders = {folder.name: folder.id for folder in self.folders()}
            new = [_run_to_end(self._import(raw, folders)) for raw in conversations]
        return ImportCounts(sum(new), len(new) - sum(new))

    def import_in_pieces(
        self, conversations: Iterable[Json]
    ) -> Generator[None, None, ImportCounts]:
        """Import conversations in short transactions; yields after each.

        Conversations are visible only once all of them are imported. The rest of an interrupted
        import is removed at once, or when the history is opened next.

        Args:
            conversations: See `import_all`.

        Raises:
            StorageError: The database can't be written.
        """
        new: list[bool] = []
        # A negative time in the trash hides them; each import has its own.
        staged_s = -float(1 + secrets.randbits(48))
        messages = self._staging(conversations, new, staged_s)
        try:
            while self._import_some(messages):
                yield
            self._database.write(
                "UPDATE conversations SET trashed_s = NULL WHERE trashed_s = ?", staged_s
            )
        except BaseException:
            with suppress(StorageError):
                self._delete_staged(staged_s, staged_s)
            raise
        return ImportCounts(sum(new), len(new) - sum(new))

    def _staging(
        self, conversations: Iterable[Json], new: list[bool], staged_s: float
    ) -> Iterator[None]:
        """Add hidden conversations message by message."""
        for raw in conversations:
            folders = {folder.name: folder.id for folder in self.folders()}
            new.append((yield from self._import(raw, folders, staged_s)))
            yield

    def _import_some(self, messages: Iterator[None]) -> bool:
        """Add messages for a short time, and return whether there may be more."""
        end_s = time.monotonic() + PIECE_S
        with self._database.transaction():
            for _ in messages:
                if time.monotonic() > end_s:
                    return True
        return False

    def remove_staged(self) -> None:
        """Remove hidden conversations of all imports.

        Raises:
            StorageError: The database can't be written.
        """
        self._delete_staged(-math.inf, -1.0)

    def _delete_staged(self, first_s: float, last_s: float) -> None:
        """Delete hidden conversations of imports that began between two times."""
        with self._database.transaction():
            for number, name in self._database.rows(
                "SELECT number, id FROM conversations WHERE trashed_s BETWEEN ? AND ?",
                *(first_s, last_s),
            ):
                self._delete(number, name)

    def _import(
        self, raw: Json, folders: dict[str, str], trashed_s: float | None = None
    ) -> Generator[None, None, bool]:
        """Add a conversation message by message, and return whether it is new.

        Args:
            raw: JSON of the conversation.
            folders: Ids of folders by name; new ones are added.
            trashed_s: Its time in the trash; None outside the trash.
        """
        name = clean(raw["id"])
        if self._database.row("SELECT 1 FROM conversations WHERE id = ?", name):
            return False
        folder = raw["folder"]
        if folder is not None and folder not in folders:
            folders[folder] = self.add_folder(folder).id
        folder_id = None if folder is None else folders[folder]
        number = self._import_info(name, raw, folder_id, trashed_s)
        numbers: dict[str, int] = {}
        for raw_message in raw["messages"]:
            message = message_from_json(raw_message, name)
            numbers[message.id] = self._import_message(number, message, numbers)
            yield
        leaf = numbers.get(raw["leaf_id"] or "", max(numbers.values(), default=None))
        self._database.write(
            "UPDATE conversations SET leaf = ?, num_messages = ? WHERE number = ?",
            *(leaf, len(numbers), number),
        )
        return True

    def _import_info(
        self, name: str, raw: Json, folder_id: str | None, trashed_s: float | None
    ) -> int:
        """Add a conversation without its messages, and return its number."""
        folder = None if folder_id is None else self._number("folders", folder_id, "folder")
        title, changed_s = clean(raw["title"]), time_of(raw["changed_s"])
        number = self._database.write(
            "INSERT INTO conversations (id, title, has_own_title, folder, is_pinned, created_s,"
            " changed_s, place, settings, trashed_s) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            *(name, title, raw["has_own_title"], folder, raw["is_pinned"]),
            *(time_of(raw["created_s"]), changed_s),
            # A time in the future would keep it on top.
            *(min(changed_s, self._clock()), clean(raw["settings"]), trashed_s),
        )
        self._index_title(number, title)
        return number

    def _import_message(self, conversation: int, message: Stored, numbers: dict[str, int]) -> int:
        """Add a message whose parent was added, and return its number."""
        name = clean(message.id)
        if self._database.row("SELECT 1 FROM messages WHERE id = ?", name):
            name = uuid4().hex  # another conversation has a message with this id
        parent = None if message.parent_id is None else numbers[message.parent_id]
        return self._insert(conversation, parent, name, message)


def _run_to_end(importing: Generator[None, None, bool]) -> bool:
    """Run a generator to its end, and return its result."""
    while True:
        try:
            next(importing)
        except StopIteration as done:
            return bool(done.value)
