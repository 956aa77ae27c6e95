"""How far into a vocabulary a text reaches, so that drafts needn't be sought in all of it.

Tokenizers number their pieces in the order in which they were merged, the frequent ones first. Of
Qwen3.5's 248,320 tokens a text in one language keeps to a part, and the projection to all of them
costs four times as much as the layer that guesses. What lies beyond isn't drafted; the text stays
the same, as the target verifies with all of its tokens.

Source: FR-Spec (Zhao et al. 2025), section 4, which counts tokens in a corpus instead.
"""

from __future__ import annotations

from collections.abc import Sequence

_WINDOW = 1024  # of the last tokens
_FEWEST = 64  # before a text has so many it isn't judged
_BEYOND = 50  # one token of so many may lie beyond
_LEAST = 1 << 14
_JUDGED = 64  # a text is looked at again when it is by so many tokens longer or shorter


def usual_columns(token_ids: Sequence[int], vocab_size: int, least: int = _LEAST) -> int:
    """How many of the first tokens nearly all of a text's last ones are among.

    Args:
        token_ids: The text.
        vocab_size: Of the target.
        least: Fewer aren't worth telling apart. A multiple of 32.

    Returns:
        `least` times a power of two; 0 where that isn't at most half of the vocabulary.
    """
    last = sorted(token_ids[-_WINDOW:])
    if len(last) < _FEWEST:
        return 0
    highest = last[len(last) - 1 - len(last) // _BEYOND]
    columns = least
    while columns <= highest:
        columns *= 2
    return columns if columns <= vocab_size // 2 else 0


class UsualColumns:
    """`usual_columns` of a text that grows."""

    def __init__(self, vocab_size: int) -> None:
        """Begin with a text of which nothing is known.

        Args:
            vocab_size: As `usual_columns` has it.
        """
        self._vocab_size = vocab_size
        self._columns = self._num_judged = 0

    def of(self, token_ids: Sequence[int]) -> int:
        """As many as there were when the text was looked at last, not long ago."""
        if abs(len(token_ids) - self._num_judged) >= _JUDGED:
            self._num_judged = len(token_ids)
            self._columns = usual_columns(token_ids, self._vocab_size)
        return self._columns
