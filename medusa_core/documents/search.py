"""Search passages by words (BM25) and by vectors, and merge both rankings."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from medusa_core.chats.history.folding import fold
from medusa_core.documents.records import Embed, Passage
from medusa_core.documents.store import DocumentStore
from medusa_core.i18n import text_from_json
from medusa_core.system.storage.database import SqlRow

_WORD = re.compile(r"[^\W_]+")
_MOST_WORDS = 64
_MOST_CHARS = 4000
_CANDIDATES = 50  # of each ranking
_MOST_BYTES = 256 << 20  # of vectors in float32
_BLOCK = 16_384  # vectors of a matrix product
# Fitted by `tests.benchmarks.retrieval` to the FAQ of Python and confirmed by those of other
# programs. With the usual 60, a chunk that both rankings have in the middle would precede the first
# one of either.
_RRF_K = 2
# Questions are full of these words and documents are not, so that BM25 would overrate them. German
# ones that have a meaning in English, such as `die` and `man`, aren't here.
_FUNCTION_WORDS = frozenset({
    "a", "about", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but",
    "by", "can", "could", "did", "do", "does", "doing", "for", "from", "had", "has", "have", "he",
    "her", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "me", "my",
    "no", "not", "of", "on", "or", "our", "she", "should", "so", "some", "such", "than", "that",
    "the", "their", "them", "then", "there", "these", "they", "this", "those", "to", "us", "was",
    "we", "were", "what", "when", "where", "which", "who", "whom", "why", "will", "with", "would",
    "you", "your",
    "aber", "als", "auch", "auf", "aus", "bei", "das", "dass", "dein", "dem", "den", "der",
    "des", "dir", "du", "ein", "eine", "einem", "einen", "einer", "eines", "er", "es",
    "für", "ich", "ihr", "im", "ist", "ja", "kann", "mein", "mich", "mir", "mit",
    "nach", "nicht", "oder", "sein", "sich", "sie", "sind", "über", "um", "und", "uns", "von",
    "vom", "vor", "warum", "welche", "welcher", "wenn", "wer", "werden", "wie", "wieso",
    "wir", "wird", "wo", "zu", "zum", "zur",
})  # fmt: skip

# CROSS JOIN fixes the join order: full-text index first. FTS5 fixes k1 of BM25 at 1.2, but
# the columns' weights divide it: in chunks as short as these, a repeated word means little, and
# every chunk of a section repeats its heading.
_BM25 = """
    SELECT w.rowid FROM words AS w CROSS JOIN chunks AS c ON c.number = w.rowid
    CROSS JOIN documents AS d ON d.number = c.document
    WHERE words MATCH ? AND d.collection IN ({}) ORDER BY bm25(words, 1, 2), w.rowid LIMIT ?
"""
_VECTORS = """
    SELECT v.chunk, v.vector FROM documents AS d JOIN chunks AS c ON c.document = d.number
    JOIN vectors AS v ON v.chunk = c.number WHERE d.collection IN ({})
"""
PASSAGE = """
    SELECT l.id, d.number, c.number, d.name, d.path, c.place, c.text FROM chunks AS c
    JOIN documents AS d ON d.number = c.document JOIN collections AS l ON l.number = d.collection
"""


class Searcher:
    """Searches the chunks of collections; keeps the vectors that it searched last."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store
        self._last: tuple[object, Vectors] | None = None

    def search(
        self, collection_ids: Sequence[str], query: str, limit: int, embed: Embed | None
    ) -> tuple[Passage, ...]:
        """Search; see `Collections.search`."""
        query = _shortened(query)
        numbers = [self._store.collection(name) for name in dict.fromkeys(collection_ids)]
        words = as_query(query)
        by_words = self._by_words(numbers, words) if words and numbers else []
        by_vectors: list[int] = []
        if embed is not None and query.strip() and numbers:
            vectors = self._vectors_of(numbers, embed.name)
            if len(vectors.chunks):
                by_vectors = vectors.nearest(embed([query], True)[0], _CANDIDATES)
        return self._passages(by_words, by_vectors, limit)

    def _by_words(self, collections: Sequence[int], words: str) -> list[int]:
        """Return the numbers of the best chunks by BM25."""
        sql = _BM25.format(_places(collections))
        found = self._store.rows(sql, words, *collections, _CANDIDATES)
        return [number for (number,) in found]

    def _vectors_of(self, collections: Sequence[int], model: str) -> Vectors:
        """Return the vectors of those collections that were embedded by a model."""
        key = (tuple(collections), model, self._store.version())
        last = self._last  # another thread may replace it
        if last is None or last[0] != key:
            embedded = [
                number
                for (number,) in self._store.rows(
                    f"SELECT number FROM collections WHERE number IN ({_places(collections)})"
                    " AND embedding_model = ?",
                    *(*collections, model),
                )
            ]
            sql = _VECTORS.format(_places(embedded))
            last = self._last = (key, Vectors(self._store.rows(sql, *embedded)))
        return last[1]

    def _passages(
        self, by_words: Sequence[int], by_vectors: Sequence[int], limit: int
    ) -> tuple[Passage, ...]:
        """Merge two rankings by reciprocal rank, and read the best chunks."""
        word_ranks = {number: rank for rank, number in enumerate(by_words, 1)}
        vector_ranks = {number: rank for rank, number in enumerate(by_vectors, 1)}
        scores = {
            number: sum(
                1 / (_RRF_K + ranks[number])
                for ranks in (word_ranks, vector_ranks)
                if number in ranks
            )
            for number in [*word_ranks, *vector_ranks]
        }
        best = sorted(scores, key=lambda number: (-scores[number], number))[:limit]
        rows = {
            row[2]: row
            for row in self._store.rows(f"{PASSAGE} WHERE c.number IN ({_places(best)})", *best)
        }
        return tuple(
            as_passage(
                rows[number], scores[number], word_ranks.get(number), vector_ranks.get(number)
            )
            for number in best
            if number in rows
        )


class Vectors:
    """Vectors of chunks, in float32, or in float16 if they would take too much memory.

    Attributes:
        chunks: Numbers of the chunks. [n]
    """

    def __init__(self, rows: Sequence[SqlRow]) -> None:
        """Unpack rows of chunk number and vector, except those of another length than the first."""
        size = len(rows[0][1]) if rows else 0
        sound = [row for row in rows if size and len(row[1]) == size]
        packed = np.frombuffer(b"".join([vector for _, vector in sound]), np.float16)
        matrix = packed.reshape(len(sound), size // 2)
        self.chunks = np.array([number for number, _ in sound], np.int64)
        self._matrix: NDArray[np.float32] | NDArray[np.float16] = matrix
        if 2 * packed.nbytes <= _MOST_BYTES:
            self._matrix = matrix.astype(np.float32)

    def nearest(self, query: NDArray[np.float32], limit: int) -> list[int]:
        """Return the numbers of the chunks with the largest dot products, the best first."""
        if query.shape != self._matrix.shape[1:]:
            return []
        parts = (self._matrix[at : at + _BLOCK] for at in range(0, len(self.chunks), _BLOCK))
        scores = np.concatenate([part.astype(np.float32, copy=False) @ query for part in parts])
        most = min(limit, len(scores))
        best = np.argpartition(-scores, most - 1)[:most]
        found: list[int] = self.chunks[
            best[np.lexsort((self.chunks[best], -scores[best]))]
        ].tolist()
        return found


def _shortened(query: str) -> str:
    """Return both ends of a long query: the question comes before or after a pasted text."""
    half = _MOST_CHARS // 2
    return query if len(query) <= _MOST_CHARS else f"{query[:half]}\n{query[-half:]}"


def as_query(text: str) -> str:
    """Return an FTS5 query for any word of a text but function words; empty if it has none.

    In scripts without spaces, words are pairs of characters.
    """
    terms: dict[str, None] = {}
    words = _WORD.findall(unicodedata.normalize("NFC", text))
    for word in [word for word in words if word.lower() not in _FUNCTION_WORDS] or words:
        parts = fold(word).split()
        terms |= dict.fromkeys(part for part in parts if len(parts) == 1 or len(part) > 1)
        terms |= dict.fromkeys(f"{first} {second}" for first, second in pairwise(parts))
    half = _MOST_WORDS // 2
    all_terms = list(terms)
    chosen = [*all_terms[:half], *all_terms[half:][-half:]]
    quoted = (term.replace('"', '""') for term in chosen)
    return " OR ".join(f'"{term}"' for term in quoted)


def as_passage(
    row: SqlRow,
    score: float = 0.0,
    bm25_rank: int | None = None,
    vector_rank: int | None = None,
) -> Passage:
    """Return a row of `PASSAGE` as a passage."""
    collection_id, document, chunk, name, path, place, text = row
    shown = text_from_json(json.loads(place)) if place else ""
    key = f"{collection_id}/{document}/{chunk}"
    return Passage(name, path, shown, text, score, bm25_rank, vector_rank, key)


def _places(values: Sequence[object]) -> str:
    """Return SQL placeholders for values."""
    return ", ".join("?" * len(values))
