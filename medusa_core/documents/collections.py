"""All collections of documents of a user."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path

from medusa_core.documents.indexing import IsStopped, OnIndexProgress, update_collection
from medusa_core.documents.records import (
    CollectionInfo,
    DocumentInfo,
    DocumentState,
    Embed,
    Passage,
)
from medusa_core.documents.search import PASSAGE, Searcher, as_passage
from medusa_core.documents.store import DocumentStore
from medusa_core.errors import RequestError
from medusa_core.i18n import text_from_json, tr
from medusa_core.system.storage.database import SqlRow

_MOST_NAME_CHARS = 200
_INFO = """
    SELECT l.number, l.id, l.name, coalesce(sum(d.state = 'indexed'), 0),
        coalesce(sum(d.num_chunks), 0), coalesce(sum(d.num_chars), 0), l.embedding_model,
        (SELECT count(*) FROM vectors AS v JOIN chunks AS c ON c.number = v.chunk
            JOIN documents AS e ON e.number = c.document WHERE e.collection = l.number)
    FROM collections AS l LEFT JOIN documents AS d ON d.collection = l.number
    GROUP BY l.number ORDER BY l.number
"""
_DOCUMENTS = """
    SELECT path, state, reason, num_chunks, num_chars, num_bytes, changed_ns
    FROM documents WHERE collection = ? ORDER BY path
"""


class Collections:
    """Collections, in a database that several windows may use at once.

    Methods may be called from any thread. `update` takes long, `remove` seconds; the others take
    fractions of a second, but may wait for another window that writes.
    """

    def __init__(self, folder: Path) -> None:
        """Open or create the database.

        Args:
            folder: Its folder.

        Raises:
            StorageError: It can't be opened.
        """
        self._store = DocumentStore(folder / "documents.db")
        self._lock = folder / "update.lock"
        self._searcher = Searcher(self._store)

    def all(self) -> tuple[CollectionInfo, ...]:
        """Return all collections in order of creation.

        Raises:
            StorageError: They can't be read.
        """
        with self._store.snapshot() as db:
            return tuple(
                CollectionInfo(
                    collection_id, name, tuple(map(Path, self._store.roots(number))), *figures
                )
                for number, collection_id, name, *figures in db.rows(_INFO)
            )

    def existing(self, collection_ids: Iterable[str]) -> list[str]:
        """Return those of some ids whose collections exist, each once.

        Raises:
            StorageError: They can't be read.
        """
        there = {name for (name,) in self._store.rows("SELECT id FROM collections")}
        return [name for name in dict.fromkeys(collection_ids) if name in there]

    def create(self, name: str) -> CollectionInfo:
        """Create an empty collection.

        Raises:
            RequestError: The name is empty.
            StorageError: It can't be written.
        """
        collection_id, name = uuid.uuid4().hex, _checked_name(name)
        with self._store.transaction() as db:
            # By the clock: SQLite gives the number of a removed one again, which an update or a
            # search that has begun before may still use.
            db.write(
                "INSERT INTO collections (number, id, name)"
                " SELECT max(coalesce(max(number) + 1, 0), ?), ?, ? FROM collections",
                *(time.time_ns(), collection_id, name),
            )
        return CollectionInfo(collection_id, name, (), 0, 0, 0, "", 0)

    def rename(self, collection_id: str, name: str) -> None:
        """Rename a collection.

        Raises:
            RequestError: The name is empty, or the collection was removed.
            StorageError: It can't be written.
        """
        name = _checked_name(name)
        with self._store.transaction() as db:
            number = self._store.collection(collection_id)
            db.write("UPDATE collections SET name = ? WHERE number = ?", name, number)

    def remove(self, collection_id: str) -> None:
        """Remove a collection, and erase everything that was read for it.

        Raises:
            RequestError: It was removed already.
            StorageError: It can't be written.
        """
        self._store.remove_collection(collection_id)

    def add_paths(self, collection_id: str, paths: Iterable[Path]) -> None:
        """Add files and folders, which the next update reads.

        Args:
            collection_id: Id of the collection.
            paths: Their paths; links in them are followed now, and never again.

        Raises:
            RequestError: A path doesn't exist, or the collection was removed.
            StorageError: It can't be written.
        """
        resolved = [_resolved(path) for path in paths]
        with self._store.transaction() as db:
            number = self._store.collection(collection_id)
            for path in resolved:
                db.write(
                    "INSERT OR IGNORE INTO roots (collection, path) VALUES (?, ?)", number, path
                )

    def remove_path(self, collection_id: str, path: Path) -> None:
        """Remove a file or folder that was added, and erase what was read of it.

        Args:
            collection_id: Id of the collection.
            path: One of the collection's `paths`.

        Raises:
            RequestError: The collection was removed.
            StorageError: It can't be written.
        """
        with self._store.transaction() as db:
            number = self._store.collection(collection_id)
            db.write("DELETE FROM roots WHERE collection = ? AND path = ?", number, str(path))
            roots = [Path(root) for root in self._store.roots(number)]
            documents = self._store.documents(number)
        left = [
            document.number
            for name, document in documents.items()
            if not any(Path(name).is_relative_to(root) for root in roots)
        ]
        self._store.remove_documents(left)
        self._store.purge(shrinks=True)

    def documents(self, collection_id: str) -> tuple[DocumentInfo, ...]:
        """Return the files of a collection that were read or skipped, by path.

        Raises:
            RequestError: The collection was removed.
            StorageError: They can't be read.
        """
        number = self._store.collection(collection_id)
        return tuple(map(_document, self._store.rows(_DOCUMENTS, number)))

    def update(
        self,
        collection_id: str,
        on_progress: OnIndexProgress,
        is_stopped: IsStopped,
        embed: Embed | None = None,
        *,
        keeps_missing: bool = False,
    ) -> None:
        """Read new and changed files, remove vanished ones, and embed new chunks.

        What was done when it is stopped or killed is kept. If another update is running, in this or
        another program, it waits for its end.

        Args:
            collection_id: Id of the collection.
            on_progress: Called in this thread after each file and batch of chunks.
            is_stopped: Asked several times a second.
            embed: The embedding model; None to search by words only.
            keeps_missing: Whether to keep what was read of a path that was added and doesn't exist,
                or of a folder that can't be opened: its drive may not be mounted.

        Raises:
            RequestError: The collection was removed.
            StorageError: The database can't be read or written.
            MedusaError: The embedding model fails.
        """
        update_collection(
            self._store,
            self._lock,
            collection_id,
            on_progress,
            is_stopped,
            embed,
            keeps_missing=keeps_missing,
        )

    def search(
        self,
        collection_ids: Sequence[str],
        query: str,
        limit: int = 8,
        embed: Embed | None = None,
    ) -> tuple[Passage, ...]:
        """Find passages for a query, which may be any text, the best first.

        Args:
            collection_ids: Ids of collections.
            query: The query.
            limit: Most passages.
            embed: The embedding model; vectors are searched in collections that it has embedded.

        Raises:
            RequestError: A collection was removed.
            StorageError: The database can't be read.
            MedusaError: The embedding model fails.
        """
        return self._searcher.search(collection_ids, query, limit, embed)

    def whole_text(
        self, collection_ids: Sequence[str], most_chars: int
    ) -> tuple[Passage, ...] | None:
        """Return all passages in order, if their text isn't longer than a limit; else None.

        Raises:
            RequestError: A collection was removed.
            StorageError: The database can't be read.
        """
        numbers = [self._store.collection(name) for name in dict.fromkeys(collection_ids)]
        within = f"WHERE d.collection IN ({', '.join('?' * len(numbers))})"
        with self._store.snapshot() as db:
            total = db.row(
                f"SELECT coalesce(sum(num_chars), 0) FROM documents AS d {within}",
                *numbers,
            )
            if total is None or total[0] > most_chars:
                return None
            rows = db.rows(f"{PASSAGE} {within} ORDER BY l.number, d.path, c.number", *numbers)
        return tuple(map(as_passage, rows))

    def close(self) -> None:
        """Close the database; a second call does nothing."""
        self._store.close()


def _checked_name(name: str) -> str:
    """Return a name on one line.

    Raises:
        RequestError: It is empty.
    """
    name = " ".join(name.encode("utf-8", "replace").decode().split())[:_MOST_NAME_CHARS]
    if not name:
        raise RequestError("This collection has no name.", "Enter a name.")
    return name


def _resolved(path: Path) -> str:
    """Return an absolute path without links.

    Raises:
        RequestError: It doesn't exist, or its name isn't valid text.
    """
    try:
        resolved = str(path.expanduser().resolve(strict=True))
        resolved.encode()  # Python decodes other bytes than UTF-8 as surrogates
        return resolved
    except UnicodeEncodeError as error:
        shown = str(path).encode("utf-8", "replace").decode()
        raise RequestError(
            tr("{0} can't be added: its name isn't valid text.", shown), "Rename it."
        ) from error
    except (OSError, RuntimeError, ValueError) as error:
        raise RequestError(
            tr("{0} can't be added: there is no such file or folder.", path),
            "Choose a file or folder.",
        ) from error


def _document(row: SqlRow) -> DocumentInfo:
    """Return a row of `_DOCUMENTS`, compared with the file."""
    path, state, reason, num_chunks, num_chars, num_bytes, changed_ns = row
    found = DocumentState(state)
    if found is DocumentState.INDEXED:
        try:
            status = os.lstat(path)
            is_same = (status.st_size, status.st_mtime_ns) == (num_bytes, changed_ns)
        except OSError:
            is_same = False
        found = found if is_same else DocumentState.CHANGED
    shown = text_from_json(json.loads(reason)) if reason else ""
    return DocumentInfo(Path(path), found, shown, num_chunks, num_chars, num_bytes)
