"""Full-text search in all conversations."""

from __future__ import annotations

from collections.abc import Iterator

from medusa_core.chats.history.answer_rows import without_reasoning
from medusa_core.chats.history.folding import (
    as_query,
    fold,
    snippet,
    words_of,
)
from medusa_core.chats.history.part import (
    HistoryPart,
    clean,
)
from medusa_core.chats.history.records import SearchHit
from medusa_core.system.storage.database import SqlRow

_MOST_PER_CONVERSATION = 3  # a long one mustn't hide the others
_MOST_CHARS = 200
_MOST_SCANNED = 25_000  # messages that are scanned for inner parts of words: 40 ms

# CROSS JOIN fixes the join order: the index comes first, so that rows are ordered and reading can
# stop at the limit.
_TITLES = """
    SELECT c.id, '', c.title, c.title, NULL, NULL
    FROM title_words AS w CROSS JOIN conversations AS c ON c.number = w.rowid
    WHERE {} AND c.trashed_s IS NULL ORDER BY w.rowid DESC
"""
_MESSAGES = """
    SELECT c.id, m.id, c.title, m.text, m.role, a.spans
    FROM message_words AS w CROSS JOIN messages AS m ON m.number = w.rowid
    CROSS JOIN conversations AS c ON c.number = m.conversation
    LEFT JOIN answers AS a ON a.message = m.number
    WHERE {} AND c.trashed_s IS NULL ORDER BY w.rowid DESC
"""


class Search(HistoryPart):
    """The part of the history that searches titles and messages."""

    def search(self, text: str, limit: int = 50) -> tuple[SearchHit, ...]:
        """Find titles and messages with all words: titles first, then the newest messages.

        Words match by prefix, without case and accents; in scripts without spaces by any part. If
        that finds too little, inner parts of words are searched in the newest messages, too. Trash
        and reasoning are not searched.

        Args:
            text: The query.
            limit: Most results.

        Raises:
            StorageError: The history can't be read.
        """
        parts = words_of(clean(text[:_MOST_CHARS]))
        if not parts:
            return ()
        hits: dict[tuple[str, str], SearchHit] = {}
        counts: dict[str, int] = {}
        for conversation_id, message_id, title, text, role, spans in self._found(parts):
            key = (conversation_id, message_id)
            if key in hits or counts.get(conversation_id, 0) >= _MOST_PER_CONVERSATION:
                continue
            found = without_reasoning(text, role, spans)
            # The index of old answers includes their reasoning.
            if found != text and not all(part in fold(found) for part in parts):
                continue
            counts[conversation_id] = counts.get(conversation_id, 0) + 1
            hits[key] = SearchHit(conversation_id, message_id, title, *snippet(found, parts))
            if len(hits) >= limit:
                break
        return tuple(hits.values())

    def _found(self, parts: list[str]) -> Iterator[SqlRow]:
        """Yield conversation, message, title, text, role and spans of all matches, best first."""
        each = self._database.each
        if query := as_query(parts):
            yield from each(_TITLES.format("title_words MATCH ?"), query)
            yield from each(_MESSAGES.format("message_words MATCH ?"), query)
        holds = " AND ".join(["w.rowid > ?", *["instr(w.words, ?)"] * len(parts)])
        newest = self._database.row("SELECT coalesce(max(number), 0) FROM messages") or (0,)
        yield from each(_TITLES.format(holds), 0, *parts)
        yield from each(_MESSAGES.format(holds), newest[0] - _MOST_SCANNED, *parts)
