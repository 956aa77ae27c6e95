"""Limits drafts to the frequent part of a vocabulary, to save most of the output projection.

Tokenizers number tokens in the order of their merges, frequent ones first. A text in one language
uses few of Qwen3.5's 248,320 tokens, and the projection to all of them costs four times as much as
an MTP layer. Tokens beyond the limit are never drafted; the output stays the same, as the target
verifies with its whole vocabulary.

Source: FR-Spec (Zhao et al. 2025), section 4, which counts tokens in a corpus instead.
"""

from __future__ import annotations

from collections.abc import Sequence

_WINDOW = 1024  # recent tokens that are counted
_FEWEST = 64  # tokens of a text before it is limited
_BEYOND = 50  # one token of so many may be beyond the limit
_LEAST = 1 << 14
_JUDGED = 64  # change of the length after which a text is counted again


def frequent_columns(token_ids: Sequence[int], vocab_size: int) -> int:
    """Return how many first columns contain nearly all recent tokens of a text.

    Args:
        vocab_size: Size of the vocabulary.

    Returns:
        16,384 times a power of two; 0 if that is more than half of the vocabulary.
    """
    last = sorted(token_ids[-_WINDOW:])
    if len(last) < _FEWEST:
        return 0
    highest = last[len(last) - 1 - len(last) // _BEYOND]
    columns = _LEAST
    while columns <= highest:
        columns *= 2
    return columns if columns <= vocab_size // 2 else 0


class FrequentVocabulary:
    """`frequent_columns` of a growing text, recomputed now and then."""

    def __init__(self, vocab_size: int) -> None:
        """Start with an empty text.

        Args:
            vocab_size: Size of the vocabulary.
        """
        self._vocab_size = vocab_size
        self._columns = self._num_judged = 0

    def num_columns(self, token_ids: Sequence[int]) -> int:
        """Return how many first columns of a vocabulary contain the recent tokens of a text.

        Recomputed only when the text has grown by some tokens.
        """
        if abs(len(token_ids) - self._num_judged) >= _JUDGED:
            self._num_judged = len(token_ids)
            self._columns = frequent_columns(token_ids, self._vocab_size)
        return self._columns
