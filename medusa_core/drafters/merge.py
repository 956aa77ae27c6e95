"""The tree of one step: of heads' guesses, of what a model often says, of the text so far.

Compiled where that is at hand; `search` says the same in Python.

Source: EAGLE-2 (Li et al. 2024), section 4.1, which grows trees by the drafter's confidence; REST
(He et al. 2024), section 3, for the trie of continuations.
"""

from __future__ import annotations

import ctypes
import math
from array import array
from bisect import insort
from collections.abc import Callable, Sequence
from ctypes import addressof, c_int32
from dataclasses import dataclass, field
from itertools import accumulate, chain
from typing import NamedTuple

from medusa_core.native.binding import MergeStruct, PhrasesStruct, native_library
from medusa_core.tree.lookup import DEEPEST, continuations
from medusa_core.tree.phrase_table import Follower, Phrases
from medusa_core.types import RowBudget

BY_HEADS, BY_LOOKUP, BY_PHRASES = 1, 2, 4  # as in grow.h
MOST_GROWN, MOST_DEPTH = 1024, 6
# How much phrases count beside a head: the first one reads the root as they do, the others don't
# know which token is before theirs.
SHARE_AT_ONCE, SHARE_DEEPER = 0.5, 0.7
# What a lookup is worth where phrases are known and make no row of the same.
UNSAID = 0.5
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
NO_TRUST = array("f")  # nothing is looked up


class Known(NamedTuple):
    """What is known before a step.

    Attributes:
        guesses: What the heads guess.
        text: All tokens so far, the root last; int32.
        trust: How likely the first tokens behind suffixes are right, as `continuations` has it.
    """

    guesses: Guesses
    text: array[int]
    trust: array[float]


class Merged(NamedTuple):
    """The most valuable nodes of all under one root.

    Attributes:
        form: How many children each node has, nodes by depth and siblings by what they are worth;
            then who proposed each: sums of `BY_HEADS`, `BY_LOOKUP` and `BY_PHRASES`. int32,
            [2, nodes]
        token_ids: The drafts' tokens.
        places: Where each draft stands among all guesses; −1 where it is none of them.
        suffix: Tokens of the suffix whose continuation was found first; 0 where none was.
        offered: That one's first token.
        promised: What the drafts are worth together: how many are likely to be accepted.
    """

    form: bytes
    token_ids: Sequence[int]
    places: Sequence[int]
    suffix: int
    offered: int
    promised: float


# Of what is known, and of the most rows to fill.
Merge = Callable[[Known, int], Merged]


def merger(budget: RowBudget, phrases: Phrases | None = None) -> Merge:
    """What merges into trees within a budget fastest; for one thread."""
    library = native_library()
    if library is None or budget.most > MOST_GROWN:
        return lambda known, num_rows: search(known, num_rows, phrases, budget.prices)
    return _Compiled(library, budget, phrases)


class _Compiled:
    """Merges in one call."""

    def __init__(self, library: ctypes.CDLL, budget: RowBudget, phrases: Phrases | None) -> None:
        self._merge = library.merge
        self._told = (c_int32 * (4 * budget.most))()
        self._view = memoryview(self._told).cast("B")
        prices, floors = budget.prices, floors_of(budget.prices)
        struct = None if phrases is None else _struct_of(phrases)
        self._kept = (prices, floors, phrases, struct)  # what the structure points at
        self._struct = MergeStruct(
            phrases=None if struct is None else addressof(struct),
            prices=prices.buffer_info()[0] if prices else None,
            floors=floors.buffer_info()[0] if floors else None,
            least=min(floors, default=0.0),
            told=addressof(self._told),
        )
        self._address = addressof(self._struct)

    def __call__(self, known: Known, num_rows: int) -> Merged:
        (token_ids, chances, num_ranks), text, trust = known
        asked = self._struct
        asked.heads = len(token_ids) // num_ranks
        if token_ids:
            asked.ranks = num_ranks
            asked.guesses, asked.chances = token_ids.buffer_info()[0], chances.buffer_info()[0]
        asked.text, asked.length = text.buffer_info()
        asked.trust = trust.buffer_info()[0] if trust else None
        asked.rows = num_rows
        count = self._merge(self._address)
        told = self._told
        return Merged(
            self._view[: 2 * _BYTES * count].tobytes(),
            told[2 * count + 1 : 3 * count],
            told[3 * count + 1 : 4 * count],
            asked.suffix,
            asked.offered,
            asked.promised,
        )


def floors_of(prices: Sequence[float]) -> array[float]:
    """What a further node must be worth more than to pay where there are 1, 2, ... rows.

    It may pay together with others, none of them worth more: so no less than some number of further
    rows costs each on average. That is how steeply the curve below all prices rises there.
    """
    floors = [math.inf] * len(prices)
    corners = [len(prices) - 1]  # of that curve, the nearest last
    for place in range(len(prices) - 2, -1, -1):
        slopes = [(prices[corner] - prices[place]) / (corner - place) for corner in corners[-2:]]
        while len(corners) > 1 and slopes[0] <= slopes[1]:
            corners.pop()
            slopes = [(prices[c] - prices[place]) / (c - place) for c in corners[-2:]]
        floors[place] = slopes[-1]
        corners.append(place)
    return array("f", floors)


def _struct_of(phrases: Phrases) -> PhrasesStruct:
    return PhrasesStruct(
        keys=phrases.keys.ctypes.data,
        starts=phrases.starts.ctypes.data,
        tokens=phrases.tokens.ctypes.data,
        chances=phrases.chances.ctypes.data,
        buckets=phrases.buckets.ctypes.data,
        shift=phrases.shift,
        longest=phrases.longest,
    )


_Path = tuple[int, ...]


@dataclass(slots=True)
class _Node:
    """What is known of a path of tokens."""

    path: _Path
    worth: float
    marks: int
    place: int


def search(
    known: Known, num_rows: int, phrases: Phrases | None = None, prices: Sequence[float] = ()
) -> Merged:
    """The same without the compiled step."""
    floors = floors_of(prices) if prices else array("f", [0.0]) * num_rows
    least = min(floors)
    grown = _Growth(known, num_rows, floors, phrases).nodes()
    nodes = {node.path: node for node in grown}
    if len(grown) == num_rows - 1:
        least = grown[-1].worth if grown else 1.0
    found = continuations(known.text, known.trust, num_rows - 1, least) if known.trust else []
    for token_ids, suffix in found:
        for depth in range(1, len(token_ids) + 1):
            worth = known.trust[(suffix - 1) * DEEPEST + depth - 1]
            path = token_ids[:depth]
            if path not in nodes and phrases is not None:
                worth *= UNSAID
            if worth <= least:  # a longer one is worth still less
                break
            node = nodes.setdefault(path, _Node(path, worth, BY_LOOKUP, -1))
            node.worth = max(node.worth, worth)
            node.marks |= BY_LOOKUP
    best = sorted(nodes.values(), key=lambda node: -node.worth)[: num_rows - 1]
    best, promised = _paying(best, prices)
    children, order = _by_depth([node.path for node in best])
    drafts = [nodes[path] for path in order]
    form = array("i", [*children, 0, *(node.marks for node in drafts)])
    suffix, offered = (found[0].suffix, found[0].token_ids[0]) if found else (0, 0)
    tokens, places = [path[-1] for path in order], [node.place for node in drafts]
    return Merged(form.tobytes(), tokens, places, suffix, offered, promised)


def _paying(nodes: list[_Node], prices: Sequence[float]) -> tuple[list[_Node], float]:
    """As many of the first as are together worth most beyond their price, and their worth."""
    worths = list(accumulate((node.worth for node in nodes), initial=0.0))
    if not prices:
        return nodes, worths[-1]
    left = [worth - price for worth, price in zip(worths, prices, strict=False)]
    count = left.index(max(left))
    return nodes[:count], worths[count]


@dataclass
class _Growth:
    """Takes the best of what is offered, and offers what may come below it."""

    known: Known
    num_rows: int
    floors: Sequence[float]
    phrases: Phrases | None
    taken: list[_Node] = field(default_factory=list)
    offers: list[_Node] = field(default_factory=list)

    def nodes(self) -> list[_Node]:
        """What was taken, the best first."""
        self._expand(_Node((), 1.0, 0, -1))
        while self._room and self.offers and self.offers[0].worth > self._floor:
            self.taken.append(self.offers.pop(0))
            if self._room and self.taken[-1].worth > self._floor:  # a child is worth no more
                self._expand(self.taken[-1])
        return self.taken

    @property
    def _room(self) -> int:
        return self.num_rows - 1 - len(self.taken)

    @property
    def _floor(self) -> float:
        return self.floors[len(self.taken)]

    def _expand(self, above: _Node) -> None:
        depth = len(above.path)
        guesses, num_ranks = self.known.guesses, self.known.guesses.num_ranks
        own = slice(depth * num_ranks, (depth + 1) * num_ranks)
        token_ids, chances = guesses.token_ids[own].tolist(), guesses.chances[own].tolist()
        if not token_ids and depth >= MOST_DEPTH:
            return
        share = SHARE_DEEPER if depth else SHARE_AT_ONCE
        followers = self._followers(above.path)
        share = share if token_ids else 1.0
        rest = 1 - share if followers else 1.0
        for token_id, follows in followers:
            rank = token_ids.index(token_id) if token_id in token_ids else -1
            chance = share * follows + (0 if rank < 0 else rest * chances[rank])
            marks = BY_PHRASES if rank < 0 else BY_PHRASES | BY_HEADS
            place = -1 if rank < 0 else own.start + rank
            self._offer(_Node((*above.path, token_id), above.worth * chance, marks, place))
        said = {follower.token_id for follower in followers}
        for rank, (token_id, chance) in enumerate(zip(token_ids, chances, strict=True)):
            if token_id not in said:
                worth = above.worth * (rest * chance)
                path = (*above.path, token_id)
                self._offer(_Node(path, worth, BY_HEADS, own.start + rank))

    def _followers(self, path: _Path) -> list[Follower]:
        if self.phrases is None:
            return []
        return self.phrases.behind(chain(reversed(path), reversed(self.known.text)))

    def _offer(self, node: _Node) -> None:
        if node.worth > min(self.floors):
            insort(self.offers, node, key=lambda other: -other.worth)
            del self.offers[self._room :]


def _by_depth(paths: Sequence[_Path]) -> tuple[list[int], list[_Path]]:
    """How many children each node has, root first; and the paths in the order of their nodes."""
    order: list[_Path] = [()]
    children = []
    for above in order:  # grows meanwhile
        below = [path for path in paths if path[:-1] == above]
        children.append(len(below))
        order += below
    return children, order[1:]
