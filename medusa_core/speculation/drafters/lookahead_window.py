"""The window of lookahead decoding: a Jacobi iteration at the next positions.

Each column is a position after the root, and has the last N − 1 tokens of the iteration, the oldest
first: token l of column j is at l + j + 1 positions after the root, as every step decides a token
and moves the root by one. It attends to the first tokens of the columns up to its own, then to its
own column, as in the paper's figure 4. That is a token tree: the first tokens are a chain after the
root, and the rest of each column is a branch from it. So the tree mask is also the window's.

The target's token after the last one of a column completes an n-gram; it is appended to the column,
and the first token is dropped. A step that decides several tokens also drops the columns that it
has passed. New columns have random tokens of the text.

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

_SEED = 0  # fixed, so that requests are reproducible


class LookaheadWindow:
    """Columns of tokens; see the module's docstring."""

    def __init__(self, levels: int) -> None:
        """Start empty, with N − 1 `levels` of tokens per column."""
        self._levels = levels
        self._columns: list[list[int]] = []
        self._random = random.Random(_SEED)

    def clear(self) -> None:
        """Drop all columns."""
        self._columns = []
        self._random = random.Random(_SEED)

    def fit(self, num_columns: int, text: Sequence[int]) -> None:
        """Change the number of columns; new ones get random tokens of a text."""
        del self._columns[num_columns:]
        while len(self._columns) < num_columns:
            self._columns.append(self._random.choices(text, k=self._levels))

    def rows(self, root_id: int) -> TokenTree:
        """The window as a tree under the root: all first tokens, then all second ones, ..."""
        by_level = zip(*self._columns, strict=True)
        guesses = (guess for level in by_level for guess in level)
        return TokenTree(_comb(len(self._columns), self._levels), (root_id, *guesses))

    def advance(self, best: Sequence[int]) -> list[tuple[int, ...]]:
        """Append the target's most likely tokens, in the order of `rows`.

        Returns:
            The completed n-grams, the nearest first.
        """
        found = []
        for column, latest in zip(self._columns, best[-len(self._columns) :], strict=True):
            found.append((*column, latest))
            column[:] = [*column[1:], latest]
        return found

    def drop(self, num_columns: int) -> None:
        """Drop the nearest columns, whose positions are decided."""
        del self._columns[:num_columns]


@lru_cache(maxsize=64)
def _comb(num_columns: int, levels: int) -> TreeShape:
    """A chain after the root with a branch at each of its nodes; each branch has `levels` nodes."""
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
