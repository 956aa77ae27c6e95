"""What tables of a salvaged file say of each other, put right: texts must be found again."""

from __future__ import annotations

import sqlite3

from medusa_core.history.folding import fold

_RECOVERED = "Recovered conversation"

# Conversations whose row is lost.
_CONVERSATIONS = """
INSERT INTO conversations (number, id, title, created_s, changed_s, place)
SELECT conversation, 'recovered-' || conversation, ?, min(created_s), max(created_s), max(created_s)
FROM messages WHERE conversation NOT IN (SELECT number FROM conversations) GROUP BY conversation
"""
# A message whose parent is lost hangs under the one that came before it.
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
_MESSAGE_WORDS, _TITLE_WORDS = "message_words", "title_words"
_MESSAGE_TEXTS = """
SELECT number, text || coalesce((
    SELECT group_concat(char(10) || name, '') FROM attachments WHERE message = messages.number
), '') FROM messages
"""
_TITLES = "SELECT number, title FROM conversations"


def mend(db: sqlite3.Connection) -> None:
    """Put back what can be told from the rest, and index all words again."""
    db.execute(_CONVERSATIONS, (_RECOVERED,))
    for sql in (_PARENTS, _ANSWERS, _FOLDERS, _LEAVES):
        db.execute(sql)
    for index, texts in ((_MESSAGE_WORDS, _MESSAGE_TEXTS), (_TITLE_WORDS, _TITLES)):
        db.execute(f"DELETE FROM {index}")
        for number, text in db.execute(texts).fetchall():
            db.execute(f"INSERT INTO {index} (rowid, words) VALUES (?, ?)", (number, fold(text)))
