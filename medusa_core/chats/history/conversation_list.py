"""The list of conversations: titles, folders, pins, drafts, settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from medusa_core.chats.attachments.attachment import Attachment
from medusa_core.chats.history.folding import fold
from medusa_core.chats.history.part import (
    HistoryPart,
    clean,
)
from medusa_core.chats.history.records import (
    ConversationInfo,
    Folder,
)
from medusa_core.errors import RequestError

ALL = "*"
"""Conversations of all folders and of none."""

_COLUMNS = """
    SELECT c.id, c.title, c.has_own_title, f.id, c.is_pinned, c.created_s, c.changed_s,
        c.trashed_s, m.id, c.num_messages
    FROM conversations AS c
    LEFT JOIN folders AS f ON f.number = c.folder
    LEFT JOIN messages AS m ON m.number = c.leaf
"""
_NO_LIMIT = -1


class ConversationList(HistoryPart):
    """The part of the history that lists conversations."""

    def conversations(
        self,
        *,
        in_trash: bool = False,
        folder_id: str | None = ALL,
        limit: int = _NO_LIMIT,
        offset: int = 0,
    ) -> tuple[ConversationInfo, ...]:
        """List conversations, the last changed first, without reading messages.

        Args:
            in_trash: List the trash instead.
            folder_id: Id of a folder; None for conversations without one; `ALL` for all.
            limit: Most conversations.
            offset: Number of conversations to skip.

        Raises:
            StorageError: The history can't be read.
        """
        sql = _COLUMNS + f"WHERE c.trashed_s {'>= 0' if in_trash else 'IS NULL'}"
        values: list[object] = []
        if folder_id is None:
            sql += " AND c.folder IS NULL"
        elif folder_id != ALL:
            sql += " AND f.id = ?"
            values.append(folder_id)
        sql += " ORDER BY c.place DESC LIMIT ? OFFSET ?"
        return tuple(_info(row) for row in self._database.rows(sql, *values, limit, offset))

    def conversation(self, conversation_id: str) -> ConversationInfo:
        """Return a conversation.

        Raises:
            RequestError: The conversation was deleted.
            StorageError: The history can't be read.
        """
        row = self._database.row(_COLUMNS + "WHERE c.id = ?", conversation_id)
        if row is None:
            raise RequestError("The conversation is not in the history any more.")
        return _info(row)

    def begin(self, conversation_id: str, title: str, settings_json: str = "") -> None:
        """Create an empty conversation.

        Raises:
            StorageError: The database can't be written.
        """
        now_s = self._clock()
        title = clean(title)
        with self._database.transaction():
            number = self._database.write(
                "INSERT INTO conversations (id, title, created_s, changed_s, place, settings)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                *(conversation_id, title, now_s, now_s, self._next_place(now_s), settings_json),
            )
            self._index_title(number, title)

    def rename(self, conversation_id: str, title: str, *, by_user: bool = True) -> None:
        """Give a conversation another title.

        Args:
            conversation_id: Id of the conversation.
            title: New title.
            by_user: Whether the user wrote it; a generated title doesn't replace the user's.

        Raises:
            RequestError: The conversation was deleted.
            StorageError: The database can't be written.
        """
        title = clean(title)
        with self._database.transaction():
            number = self._conversation(conversation_id)
            row = self._database.row(
                "SELECT has_own_title FROM conversations WHERE number = ?", number
            )
            if row is None or (row[0] and not by_user):
                return
            self._database.write(
                "UPDATE conversations SET title = ?, has_own_title = ? WHERE number = ?",
                *(title, by_user, number),
            )
            self._index_title(number, title)

    def _index_title(self, number: int, title: str) -> None:
        """Update the title in the search index."""
        self._database.write("DELETE FROM title_words WHERE rowid = ?", number)
        self._database.write(
            "INSERT INTO title_words (rowid, words) VALUES (?, ?)", number, fold(title)
        )

    def pin(self, conversation_id: str, is_pinned: bool = True) -> None:
        """Pin a conversation to the top of the list, or unpin it.

        Raises:
            RequestError: The conversation was deleted.
            StorageError: The database can't be written.
        """
        with self._database.transaction():
            number = self._conversation(conversation_id)
            self._database.write(
                "UPDATE conversations SET is_pinned = ? WHERE number = ?", is_pinned, number
            )

    def move(self, conversation_id: str, folder_id: str | None) -> None:
        """Move a conversation to a folder, or out of it.

        Raises:
            RequestError: The conversation or the folder was deleted.
            StorageError: The database can't be written.
        """
        with self._database.transaction():
            number = self._conversation(conversation_id)
            folder = None if folder_id is None else self._number("folders", folder_id, "folder")
            self._database.write(
                "UPDATE conversations SET folder = ? WHERE number = ?", folder, number
            )

    def collections(self, conversation_id: str) -> tuple[str, ...]:
        """Return the ids of the collections of documents that a conversation has itself.

        Raises:
            StorageError: The history can't be read.
        """
        return self._collections_of("conversation", conversation_id)

    def set_collections(self, conversation_id: str, collection_ids: Sequence[str]) -> None:
        """Replace the collections of a conversation.

        Raises:
            RequestError: The conversation was deleted.
            StorageError: The database can't be written.
        """
        with self._database.transaction():
            number = self._conversation(conversation_id)
            self._link_collections("conversation", number, collection_ids)

    def folder_collections(self, folder_id: str | None) -> tuple[str, ...]:
        """Return the ids of the collections of a folder; none without a folder.

        Raises:
            StorageError: The history can't be read.
        """
        return self._collections_of("folder", folder_id)

    def set_folder_collections(self, folder_id: str, collection_ids: Sequence[str]) -> None:
        """Replace the collections of documents of a folder; its conversations inherit them.

        Raises:
            RequestError: The folder was deleted.
            StorageError: The database can't be written.
        """
        with self._database.transaction():
            number = self._number("folders", folder_id, "folder")
            self._link_collections("folder", number, collection_ids)

    def _collections_of(self, owner: str, owner_id: str | None) -> tuple[str, ...]:
        """Return the collections of a conversation or a folder, in order."""
        rows = self._database.rows(
            f"SELECT l.collection FROM {owner}_collections AS l"
            f" JOIN {owner}s AS o ON o.number = l.{owner} WHERE o.id = ? AND l.collection <> ''"
            " ORDER BY l.number",
            owner_id,
        )
        return tuple(row[0] for row in rows)

    def _link_collections(self, owner: str, number: int, collection_ids: Sequence[str]) -> None:
        """Replace the collections of a conversation or a folder, in order, each once.

        An empty id stands for none, so that a salvaged file doesn't attach the backup's again.
        """
        self._database.write(f"DELETE FROM {owner}_collections WHERE {owner} = ?", number)
        self._database.write_many(
            f"INSERT INTO {owner}_collections ({owner}, collection) VALUES (?, ?)",
            [(number, clean(one)) for one in dict.fromkeys(collection_ids) or ("",)],
        )

    def folders(self) -> tuple[Folder, ...]:
        """Return all folders, sorted by name.

        Raises:
            StorageError: The history can't be read.
        """
        found = [Folder(*row) for row in self._database.rows("SELECT id, name FROM folders")]
        return tuple(sorted(found, key=lambda folder: (fold(folder.name), folder.id)))

    def add_folder(self, name: str) -> Folder:
        """Create a folder.

        Raises:
            StorageError: The database can't be written.
        """
        folder = Folder(uuid4().hex, clean(name))
        self._database.write("INSERT INTO folders (id, name) VALUES (?, ?)", folder.id, folder.name)
        return folder

    def draft(self, conversation_id: str = "") -> str:
        """Return the unsent text of a conversation; an empty id is that of the new conversation.

        Raises:
            StorageError: The history can't be read.
        """
        row = self._database.row(
            "SELECT text FROM drafts WHERE conversation_id = ?", conversation_id
        )
        return str(row[0]) if row else ""

    def set_draft(self, conversation_id: str, text: str) -> None:
        """Save the unsent text of a conversation; an empty one is deleted.

        Raises:
            StorageError: The database can't be written.
        """
        with self._database.transaction():
            self._database.write("DELETE FROM drafts WHERE conversation_id = ?", conversation_id)
            if text:
                self._database.write(
                    "INSERT INTO drafts (conversation_id, text) VALUES (?, ?)",
                    *(conversation_id, clean(text)),
                )

    def draft_files(self, conversation_id: str = "") -> tuple[Attachment, ...]:
        """Return the files of an unsent message.

        Raises:
            StorageError: The history can't be read.
        """
        rows = self._database.rows(
            "SELECT name, media_type, text, num_bytes FROM draft_files"
            " WHERE conversation_id = ? ORDER BY number",
            conversation_id,
        )
        return tuple(Attachment(*row) for row in rows)

    def set_draft_files(self, conversation_id: str, files: Sequence[Attachment]) -> None:
        """Replace the files of an unsent message.

        Raises:
            StorageError: The database can't be written.
        """
        with self._database.transaction():
            self._database.write(
                "DELETE FROM draft_files WHERE conversation_id = ?", conversation_id
            )
            self._database.write_many(
                "INSERT INTO draft_files (conversation_id, name, media_type, text, num_bytes)"
                " VALUES (?, ?, ?, ?, ?)",
                [
                    (conversation_id, clean(a.name), a.media_type, clean(a.text), a.num_bytes)
                    for a in files
                ],
            )

    def settings(self, conversation_id: str) -> str:
        """Return the settings of a conversation.

        Raises:
            RequestError: The conversation was deleted.
            StorageError: The history can't be read.
        """
        row = self._database.row("SELECT settings FROM conversations WHERE id = ?", conversation_id)
        if row is None:
            raise RequestError("The conversation is not in the history any more.")
        return str(row[0])

    def set_settings(self, conversation_id: str, settings_json: str) -> None:
        """Save the settings of a conversation, as JSON of the window.

        Raises:
            StorageError: The database can't be written.
        """
        self._database.write(
            "UPDATE conversations SET settings = ? WHERE id = ?",
            *(clean(settings_json), conversation_id),
        )


def _info(row: tuple[Any, ...]) -> ConversationInfo:
    """Convert a row of the list."""
    name, title, own, folder, pinned, created_s, changed_s, trashed_s, leaf, num = row
    return ConversationInfo(
        name, title, bool(own), folder, bool(pinned), created_s, changed_s, trashed_s, leaf, num
    )
