"""A model's earlier answers, from which drafts are retrieved.

Answers are added after their end, and only those of saved conversations, so that they can be
deleted with them.
"""

from __future__ import annotations

import logging
from array import array
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from medusa_core.errors import MedusaError
from medusa_core.models.datastore.folder import own_table_dir
from medusa_core.models.datastore.follower_stats import FollowerStats
from medusa_core.models.datastore.store import AnswerStore, AnswerText
from medusa_core.models.datastore.suffix_array import DEPTH, SuffixArray

log = logging.getLogger(__name__)

MAX_TOKENS = 1 << 19  # per model: 4 MB in memory, 2 MB on disk; sorted in 0.15 s
_DROPPED_SHARE = 1 / 8  # dropped in addition when there are too many, so that this is rare


class AnswerTexts:
    """Answers in one suffix array.

    Attributes:
        array: All texts.
    """

    def __init__(self) -> None:
        self.array = SuffixArray()
        self._answers: list[tuple[int, int, int]] = []  # number, start, position of the first token

    @property
    def numbers(self) -> frozenset[int]:
        """Keys of the answers."""
        return frozenset(number for number, _, _ in self._answers)

    def add(self, answers: Iterable[AnswerText]) -> None:
        """Append answers."""
        for number, start, token_ids in answers:
            self.array.add_text(token_ids, start)
            self._answers.append((number, start, len(self.array) - len(token_ids)))

    def remove(self, numbers: Collection[int]) -> None:
        """Remove answers by their keys and rebuild the suffix array."""
        old, answers = self.array, self._answers
        ends = [*(begin - 1 for _, _, begin in answers[1:]), len(old)]
        self.array, self._answers = SuffixArray(), []
        for (number, start, begin), end in zip(answers, ends, strict=True):
            if number not in numbers:
                self.add([AnswerText(number, start, old.tokens(begin, end))])

    def answer_at(self, position: int) -> int:
        """Return the key of the answer that contains a position of the suffix array."""
        return self._answers[bisect_right(self._answers, position, key=lambda one: one[2]) - 1][0]


class EarlierAnswers:
    """The earlier answers of one model.

    Errors of the database are only logged: without it drafts are worse, but answers are correct.

    Attributes:
        texts: The answers.
        stats: Acceptance statistics of drafts from them.
    """

    def __init__(self, store: AnswerStore, vocab_size: int, max_tokens: int = MAX_TOKENS) -> None:
        """Read the stored answers.

        Args:
            store: The database.
            vocab_size: Size of the model's vocabulary.
            max_tokens: Number of tokens that are kept.
        """
        self.texts = AnswerTexts()
        self.stats = FollowerStats()
        self._store = store
        self._vocab_size = vocab_size
        self._max_tokens = max_tokens
        self._used: set[int] = set()
        self.refresh()

    @property
    def table_dir(self) -> Path:
        """Folder of the phrase table of the model's answers to bundled prompts."""
        return own_table_dir(self._store.path.parent, self._store.path.stem)

    def refresh(self) -> None:
        """Add and remove answers that other processes added or removed."""
        try:
            if self._store.has_changed():
                self._read()
        except MedusaError as error:
            log.warning("can't read earlier answers: %s", error.message)

    def use(self, position: int) -> None:
        """Note that a draft from a position of `texts` was accepted."""
        self._used.add(self.texts.answer_at(position))

    def learn(
        self, conversation_id: str, prompt_ids: Sequence[int], token_ids: Sequence[int]
    ) -> None:
        """Add an answer.

        Args:
            conversation_id: Its conversation, with which it is deleted.
            prompt_ids: Tokens before the answer.
            token_ids: Tokens of the answer.
        """
        context = prompt_ids[-DEPTH:]
        text = array("i", [*context, *token_ids[: self._max_tokens // 2]])
        if not token_ids:
            return
        try:
            self._add(conversation_id, len(context), text)
        except MedusaError as error:
            log.warning("can't store an answer for drafting: %s", error.message)

    def close(self) -> None:
        """Close the database."""
        self._store.close()

    def _add(self, conversation_id: str, start: int, text: array[int]) -> None:
        """Store an answer, index it, and drop old ones if there are too many tokens."""
        if self._used:
            used, self._used = self._used, set()
            self._store.use(used)
        number = self._store.add(conversation_id, start, text)
        if number is not None:
            self.texts.add([AnswerText(number, start, text)])
        too_many = len(self.texts.array) - self._max_tokens
        if too_many > 0:
            self._drop(too_many + round(_DROPPED_SHARE * self._max_tokens))

    def _drop(self, num_tokens: int) -> None:
        """Delete the least recently used answers with at least `num_tokens` together."""
        dropped = self._store.least_used(num_tokens)
        log.info("dropping %d answers that were used least recently", len(dropped))
        self._store.delete(dropped)
        self.texts.remove(dropped)

    def _read(self) -> None:
        """Synchronize the index with the database."""
        too_many = self._store.num_tokens() - self._max_tokens
        if too_many > 0:  # written by a version that keeps more: too large to be read
            self._store.delete(self._store.least_used(too_many))
        stored, known = self._store.numbers(), self.texts.numbers
        if deleted := known - stored:
            self.texts.remove(deleted)
        self.texts.add(self._store.answers(known & stored, self._vocab_size))
        self.texts.array.sort_new()
