"""The database schema of collections by version, and the full-text index."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from medusa_core.chats.history.folding import fold
from medusa_core.system.storage.database_schema import Migration

# A document is a file, or a folder that was skipped. `place` and `reason` are JSON of
# `i18n.text_to_json`. The full-text index stores no text: rows are removed by the texts that were
# added. Vectors are float16.
_VERSION_1 = """
CREATE TABLE collections (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    embedding_model TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE TABLE roots (
    number INTEGER PRIMARY KEY,
    collection INTEGER NOT NULL REFERENCES collections (number) ON DELETE CASCADE,
    path TEXT NOT NULL,
    UNIQUE (collection, path)
) STRICT;
CREATE TABLE documents (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    collection INTEGER NOT NULL REFERENCES collections (number) ON DELETE CASCADE,
    path TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    num_bytes INTEGER NOT NULL,
    changed_ns INTEGER NOT NULL,
    digest TEXT NOT NULL,
    reader INTEGER NOT NULL,
    num_chunks INTEGER NOT NULL,
    num_chars INTEGER NOT NULL,
    UNIQUE (collection, path)
) STRICT;
CREATE TABLE chunks (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    document INTEGER NOT NULL REFERENCES documents (number) ON DELETE CASCADE,
    place TEXT NOT NULL,
    heading TEXT NOT NULL,
    text TEXT NOT NULL
) STRICT;
CREATE INDEX chunks_by_document ON chunks (document);
CREATE TABLE vectors (
    chunk INTEGER PRIMARY KEY REFERENCES chunks (number) ON DELETE CASCADE,
    vector BLOB NOT NULL
) STRICT;
CREATE VIRTUAL TABLE words USING fts5 (
    heading, body, content = '', tokenize = "porter unicode61 remove_diacritics 0"
);
"""

MIGRATIONS: tuple[Migration, ...] = (_VERSION_1,)

WordRow = tuple[int, str, str]


def word_row(number: int, name: str, heading: str, text: str) -> WordRow:
    """Return a chunk's row of the full-text index: number, heading and body."""
    return number, fold(f"{name} {heading}".strip()), fold(text)


def add_words(db: sqlite3.Connection, rows: Iterable[WordRow]) -> None:
    """Add rows to the full-text index."""
    db.executemany("INSERT INTO words (rowid, heading, body) VALUES (?, ?, ?)", rows)


def restore_words(db: sqlite3.Connection, _has_backup: bool) -> int:
    """Rebuild the full-text index of a salvaged file; see `Mend`."""
    found = db.execute(
        "SELECT c.number, d.name, c.heading, c.text FROM chunks AS c"
        " JOIN documents AS d ON d.number = c.document"
    )
    add_words(db, (word_row(*row) for row in found.fetchall()))
    return 0
