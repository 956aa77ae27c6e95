"""What a model said in earlier answers, at hand for drafts and kept for the next start.

An answer is learned after its end. Only answers of conversations that are kept are, so that it can
be forgotten with them.
"""

from __future__ import annotations

import logging
from array import array
from collections.abc import Sequence

from medusa_core.errors import MedusaError
from medusa_core.models.datastore.answer_texts import AnswerText, AnswerTexts
from medusa_core.models.datastore.store import Store
from medusa_core.models.datastore.suffix_array import DEPTH
from medusa_core.models.datastore.trust import Trust

log = logging.getLogger(__name__)

MOST_TOKENS = 1 << 19  # of one model: 4 MB in memory, 2 MB on disk; sorted in 0.15 s
_KEPT_SHARE = 7 / 8  # of them when the least used are dropped, so that this comes seldom


class EarlierAnswers:
    """The answers of one model.

    A file that can't be used costs speed alone: it is told in the log.

    Attributes:
        texts: The answers.
        trust: How likely what they say is to be said again.
    """

    def __init__(self, store: Store, vocab_size: int, most_tokens: int = MOST_TOKENS) -> None:
        """Begin with what the store keeps.

        Args:
            store: Where answers are kept.
            vocab_size: Tokens that the model knows.
            most_tokens: So many are kept.
        """
        self.texts = AnswerTexts()
        self.trust = Trust()
        self._store = store
        self._vocab_size = vocab_size
        self._most_tokens = most_tokens
        self._used: set[int] = set()
        self.refresh()

    def refresh(self) -> None:
        """Take in what other programs learned meanwhile, and forget what was forgotten."""
        try:
            if self._store.has_changed():
                self._read()
        except MedusaError as error:
            log.warning("what was learned can't be read: %s", error.message)

    def use(self, place: int) -> None:
        """What lies at a place of `texts` was drafted and right."""
        self._used.add(self.texts.answer_at(place))

    def learn(self, conversation_id: str, before: Sequence[int], token_ids: Sequence[int]) -> None:
        """Learn an answer.

        Args:
            conversation_id: The conversation that it is forgotten with.
            before: The tokens before it.
            token_ids: Its own.
        """
        context = before[-DEPTH:]
        text = array("i", [*context, *token_ids[: self._most_tokens // 2]])
        if not token_ids:
            return
        try:
            self._keep(conversation_id, len(context), text)
        except MedusaError as error:
            log.warning("an answer isn't learned: %s", error.message)

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    def _keep(self, conversation_id: str, start: int, text: array[int]) -> None:
        if self._used:
            used, self._used = self._used, set()
            self._store.use(used)
        number = self._store.add(conversation_id, start, text)
        if number is not None:
            self.texts.add([AnswerText(number, start, text)])
        too_many = len(self.texts.array) - self._most_tokens
        if too_many > 0:
            self._drop(too_many + round((1 - _KEPT_SHARE) * self._most_tokens))

    def _drop(self, num_tokens: int) -> None:
        gone = self._store.least_used(num_tokens)
        log.info("%d answers that were used least are dropped", len(gone))
        self._store.delete(gone)
        self.texts.remove(gone)

    def _read(self) -> None:
        too_many = self._store.num_tokens() - self._most_tokens
        if too_many > 0:  # a program that keeps more wrote it: it isn't read at all
            self._store.delete(self._store.least_used(too_many))
        there, known = self._store.numbers(), self.texts.numbers
        if gone := known - there:
            self.texts.remove(gone)
        self.texts.add(self._store.answers(known & there, self._vocab_size))
        self.texts.array.settle()
