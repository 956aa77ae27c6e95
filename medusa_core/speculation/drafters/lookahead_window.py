"""The window of lookahead decoding: guesses at the next places, made better step by step.

Each column is a place behind the root and holds the last N − 1 guesses of a Jacobi iteration, the
oldest first: guess l of column j stands l + j + 1 places behind the root, as every step decides one
token and so brings the root one place nearer. It sees the first guesses of the columns up to its
own, then its own column's, as in the paper's figure 4; and that is a token tree: the first guesses
are a chain below the root, and from each of them the rest of its column hangs. So the mask of
trees is the window's, and its rows need no other.

What the target says behind the last guess of a column completes an n-gram; it becomes the column's
last guess, and the first one leaves. A step that decides more tokens than one also drops the
columns that it has overtaken. New columns hold random tokens of the text.

Source: lookahead decoding (Fu et al. 2024), section 3.1 and algorithm 2.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache

from medusa_core.runtime.tree.shape import (
    TokenTree,
    TreeShape,
)

_SEED = 0  # the same request always rides the same rows


class LookaheadWindow:
    """Columns of guesses; see above."""

    def __init__(self, levels: int) -> None:
        """Hold so many guesses in each column: N − 1."""
        self._levels = levels
        self._columns: list[list[int]] = []
        self._chance = random.Random(_SEED)

    def clear(self) -> None:
        """Forget all guesses."""
        self._columns = []
        self._chance = random.Random(_SEED)

    def fit(self, num_columns: int, text: Sequence[int]) -> None:
        """Have so many columns; new ones hold random tokens of a text."""
        del self._columns[num_columns:]
        while len(self._columns) < num_columns:
            self._columns.append(self._chance.choices(text, k=self._levels))

    def rows(self, root_id: int) -> TokenTree:
        """The guesses as a tree under the root: all first ones, then all second ones, ..."""
        by_level = zip(*self._columns, strict=True)
        guesses = (guess for level in by_level for guess in level)
        return TokenTree(_comb(len(self._columns), self._levels), (root_id, *guesses))

    def advance(self, best: Sequence[int]) -> list[tuple[int, ...]]:
        """Take what the target says behind all guesses, in the order of `rows`.

        Returns:
            The n-grams that this completes, the nearest first.
        """
        found = []
        for column, latest in zip(self._columns, best[-len(self._columns) :], strict=True):
            found.append((*column, latest))
            column[:] = [*column[1:], latest]
        return found

    def drop(self, num_columns: int) -> None:
        """Drop the nearest columns, whose places are decided."""
        del self._columns[:num_columns]


@lru_cache(maxsize=64)
def _comb(num_columns: int, levels: int) -> TreeShape:
    """A chain below the root, and from each of its nodes another, `levels` nodes deep with it."""
    paths: list[tuple[int, ...]] = [()]
    parents = [-1]
    for level in range(levels):
        for column in range(num_columns):
            # The last tooth of the comb has no sibling in the chain.
            below = (1,) if column < num_columns - 1 else (0,)
            teeth = (*below, *(0,) * (level - 1)) if level else ()
            paths.append((*(0,) * (column + 1), *teeth))
            parents.append(len(parents) - num_columns if level else column)
    return TreeShape(tuple(paths), tuple(parents))
