"""The tables, version by version. A version that was released is never changed."""

from __future__ import annotations

from medusa_core.system.storage.database import Migration

# Rows are in the order of their numbers, whatever the clock said. A message knows its parent only.
# Messages, steps and traces are never changed but by the end of an answer; they go with their
# conversation, when the trash is emptied.
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

MIGRATIONS: tuple[Migration, ...] = (_VERSION_1, _VERSION_2)
