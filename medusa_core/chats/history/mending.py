"""Repair the relations between the tables of a salvaged database, and rebuild the index."""

from __future__ import annotations

import sqlite3

from medusa_core.chats.history.answer_rows import without_reasoning
from medusa_core.chats.history.folding import (
    fold,
    unfold,
)
from medusa_core.chats.history.packing import unpack_steps
from medusa_core.messages import shown_text

_RECOVERED = "Recovered conversation"

# Rows that only the backup has. SQLite reuses the numbers of deleted rows, so ids decide whether
# two rows are the same conversation or message. Drafts are left out: they may have been sent.
_FROM_BACKUP = (
    """
    INSERT OR IGNORE INTO conversations
    SELECT * FROM backup.conversations WHERE trashed_s IS NULL OR trashed_s >= 0
    """,
    """
    INSERT OR IGNORE INTO folders SELECT * FROM backup.folders
    WHERE number IN (SELECT folder FROM main.conversations)
    """,
    """
    INSERT OR IGNORE INTO messages
    SELECT old.* FROM backup.messages AS old
    JOIN backup.conversations AS theirs ON theirs.number = old.conversation
    JOIN main.conversations AS ours ON ours.number = theirs.number AND ours.id = theirs.id
    """,
    *(
        f"""
        INSERT OR IGNORE INTO {table}
        SELECT old.* FROM backup.{table} AS old
        JOIN backup.messages AS theirs ON theirs.number = old.message
        JOIN main.messages AS ours ON ours.number = theirs.number AND ours.id = theirs.id
        """
        for table in ("attachments", "answers", "steps", "calls", "passages")
    ),
    # An owner with a row has been changed since, or has an empty one for no collection.
    *(
        f"""
        INSERT INTO {owner}_collections ({owner}, collection)
        SELECT old.{owner}, old.collection FROM backup.{owner}_collections AS old
        JOIN backup.{owner}s AS theirs ON theirs.number = old.{owner}
        JOIN main.{owner}s AS ours ON ours.number = theirs.number AND ours.id = theirs.id
        WHERE old.{owner} NOT IN (SELECT {owner} FROM main.{owner}_collections)
        ORDER BY old.number
        """
        for owner in ("conversation", "folder")
    ),
    "INSERT OR IGNORE INTO blobs (digest, data) SELECT digest, data FROM backup.blobs",
    """
    INSERT OR IGNORE INTO images
    SELECT old.number, old.message, old.call, old.position, old.media_type, ours.number
    FROM backup.images AS old
    JOIN backup.blobs AS theirs ON theirs.number = old.blob
    JOIN main.blobs AS ours ON ours.digest = theirs.digest
    JOIN backup.messages AS asked ON asked.number = old.message
    JOIN main.messages AS kept ON kept.number = asked.number AND kept.id = asked.id
    """,
    # A complete text never changes: if they differ, the file's was damaged.
    """
    UPDATE messages SET text = old.text FROM backup.messages AS old
    WHERE old.number = messages.number AND old.id = messages.id
        AND old.text <> messages.text AND old.text <> ''
        AND (SELECT state FROM backup.answers WHERE message = old.number)
            IS (SELECT state FROM main.answers WHERE message = old.number)
    """,
    """
    UPDATE blobs SET data = old.data FROM backup.blobs AS old
    WHERE old.digest = blobs.digest AND old.data <> blobs.data
    """,
)
# An answer that was unfinished at the time of the backup: its steps may have more text.
_UNFINISHED = """
UPDATE answers SET state = 'streaming' WHERE message IN (
    SELECT number FROM messages WHERE text = '' AND number IN (SELECT message FROM steps)
)
"""
# Conversations whose row is lost.
_CONVERSATIONS = """
INSERT INTO conversations (number, id, title, created_s, changed_s, place)
SELECT conversation, 'recovered-' || conversation,
    coalesce((SELECT unfold(c0) FROM title_words_content WHERE id = conversation), ?),
    min(created_s), max(created_s), max(created_s)
FROM messages WHERE conversation NOT IN (SELECT number FROM conversations) GROUP BY conversation
"""
# The parent of a message whose parent is lost is the message before it.
_PARENTS = """
UPDATE messages SET parent = (
    SELECT max(other.number) FROM messages AS other
    WHERE other.conversation = messages.conversation AND other.number < messages.number
)
WHERE parent IS NOT NULL AND parent NOT IN (SELECT number FROM messages)
"""
_ANSWERS = """
INSERT INTO answers (message, model, model_key, state, settings)
SELECT number, '', '', CASE text WHEN '' THEN 'streaming' ELSE 'cut' END, '{}' FROM messages
WHERE role = 'assistant' AND number NOT IN (SELECT message FROM answers)
"""
_FOLDERS = """
UPDATE conversations SET folder = NULL WHERE folder NOT IN (SELECT number FROM folders)
"""
_LEAVES = """
UPDATE conversations SET
    num_messages = (SELECT count(*) FROM messages WHERE conversation = conversations.number),
    leaf = (
        SELECT coalesce(
            max(CASE number WHEN conversations.leaf THEN number END), max(number)
        ) FROM messages WHERE conversation = conversations.number
    )
"""
_LOST = """
SELECT message FROM steps UNION SELECT message FROM answers
UNION SELECT id FROM message_words_content
EXCEPT SELECT number FROM messages ORDER BY 1
"""
_NEIGHBOUR = """
SELECT conversation, created_s FROM messages
WHERE number = coalesce(
    (SELECT max(number) FROM messages WHERE number < :number),
    (SELECT min(number) FROM messages WHERE number > :number)
)
"""
_RESTORE = """
INSERT INTO messages (number, id, conversation, parent, role, text, created_s)
SELECT :number, 'recovered-' || :number, :conversation, max(number), :role, :text, :created_s
FROM messages WHERE conversation = :conversation AND number < :number
"""
_TEXTS = """
INSERT INTO message_words_content (id, c0)
SELECT number, fold(without_reasoning(
    text, role, (SELECT spans FROM answers WHERE message = messages.number)
) || coalesce((
    SELECT group_concat(char(10) || name, '') FROM attachments WHERE message = messages.number
), '')) FROM messages
"""
_INDEX = (
    "DELETE FROM message_words_content",
    _TEXTS,
    "INSERT INTO message_words (message_words) VALUES ('rebuild')",
    "DELETE FROM title_words_content",
    "INSERT INTO title_words_content (id, c0) SELECT number, fold(title) FROM conversations",
    "INSERT INTO title_words (title_words) VALUES ('rebuild')",
)


def mend(db: sqlite3.Connection, has_backup: bool) -> int:
    """Restore rows from the backup and from other tables, and rebuild the search index.

    Args:
        db: The salvaged database.
        has_backup: Whether the backup is attached as `backup`.

    Returns:
        Number of rows from the backup.
    """
    num_rows = 0
    if has_backup:
        num_rows = sum(db.execute(sql).rowcount for sql in _FROM_BACKUP)
        db.execute(_UNFINISHED)
    _restore_messages(db)
    db.create_function("fold", 1, fold, deterministic=True)
    db.create_function("without_reasoning", 3, without_reasoning, deterministic=True)
    db.create_function("unfold", 1, unfold, deterministic=True)
    db.execute(_CONVERSATIONS, (_RECOVERED,))
    for sql in (_PARENTS, _ANSWERS, _FOLDERS, _LEAVES):
        db.execute(sql)
    for sql in _INDEX:
        db.execute(sql)
    return num_rows


def _restore_messages(db: sqlite3.Connection) -> None:
    """Restore messages whose row is lost: answers from their steps, prompts from the index.

    The index has neither capitals nor accents; that is better than nothing.
    """
    for (number,) in db.execute(_LOST).fetchall():
        neighbour = db.execute(_NEIGHBOUR, {"number": number}).fetchone()
        if neighbour is None:
            continue
        steps = db.execute("SELECT packed FROM steps WHERE message = ? ORDER BY number", (number,))
        text = shown_text(unpack_steps(pack for (pack,) in steps))
        answers = db.execute("SELECT 1 FROM answers WHERE message = ?", (number,)).fetchone()
        values = {
            "number": number,
            "conversation": neighbour[0],
            "created_s": neighbour[1],
            "role": "assistant" if answers else "user",
            "text": text or _indexed(db, number),
        }
        if values["text"]:
            db.execute(_RESTORE, values)


def _indexed(db: sqlite3.Connection, number: int) -> str:
    """Return a message's text in the index, without the names of its attachments."""
    words = db.execute("SELECT c0 FROM message_words_content WHERE id = ?", (number,)).fetchone()
    if words is None or not isinstance(words[0], str):
        return ""
    names = db.execute("SELECT name FROM attachments WHERE message = ? ORDER BY number", (number,))
    return unfold(words[0].removesuffix("".join(f"\n{fold(name)}" for (name,) in names)))
