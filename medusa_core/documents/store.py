"""The database of collections, for several threads and programs."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from medusa_core.documents.chunks import Chunk
from medusa_core.documents.records import DocumentState
from medusa_core.documents.scan import FoundFile
from medusa_core.documents.schema import MIGRATIONS, restore_words, word_row
from medusa_core.errors import EngineError, RequestError
from medusa_core.i18n import text_to_json
from medusa_core.system.storage.database import Database, SqlRow, open_database

_UNEMBEDDED = (
    "FROM chunks AS c JOIN documents AS d ON d.number = c.document"
    " LEFT JOIN vectors AS v ON v.chunk = c.number WHERE d.collection = ? AND v.chunk IS NULL"
)
# Merges the segments of the index, which have the words of removed chunks. With a removal, it is in
# the same transaction: the program may be killed after it.
_ERASE_WORDS = "INSERT INTO words (words) VALUES ('optimize')"


class StoredDocument(NamedTuple):
    """A document as it was when it was read.

    Attributes:
        number: Number of its row.
        num_bytes: Size.
        changed_ns: Time of the file's last change.
        digest: Hash; empty if it wasn't read.
        reader: Version of the reader.
        reason: Why it was skipped or failed, as JSON; else empty.
    """

    number: int
    num_bytes: int
    changed_ns: int
    digest: str
    reader: int
    reason: str


class DocumentStore:
    """Rows of collections. Methods may be called from any thread, and wait for each other."""

    def __init__(self, path: Path) -> None:
        """Open or create the database.

        Raises:
            StorageError: It can't be opened.
        """
        self._path = path
        self._lock = threading.RLock()
        self._database = open_database(path, MIGRATIONS, mend=restore_words, serves_threads=True)
        self._num_writes = 0
        self._version = 0

    def rows(self, sql: str, *parameters: object) -> list[SqlRow]:
        """Return all rows of a query; see `Database.rows`."""
        with self._lock:
            return self._database.rows(sql, *parameters)

    def row(self, sql: str, *parameters: object) -> SqlRow | None:
        """Return the first row of a query; see `Database.row`."""
        with self._lock:
            return self._database.row(sql, *parameters)

    @contextmanager
    def transaction(self) -> Iterator[Database]:
        """Commit everything that is written inside, or nothing; see `Database.transaction`."""
        with self._lock:
            self._num_writes += 1
            with self._database.transaction():
                yield self._database

    @contextmanager
    def snapshot(self) -> Iterator[Database]:
        """Read from one consistent snapshot inside; see `Database.snapshot`."""
        with self._lock, self._database.snapshot():
            yield self._database

    def version(self) -> tuple[int, int]:
        """Return a value that changes when this or another program writes."""
        with self._lock:
            self._version += self._database.changed_elsewhere()
            return self._num_writes, self._version

    def collection(self, collection_id: str) -> int:
        """Return the number of a collection.

        Raises:
            RequestError: It was removed.
        """
        row = self.row("SELECT number FROM collections WHERE id = ?", collection_id)
        if row is None:
            raise RequestError(
                "This collection of documents was removed.", "Choose or create another one."
            )
        return int(row[0])

    def roots(self, collection: int) -> list[str]:
        """Return the paths of a collection's files and folders."""
        found = self.rows("SELECT path FROM roots WHERE collection = ? ORDER BY number", collection)
        return [path for (path,) in found]

    def documents(self, collection: int) -> dict[str, StoredDocument]:
        """Return the documents of a collection by path."""
        found = self.rows(
            "SELECT path, number, num_bytes, changed_ns, digest, reader, reason"
            " FROM documents WHERE collection = ?",
            collection,
        )
        return {path: StoredDocument(*row) for path, *row in found}

    def replace_document(
        self,
        collection_id: str,
        file: FoundFile,
        reader: int,
        digest: str = "",
        chunks: Sequence[Chunk] = (),
        *,
        state: DocumentState = DocumentState.INDEXED,
        reason: str = "",
    ) -> None:
        """Write a document in place of its former version; one of a removed path isn't written.

        Args:
            collection_id: Id of the collection.
            file: The file.
            reader: Version of the reader.
            digest: Hash of the file; empty if it wasn't read.
            chunks: Chunks of its text.
            state: State of the document.
            reason: Why it has no chunks.

        Raises:
            RequestError: The collection was removed.
            StorageError: It can't be written.
        """
        name = Path(file.path).name
        with self.transaction() as db:
            collection = self.collection(collection_id)
            if not any(Path(file.path).is_relative_to(root) for root in self.roots(collection)):
                return  # the path was taken out since the scan
            found = db.row(
                "SELECT number FROM documents WHERE collection = ? AND path = ?",
                *(collection, file.path),
            )
            vectors: dict[tuple[str, str], bytes] = {}
            if found is not None:
                # Embedding takes long, and most changes concern few chunks.
                former = db.rows(
                    "SELECT c.heading, c.text, v.vector FROM chunks AS c"
                    " JOIN vectors AS v ON v.chunk = c.number WHERE c.document = ?",
                    found[0],
                )
                vectors = {(heading, text): vector for heading, text, vector in former}
                self._remove_documents(db, [found[0]])
            number = db.write(
                "INSERT INTO documents (collection, path, name, state, reason, num_bytes,"
                " changed_ns, digest, reader, num_chunks, num_chars)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                *(collection, file.path, name, state.value, as_json(reason)),
                *(file.num_bytes, file.changed_ns, digest, reader, len(chunks)),
                sum(len(chunk.text) for chunk in chunks),
            )
            words = []
            for place, heading, text in chunks:
                chunk = db.write(
                    "INSERT INTO chunks (document, place, heading, text) VALUES (?, ?, ?, ?)",
                    *(number, as_json(place), heading, text),
                )
                words.append(word_row(chunk, name, heading, text))
                if vector := vectors.get((heading, text)):
                    db.write("INSERT INTO vectors (chunk, vector) VALUES (?, ?)", chunk, vector)
            db.write_many("INSERT INTO words (rowid, heading, body) VALUES (?, ?, ?)", words)

    def touch_document(self, collection_id: str, file: FoundFile) -> None:
        """Note size and time of a file whose content is the same."""
        with self.transaction() as db:
            db.write(
                "UPDATE documents SET num_bytes = ?, changed_ns = ?"
                " WHERE collection = ? AND path = ?",
                *(file.num_bytes, file.changed_ns, self.collection(collection_id), file.path),
            )

    def remove_documents(self, numbers: Sequence[int]) -> None:
        """Remove documents with their text, words and vectors."""
        with self.transaction() as db:
            self._remove_documents(db, numbers)
            db.write(_ERASE_WORDS)

    def remove_collection(self, collection_id: str) -> None:
        """Remove a collection with everything that was read for it.

        Raises:
            RequestError: It was removed already.
            StorageError: It can't be written.
        """
        with self.transaction() as db:
            number = self.collection(collection_id)
            numbers = db.rows("SELECT number FROM documents WHERE collection = ?", number)
            self._remove_documents(db, [number for (number,) in numbers])
            db.write("DELETE FROM collections WHERE number = ?", number)
            db.write(_ERASE_WORDS)
        self.purge(shrinks=True)

    def embedding_model(self, collection: int) -> str:
        """Return the name of the model of a collection's vectors; empty for none."""
        row = self.row("SELECT embedding_model FROM collections WHERE number = ?", collection)
        return row[0] if row else ""

    def set_embedding_model(self, collection: int, name: str) -> None:
        """Note the model of a collection's vectors, and remove those of another one."""
        with self.transaction() as db:
            db.write(
                "DELETE FROM vectors WHERE chunk IN (SELECT c.number FROM chunks AS c"
                " JOIN documents AS d ON d.number = c.document JOIN collections AS l"
                " ON l.number = d.collection WHERE l.number = ? AND l.embedding_model <> ?)",
                *(collection, name),
            )
            db.write(
                "UPDATE collections SET embedding_model = ? WHERE number = ?", name, collection
            )

    def num_unembedded(self, collection: int) -> int:
        """Return the number of chunks without a vector."""
        row = self.row(f"SELECT count(*) {_UNEMBEDDED}", collection)
        return int(row[0]) if row else 0

    def unembedded(self, collection: int, after: int, limit: int) -> list[SqlRow]:
        """Return number, heading and text of chunks without a vector.

        Args:
            collection: Number of the collection.
            after: Chunks up to this number are left out.
            limit: Most chunks.
        """
        return self.rows(
            f"SELECT c.number, c.heading, c.text {_UNEMBEDDED} AND c.number > ?"
            " ORDER BY c.number LIMIT ?",
            *(collection, after, limit),
        )

    def add_vectors(
        self, collection_id: str, model: str, chunks: Sequence[int], vectors: NDArray[np.float32]
    ) -> None:
        """Write the vectors of chunks, except those of chunks that were removed meanwhile.

        Args:
            collection_id: Id of the collection.
            model: Name of the embedding model.
            chunks: Numbers of the chunks.
            vectors: Their vectors. [n, dimensions]

        Raises:
            RequestError: The collection was removed, or has another model by now.
        """
        if vectors.shape[:1] != (len(chunks),):
            raise EngineError("The embedding model returned another number of vectors than texts.")
        with self.transaction() as db:
            number = self.collection(collection_id)
            if self.embedding_model(number) != model:
                raise RequestError("Another embedding model was chosen meanwhile.")
            db.write_many(
                "INSERT OR IGNORE INTO vectors (chunk, vector)"
                " SELECT number, ? FROM chunks WHERE number = ?",
                [
                    (vector.astype(np.float16).tobytes(), chunk)
                    for chunk, vector in zip(chunks, vectors, strict=True)
                ],
            )

    def purge(self, *, shrinks: bool = False) -> None:
        """Erase removed text from the FTS5 index, the write-ahead log and copies of a damaged file.

        Unused pages are overwritten as they are freed (`secure_delete`).

        Args:
            shrinks: Also free unused pages by `VACUUM`, which rewrites the file.
        """
        with self._lock:
            self._database.write(_ERASE_WORDS)
            if shrinks:
                self._database.write("VACUUM")
            self._database.checkpoint(truncates=True)
            for copy in self._path.parent.glob(f"{self._path.name}.damaged-*"):
                with suppress(OSError):
                    copy.unlink()

    def close(self) -> None:
        """Close the database; a second call does nothing."""
        with self._lock:
            self._database.close()

    @staticmethod
    def _remove_documents(db: Database, numbers: Sequence[int]) -> None:
        """Remove documents within a transaction."""
        for number in numbers:
            found = db.rows(
                "SELECT c.number, d.name, c.heading, c.text FROM chunks AS c"
                " JOIN documents AS d ON d.number = c.document WHERE d.number = ?",
                number,
            )
            db.write_many(
                "INSERT INTO words (words, rowid, heading, body) VALUES ('delete', ?, ?, ?)",
                [word_row(*row) for row in found],
            )
            db.write("DELETE FROM documents WHERE number = ?", number)


def text_to_embed(heading: str, text: str) -> str:
    """Return the text of a chunk that is embedded."""
    return f"{heading}\n{text}" if heading else text


def as_json(text: str) -> str:
    """Return a translatable text as JSON; an empty one stays empty."""
    return json.dumps(text_to_json(text)) if text else ""
