"""Conversations from files, taken into the history all at once."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple
from uuid import uuid4

from medusa_core.chats.history.exchange.our_json import (
    Json,
    message_from_json,
    time_of,
)
from medusa_core.chats.history.messages import Messages
from medusa_core.chats.history.part import clean
from medusa_core.chats.history.records import Stored
from medusa_core.chats.history.shelf import Shelf
from medusa_core.chats.history.trash import Trash
from medusa_core.errors import StorageError


class Taken(NamedTuple):
    """What an import brought.

    Attributes:
        num_new: Conversations that are in the history now.
        num_known: Conversations that had been there before, in the trash or not.
    """

    num_new: int
    num_known: int


PIECE_S = 0.015  # of a transaction that others wait for


class Taking(Trash, Shelf, Messages):
    """Import."""

    def take(self, conversations: Iterable[Json]) -> Taken:
        """Add conversations whose ids aren't known yet: all of them, or none after an error.

        Args:
            conversations: As `conversations-2.json` describes them, such as a `ConversationFile`.

        Raises:
            StorageError: They can't be written.
        """
        with self._database.transaction():
            folders = {folder.name: folder.id for folder in self.folders()}
            new = [_whole(self._taking(raw, folders)) for raw in conversations]
        return Taken(sum(new), len(new) - sum(new))

    def take_in_pieces(self, conversations: Iterable[Json]) -> Generator[None, None, Taken]:
        """Do what `take` does in short transactions; goes on after each when it is asked to.

        Conversations can't be seen until all of them are there. What is left of an import that was
        interrupted is removed at once, or when the history is opened next.

        Args:
            conversations: As for `take`.

        Raises:
            StorageError: They can't be written.
        """
        new: list[bool] = []
        # Below zero instead of a time in the trash: nobody sees it. Each import has a number.
        staged_s = -float(1 + secrets.randbits(48))
        messages = self._staging(conversations, new, staged_s)
        try:
            while self._take_some(messages):
                yield
            self._database.write(
                "UPDATE conversations SET trashed_s = NULL WHERE trashed_s = ?", staged_s
            )
        except BaseException:
            with suppress(StorageError):
                self._forget_between(staged_s, staged_s)
            raise
        return Taken(sum(new), len(new) - sum(new))

    def _staging(
        self, conversations: Iterable[Json], new: list[bool], staged_s: float
    ) -> Iterator[None]:
        """Add conversations that can't be seen, message by message."""
        for raw in conversations:
            folders = {folder.name: folder.id for folder in self.folders()}
            new.append((yield from self._taking(raw, folders, staged_s)))
            yield

    def _take_some(self, messages: Iterator[None]) -> bool:
        """Add messages for a short time; whether there may be more."""
        end_s = time.monotonic() + PIECE_S
        with self._database.transaction():
            for _ in messages:
                if time.monotonic() > end_s:
                    return True
        return False

    def forget_staged(self) -> None:
        """Remove what interrupted imports left, and what those hold that go on.

        Raises:
            StorageError: It can't be written.
        """
        self._forget_between(-math.inf, -1.0)

    def _forget_between(self, first_s: float, last_s: float) -> None:
        with self._database.transaction():
            for number, name in self._database.rows(
                "SELECT number, id FROM conversations WHERE trashed_s BETWEEN ? AND ?",
                *(first_s, last_s),
            ):
                self._delete(number, name)

    def _taking(
        self, raw: Json, folders: dict[str, str], trashed_s: float | None = None
    ) -> Generator[None, None, bool]:
        """Add a conversation message by message; returns whether it wasn't known.

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
        folder_id = None if folder is None else folders[folder]
        number = self._take_info(name, raw, folder_id, trashed_s)
        numbers: dict[str, int] = {}
        for each in raw["messages"]:
            message = message_from_json(each, name)
            numbers[message.id] = self._take_message(number, message, numbers)
            yield
        leaf = numbers.get(raw["leaf_id"] or "", max(numbers.values(), default=None))
        self._database.write(
            "UPDATE conversations SET leaf = ?, num_messages = ? WHERE number = ?",
            *(leaf, len(numbers), number),
        )
        return True

    def _take_info(
        self, name: str, raw: Json, folder_id: str | None, trashed_s: float | None
    ) -> int:
        """Add a conversation without its messages; returns its number."""
        folder = None if folder_id is None else self._number("folders", folder_id, "folder")
        title, changed_s = clean(raw["title"]), time_of(raw["changed_s"])
        number = self._database.write(
            "INSERT INTO conversations (id, title, has_own_title, folder, is_pinned, created_s,"
            " changed_s, place, settings, trashed_s) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            *(name, title, raw["has_own_title"], folder, raw["is_pinned"]),
            *(time_of(raw["created_s"]), changed_s),
            # What lies ahead of now would stay on top for ever.
            *(min(changed_s, self._clock()), clean(raw["settings"]), trashed_s),
        )
        self._index_title(number, title)
        return number

    def _take_message(self, conversation: int, message: Stored, numbers: dict[str, int]) -> int:
        """Add a message of which the parent is there; returns its number."""
        name = clean(message.id)
        if self._database.row("SELECT 1 FROM messages WHERE id = ?", name):
            name = uuid4().hex  # of another conversation, which has it for its own
        parent = None if message.parent_id is None else numbers[message.parent_id]
        return self._insert(conversation, parent, name, message)


def _whole(taking: Generator[None, None, bool]) -> bool:
    """Add all of a conversation."""
    while True:
        try:
            next(taking)
        except StopIteration as done:
            return bool(done.value)
