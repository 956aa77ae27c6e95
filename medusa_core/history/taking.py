"""Conversations from files, taken into the history all at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple
from uuid import uuid4

from medusa_core.errors import StorageError
from medusa_core.history.exchange.our_json import Json, message_from_json, time_of
from medusa_core.history.messages import Messages
from medusa_core.history.part import clean
from medusa_core.history.records import Stored
from medusa_core.history.shelf import Shelf
from medusa_core.history.trash import Trash


class Taken(NamedTuple):
    """What an import brought.

    Attributes:
        num_new: Conversations that are in the history now.
        num_known: Conversations that had been there before, in the trash or not.
    """

    num_new: int
    num_known: int


_STAGED_S = -1.0  # instead of a time in the trash: it can't be seen until all are there
_GENTLE_S = 0.015


class Taking(Trash, Shelf, Messages):
    """Import."""

    def take(self, conversations: Iterable[Json]) -> Taken:
        """Add conversations whose ids aren't known yet: all of them, or none after an error.

        Args:
            conversations: As `conversations-1.json` describes them, such as a `ConversationFile`.

        Raises:
            StorageError: They can't be written.
        """
        with self._database.transaction():
            folders = {folder.name: folder.id for folder in self.folders()}
            new = [self._take_new(raw, folders) for raw in conversations]
        return Taken(sum(new), len(new) - sum(new))

    async def take_gently(self, conversations: Iterable[Json]) -> Taken:
        """Do what `take` does, a little at a time: the loop that runs it goes on meanwhile.

        Conversations can't be seen until all of them are there. What is left of an import that was
        interrupted is removed at once, or when the history is opened next.

        Args:
            conversations: As for `take`.

        Raises:
            StorageError: They can't be written.
        """
        new: list[bool] = []
        waiting = iter(conversations)
        try:
            while await asyncio.sleep(0, result=True):
                if not self._take_some(waiting, new):
                    break
            self._database.write(
                "UPDATE conversations SET trashed_s = NULL WHERE trashed_s = ?", _STAGED_S
            )
        except BaseException:
            with suppress(StorageError):
                self.forget_staged()
            raise
        return Taken(sum(new), len(new) - sum(new))

    def _take_some(self, waiting: Iterator[Json], new: list[bool]) -> bool:
        """Add conversations for a short time; whether there may be more."""
        end_s = time.monotonic() + _GENTLE_S
        with self._database.transaction():
            folders = {folder.name: folder.id for folder in self.folders()}
            for raw in waiting:
                new.append(self._take_new(raw, folders, _STAGED_S))
                if time.monotonic() > end_s:
                    return True
        return False

    def forget_staged(self) -> None:
        """Remove what an interrupted import left.

        Raises:
            StorageError: It can't be written.
        """
        staged = self._database.rows(
            "SELECT number, id FROM conversations WHERE trashed_s = ?", _STAGED_S
        )
        if staged:
            with self._database.transaction():
                for number, name in staged:
                    self._delete(number, name)

    def _take_new(self, raw: Json, folders: dict[str, str], trashed_s: float | None = None) -> bool:
        """Add a conversation; whether it wasn't known.

        Args:
            raw: The conversation.
            folders: Ids of folders by name, which grows.
            trashed_s: When it was put into the trash; None if it isn't there.
        """
        name = clean(raw["id"])
        if self._database.row("SELECT 1 FROM conversations WHERE id = ?", name):
            return False
        folder = raw["folder"]
        if folder is not None and folder not in folders:
            folders[folder] = self.add_folder(folder).id
        number = self._take_one(name, raw, None if folder is None else folders[folder])
        if trashed_s is not None:
            self._database.write(
                "UPDATE conversations SET trashed_s = ? WHERE number = ?", trashed_s, number
            )
        return True

    def _take_one(self, name: str, raw: Json, folder_id: str | None) -> int:
        folder = None if folder_id is None else self._number("folders", folder_id, "folder")
        title, changed_s = clean(raw["title"]), time_of(raw["changed_s"])
        number = self._database.write(
            "INSERT INTO conversations (id, title, has_own_title, folder, is_pinned, created_s,"
            " changed_s, place, settings) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            *(name, title, raw["has_own_title"], folder, raw["is_pinned"]),
            *(time_of(raw["created_s"]), changed_s),
            # What lies ahead of now would stay on top for ever.
            *(min(changed_s, self._clock()), clean(raw["settings"])),
        )
        self._index_title(number, title)
        numbers: dict[str, int] = {}
        for each in raw["messages"]:
            message = message_from_json(each, name)
            numbers[message.id] = self._take_message(number, message, numbers)
        leaf = numbers.get(raw["leaf_id"] or "", max(numbers.values(), default=None))
        self._database.write(
            "UPDATE conversations SET leaf = ?, num_messages = ? WHERE number = ?",
            *(leaf, len(numbers), number),
        )
        return number

    def _take_message(self, conversation: int, message: Stored, numbers: dict[str, int]) -> int:
        """Add a message of which the parent is there; returns its number."""
        name = clean(message.id)
        if self._database.row("SELECT 1 FROM messages WHERE id = ?", name):
            name = uuid4().hex  # of another conversation, which has it for its own
        parent = None if message.parent_id is None else numbers[message.parent_id]
        return self._insert(conversation, parent, name, message)
