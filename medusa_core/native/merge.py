"""Merges heads' guesses and what followed the same words before, compiled where that is at hand.

Source: REST (He et al. 2024), section 3, for the trie of continuations.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Sequence
from ctypes import addressof, c_int32
from dataclasses import dataclass
from typing import NamedTuple

from medusa_core.native.grow import MOST_GROWN
from medusa_core.native.library import native_library
from medusa_core.tree.lookup import DEEPEST, continuations
from medusa_core.tree.search import grow

BY_HEADS, BY_LOOKUP, BY_BOTH = range(3)  # as in merge.h
_BYTES = 4


class Guesses(NamedTuple):
    """What the heads guess, of each as many; head after head, each head's best first.

    Attributes:
        token_ids: The tokens; int32.
        chances: How likely each is; float32.
        num_ranks: How many there are of each head.
    """

    token_ids: array[int]
    chances: array[float]
    num_ranks: int


NO_GUESSES = Guesses(array("i"), array("f"), 1)


class Merged(NamedTuple):
    """The most valuable nodes of both under one root.

    Attributes:
        form: How many children each node has, nodes by depth and siblings by what they are worth;
            then who proposed each: `BY_HEADS`, `BY_LOOKUP` or `BY_BOTH`. int32, [2, nodes]
        token_ids: The drafts' tokens.
        places: Where each draft stands among all guesses; −1 where it is none of them.
        suffix: Tokens of the suffix whose continuation was found first; 0 where none was.
        offered: That one's first token.
    """

    form: bytes
    token_ids: Sequence[int]
    places: Sequence[int]
    suffix: int
    offered: int


# Of what the heads guess; of the text so far, its last token the root; of how likely the first
# tokens behind suffixes are right, as `continuations` has it; and of the rows to fill.
Merge = Callable[[Guesses, "array[int]", "array[float]", int], Merged]


def merger(num_rows: int) -> Merge:
    """What merges into trees of at most so many rows fastest; for one thread."""
    library = native_library()
    return search if library is None or num_rows > MOST_GROWN else _Compiled(library, num_rows)


class _Compiled:
    """Merges in one call."""

    def __init__(self, library: ctypes.CDLL, num_rows: int) -> None:
        self._merge = library.merge
        self._told = (c_int32 * (4 * num_rows))()
        self._offered = (c_int32 * 2)()
        self._view = memoryview(self._told).cast("B")
        self._addresses = addressof(self._told), addressof(self._offered)

    def __call__(
        self, guesses: Guesses, text: array[int], trust: array[float], num_rows: int
    ) -> Merged:
        token_ids, num_ranks = guesses.token_ids, guesses.num_ranks
        place, length = text.buffer_info()
        count = self._merge(
            guesses.chances.buffer_info()[0],
            token_ids.buffer_info()[0],
            len(token_ids) // num_ranks,
            num_ranks,
            place,
            length,
            trust.buffer_info()[0],
            num_rows,
            *self._addresses,
        )
        told = self._told
        return Merged(
            self._view[: 2 * _BYTES * count].tobytes(),
            told[2 * count + 1 : 3 * count],
            told[3 * count + 1 : 4 * count],
            *self._offered,
        )


@dataclass(slots=True)
class _Node:
    """What is known of a path of tokens."""

    worth: float
    mark: int
    place: int


def search(guesses: Guesses, text: array[int], trust: array[float], num_rows: int) -> Merged:
    """The same without the compiled step."""
    nodes, least = _guessed(guesses, num_rows)
    found = continuations(text, trust, num_rows - 1, least)
    for token_ids, suffix in found:
        for depth in range(1, len(token_ids) + 1):
            worth = trust[(suffix - 1) * DEEPEST + depth - 1]
            if worth <= least:  # a longer one is worth still less
                break
            node = nodes.setdefault(token_ids[:depth], _Node(worth, BY_LOOKUP, -1))
            node.worth = max(node.worth, worth)
            node.mark = BY_LOOKUP if node.place < 0 else BY_BOTH
    best = sorted(nodes.items(), key=lambda item: -item[1].worth)[: num_rows - 1]
    children, order = _by_depth([path for path, _ in best])
    drafts = [nodes[path] for path in order]
    form = array("i", [*children, BY_HEADS, *(node.mark for node in drafts)])
    suffix, offered = (found[0].suffix, found[0].token_ids[0]) if found else (0, 0)
    tokens, places = [path[-1] for path in order], [node.place for node in drafts]
    return Merged(form.tobytes(), tokens, places, suffix, offered)


def _guessed(guesses: Guesses, num_rows: int) -> tuple[dict[tuple[int, ...], _Node], float]:
    """The heads' nodes, the best first; and what others must be worth more than."""
    flat, num_ranks = guesses.chances.tolist(), guesses.num_ranks
    heads = [flat[start : start + num_ranks] for start in range(0, len(flat), num_ranks)]
    nodes: dict[tuple[int, ...], _Node] = {}
    for path, worth in grow(heads, num_rows - 1):
        if worth > 0:
            places = [depth * num_ranks + rank for depth, rank in enumerate(path)]
            tokens = tuple(guesses.token_ids[place] for place in places)
            nodes[tokens] = _Node(worth, BY_HEADS, places[-1])
    worths = [1.0, *(node.worth for node in nodes.values())]
    return nodes, worths[-1] if len(worths) == num_rows else 0.0


def _by_depth(paths: Sequence[tuple[int, ...]]) -> tuple[list[int], list[tuple[int, ...]]]:
    """How many children each node has, root first; and the paths in the order of their nodes."""
    order: list[tuple[int, ...]] = [()]
    children = []
    for above in order:  # grows meanwhile
        below = [path for path in paths if path[:-1] == above]
        children.append(len(below))
        order += below
    return children, order[1:]
