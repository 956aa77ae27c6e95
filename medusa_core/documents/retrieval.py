"""Passages for a prompt: all text of its collections while it fits, else what a search finds.

Passages stay in the prompt for which they were retrieved, so that the prompt of the next turn
begins with cached rows. So a passage of an earlier prompt isn't repeated.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from medusa_core.documents.collections import Collections
from medusa_core.documents.records import Embed, Passage
from medusa_core.errors import MedusaError, StorageError
from medusa_core.messages import PassagePart

log = logging.getLogger(__name__)

MOST_PASSAGES = 8
# Tokens have about four bytes in English, three in code and in scripts of three bytes a character.
_BYTES_PER_TOKEN = 3
_WHOLE_SHARE, _FOUND_SHARE = 1 / 3, 1 / 4  # of the context
_MOST_FOUND_TOKENS = 3_000  # more passages distract small models, and take seconds to prefill
_ANSWER_SHARE = 1 / 4
_SHORT_WORDS = 4  # a question such as “And in winter?” needs the one before it


class PassageRoom(NamedTuple):
    """Token budgets for the passages of a prompt.

    Attributes:
        whole: Budget if the whole text is quoted.
        found: Budget of the passages that a search returns.
    """

    whole: int
    found: int


def passage_room(context_tokens: int, conversation_bytes: int) -> PassageRoom:
    """Return the token budgets for passages, which leave room for the answer.

    Args:
        context_tokens: Context of the model.
        conversation_bytes: Length of the conversation with the prompt, in bytes.
    """
    used = conversation_bytes // _BYTES_PER_TOKEN
    left = max(0, int(context_tokens * (1 - _ANSWER_SHARE)) - used)
    found = min(_MOST_FOUND_TOKENS, int(context_tokens * _FOUND_SHARE))
    return PassageRoom(min(left, int(context_tokens * _WHOLE_SHARE)), min(left, found))


@dataclass(frozen=True, slots=True)
class Retrieved:
    """Passages for a prompt.

    Attributes:
        passages: Passages that the conversation doesn't have yet, in the order of their numbers.
        problem: Why the embedding model failed; None if it didn't, or none is chosen.
        has_known: Whether some results are passages that the conversation already has.
        are_removed: Whether all of the collections were removed.
    """

    passages: tuple[PassagePart, ...] = ()
    problem: MedusaError | None = None
    has_known: bool = False
    are_removed: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether the model reads nothing of the documents for the prompt."""
        return not self.passages and not self.has_known


def retrieve(
    collections: Collections,
    collection_ids: Iterable[str],
    questions: Sequence[str],
    known: Sequence[PassagePart],
    room: PassageRoom,
    embed: Embed | None = None,
    first_number: int = 1,
) -> Retrieved:
    """Return the passages for a prompt.

    Args:
        collections: All collections.
        collection_ids: Ids of the collections to read; removed ones are ignored.
        questions: The prompts of the conversation, oldest first; the last one is the query.
        known: Passages of earlier prompts that the model still reads, which aren't repeated.
        room: Tokens that the passages may take.
        embed: The embedding model; if it fails, words alone are searched.
        first_number: Number of the first passage.

    Raises:
        StorageError: The database can't be read.
    """
    ids = collections.existing(collection_ids)
    if not ids:
        return Retrieved(are_removed=True)
    whole = collections.whole_text(ids, room.whole * _BYTES_PER_TOKEN)
    if whole is not None:
        new = _new(whole, known)
        if _num_tokens(new) <= room.whole:
            has_known = len(new) < len(whole)
            return Retrieved(_numbered(new, first_number), has_known=has_known)
    found, problem = _search(collections, ids, _query(questions), embed)
    passages, left = [], room.found
    new = _new(found, known)
    has_known = len(new) < len(found)
    for one in new:
        left -= _num_tokens([one])
        if left < 0:
            break
        passages.append(one)
    return Retrieved(_numbered(passages, first_number), problem, has_known)


def _query(questions: Sequence[str]) -> str:
    """Return the last question, followed by the one before it if it is short.

    The last question comes first: a search shortens a long query.
    """
    num_words = len(questions[-1].split())
    asked = questions[-2:] if num_words <= _SHORT_WORDS else questions[-1:]
    return "\n".join(reversed(asked))


def _search(
    collections: Collections, ids: Sequence[str], query: str, embed: Embed | None
) -> tuple[tuple[Passage, ...], MedusaError | None]:
    """Search by words and vectors; by words alone if the embedding model fails."""
    try:
        return collections.search(ids, query, MOST_PASSAGES, embed), None
    except StorageError:
        raise
    except MedusaError as error:
        if embed is None:
            raise
        log.warning("the embedding model failed: %s", error)
        return collections.search(ids, query, MOST_PASSAGES), error


def _new(passages: Iterable[Passage], known: Iterable[PassagePart]) -> list[Passage]:
    """Return the passages that aren't known, each once.

    Keys aren't compared: all passages of a document get new ones when it is read again.
    """
    seen = {(one.document, one.text) for one in known}
    new = []
    for one in passages:
        if (one.document, one.text) not in seen:
            seen.add((one.document, one.text))
            new.append(one)
    return new


def _num_tokens(passages: Iterable[Passage]) -> int:
    """Estimate the tokens of passages, with their names and fences."""
    texts = (f"{one.document}{one.place}{one.text}" for one in passages)
    return sum(16 + len(text.encode("utf-8", "replace")) // _BYTES_PER_TOKEN for text in texts)


def _numbered(passages: Iterable[Passage], first_number: int) -> tuple[PassagePart, ...]:
    """Return passages of a prompt with the next numbers of the conversation."""
    return tuple(
        PassagePart(
            *(number, one.document, one.place, one.text, one.score, one.key, one.path),
            *(one.bm25_rank, one.vector_rank),
        )
        for number, one in enumerate(passages, first_number)
    )
