"""Conversations from files, taken into the history all at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from uuid import uuid4

from medusa_core.history.exchange.our_json import Json, message_from_json, time_of
from medusa_core.history.messages import Messages
from medusa_core.history.part import clean
from medusa_core.history.records import Stored
from medusa_core.history.shelf import Shelf


class Taken(NamedTuple):
    """What an import brought.

    Attributes:
        num_new: Conversations that are in the history now.
        num_known: Conversations that had been there before, in the trash or not.
    """

    num_new: int
    num_known: int


class Taking(Shelf, Messages):
    """Import."""

    def take(self, conversations: Iterable[Json]) -> Taken:
        """Add conversations whose ids aren't known yet: all of them, or none after an error.

        Args:
            conversations: As `conversations-1.json` describes them, such as a `ConversationFile`.

        Raises:
            StorageError: They can't be written.
        """
        num_new = num_known = 0
        with self._database.transaction():
            folders = {folder.name: folder.id for folder in self.folders()}
            for raw in conversations:
                name = clean(raw["id"])
                if self._database.row("SELECT 1 FROM conversations WHERE id = ?", name):
                    num_known += 1
                    continue
                folder = raw["folder"]
                if folder is not None and folder not in folders:
                    folders[folder] = self.add_folder(folder).id
                self._take_one(name, raw, None if folder is None else folders[folder])
                num_new += 1
        return Taken(num_new, num_known)

    def _take_one(self, name: str, raw: Json, folder_id: str | None) -> None:
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

    def _take_message(self, conversation: int, message: Stored, numbers: dict[str, int]) -> int:
        """Add a message of which the parent is there; returns its number."""
        name = clean(message.id)
        if self._database.row("SELECT 1 FROM messages WHERE id = ?", name):
            name = uuid4().hex  # of another conversation, which has it for its own
        parent = None if message.parent_id is None else numbers[message.parent_id]
        return self._insert(conversation, parent, name, message)
