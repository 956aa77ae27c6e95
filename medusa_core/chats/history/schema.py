"""The database schema by version. A released version is never changed."""

from __future__ import annotations

import sqlite3

from medusa_core.chats.answer_text import find_spans
from medusa_core.chats.history.answer_rows import spans_text
from medusa_core.chats.history.old_answers import began_inside
from medusa_core.chats.history.packing import unpack_steps
from medusa_core.messages import THINK_TAGS
from medusa_core.system.storage.database import Migration

# Rows are ordered by their numbers, since the clock may be set back. Messages, steps and traces
# never change after the end of an answer; they are deleted with their conversation when the trash
# is emptied.
_VERSION_1 = """
CREATE TABLE folders (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL
) STRICT;
CREATE TABLE conversations (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    has_own_title INTEGER NOT NULL DEFAULT 0,
    folder INTEGER REFERENCES folders (number) ON DELETE SET NULL,
    is_pinned INTEGER NOT NULL DEFAULT 0,
    created_s REAL NOT NULL,
    changed_s REAL NOT NULL,
    place REAL NOT NULL,
    trashed_s REAL,
    leaf INTEGER,
    num_messages INTEGER NOT NULL DEFAULT 0,
    settings TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX conversations_by_place ON conversations (place);
CREATE INDEX conversations_by_folder ON conversations (folder);
CREATE TABLE messages (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    conversation INTEGER NOT NULL REFERENCES conversations (number) ON DELETE CASCADE,
    parent INTEGER REFERENCES messages (number),
    role TEXT NOT NULL CHECK (role IN ('system', 'user', 'assistant')),
    text TEXT NOT NULL,
    created_s REAL NOT NULL
) STRICT;
CREATE INDEX messages_by_conversation ON messages (conversation);
CREATE INDEX messages_by_parent ON messages (parent);
CREATE TABLE attachments (
    number INTEGER PRIMARY KEY,
    message INTEGER NOT NULL REFERENCES messages (number) ON DELETE CASCADE,
    name TEXT NOT NULL,
    media_type TEXT NOT NULL,
    text TEXT NOT NULL,
    num_bytes INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX attachments_by_message ON attachments (message);
CREATE TABLE answers (
    message INTEGER PRIMARY KEY REFERENCES messages (number) ON DELETE CASCADE,
    model TEXT NOT NULL,
    model_key TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('streaming', 'done', 'cut', 'failed')),
    settings TEXT NOT NULL,
    done TEXT
) STRICT;
CREATE INDEX answers_under_way ON answers (message) WHERE state = 'streaming';
CREATE TABLE steps (
    number INTEGER PRIMARY KEY,
    message INTEGER NOT NULL REFERENCES messages (number) ON DELETE CASCADE,
    packed BLOB NOT NULL
) STRICT;
CREATE INDEX steps_by_message ON steps (message);
CREATE TABLE traces (
    number INTEGER PRIMARY KEY,
    message INTEGER NOT NULL UNIQUE REFERENCES messages (number) ON DELETE CASCADE,
    num_bytes INTEGER NOT NULL,
    packed BLOB NOT NULL
) STRICT;
CREATE INDEX traces_by_size ON traces (num_bytes);
CREATE TABLE drafts (
    conversation_id TEXT NOT NULL UNIQUE,
    text TEXT NOT NULL
) STRICT;
CREATE VIRTUAL TABLE message_words USING fts5 (
    words, tokenize = "unicode61 remove_diacritics 0", prefix = '1 2 3'
);
CREATE VIRTUAL TABLE title_words USING fts5 (
    words, tokenize = "unicode61 remove_diacritics 0", prefix = '1 2 3'
);
"""

_VERSION_2 = """
CREATE TABLE draft_files (
    number INTEGER PRIMARY KEY,
    conversation_id TEXT NOT NULL,
    name TEXT NOT NULL,
    media_type TEXT NOT NULL,
    text TEXT NOT NULL,
    num_bytes INTEGER NOT NULL
) STRICT;
CREATE INDEX draft_files_by_conversation ON draft_files (conversation_id);
"""

# Spans and format of reasoning are JSON; both are NULL in older answers.
_REASONING_COLUMNS = (
    "begins_inside INTEGER NOT NULL DEFAULT 0",
    "reasoning TEXT",
    "spans TEXT",
)


def _version_3(db: sqlite3.Connection) -> None:
    """Add columns for reasoning, and detect answers that began within it."""
    for column in _REASONING_COLUMNS:
        db.execute(f"ALTER TABLE answers ADD COLUMN {column}")
    found = db.execute(
        "SELECT m.number, m.text, a.settings FROM answers AS a"
        " JOIN messages AS m ON m.number = a.message WHERE instr(m.text, ?) > 0",
        (THINK_TAGS.end,),
    ).fetchall()
    for number, text, settings in found:
        packs = db.execute("SELECT packed FROM steps WHERE message = ? ORDER BY number", (number,))
        steps = unpack_steps(pack for (pack,) in packs)
        if began_inside(text, settings, steps):
            spans = spans_text(find_spans((), text, THINK_TAGS, begins_inside=True))
            db.execute(
                "UPDATE answers SET begins_inside = 1, spans = ? WHERE message = ?", (spans, number)
            )


# A later round of an answer is a message whose parent is the round before. An image belongs to a
# prompt, or to the result of a call if `call` (its place) isn't NULL; `position` is the number of
# characters of the text before it.
_VERSION_4 = """
CREATE TABLE calls (
    number INTEGER PRIMARY KEY,
    message INTEGER NOT NULL REFERENCES messages (number) ON DELETE CASCADE,
    place INTEGER NOT NULL,
    call_id TEXT NOT NULL,
    name TEXT NOT NULL,
    arguments TEXT NOT NULL,
    state TEXT NOT NULL,
    approval TEXT NOT NULL,
    result TEXT,
    is_error INTEGER NOT NULL DEFAULT 0,
    duration_s REAL NOT NULL DEFAULT 0,
    UNIQUE (message, place)
) STRICT;
CREATE INDEX calls_under_way ON calls (message) WHERE state IN ('approved', 'running');
CREATE TABLE blobs (
    number INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    data BLOB NOT NULL
) STRICT;
CREATE TABLE images (
    number INTEGER PRIMARY KEY,
    message INTEGER NOT NULL REFERENCES messages (number) ON DELETE CASCADE,
    call INTEGER,
    position INTEGER NOT NULL,
    media_type TEXT NOT NULL,
    blob INTEGER NOT NULL REFERENCES blobs (number)
) STRICT;
CREATE INDEX images_by_message ON images (message);
CREATE INDEX images_by_blob ON images (blob);
"""

# A passage of a document, as it was read for a prompt; `cited_as` is its number in answers. Search
# doesn't index it. Collections are those of `medusa_core/documents`.
_VERSION_5 = """
CREATE TABLE passages (
    number INTEGER PRIMARY KEY,
    message INTEGER NOT NULL REFERENCES messages (number) ON DELETE CASCADE,
    cited_as INTEGER NOT NULL,
    document TEXT NOT NULL,
    place TEXT NOT NULL,
    text TEXT NOT NULL,
    score REAL NOT NULL,
    chunk TEXT NOT NULL,
    path TEXT NOT NULL,
    bm25_rank INTEGER,
    vector_rank INTEGER
) STRICT;
CREATE INDEX passages_by_message ON passages (message);
CREATE TABLE conversation_collections (
    number INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES conversations (number) ON DELETE CASCADE,
    collection TEXT NOT NULL,
    UNIQUE (conversation, collection)
) STRICT;
CREATE TABLE folder_collections (
    number INTEGER PRIMARY KEY,
    folder INTEGER NOT NULL REFERENCES folders (number) ON DELETE CASCADE,
    collection TEXT NOT NULL,
    UNIQUE (folder, collection)
) STRICT;
"""

MIGRATIONS: tuple[Migration, ...] = (_VERSION_1, _VERSION_2, _version_3, _VERSION_4, _VERSION_5)
