"""Grows the tree of one step, level by level, from what any list of sources says may follow.

A node is worth the product of the chances down to it. Where several sources say how likely every
next token is, their chances are mixed; one that only points at a token counts where it is surer.
The most valuable nodes stay, as many as are together worth most beyond the price of their rows:
where little is known, few or none. A node that several propose credits all of them.

Where the budget says how far chances are trusted, they count as much; where it says what asking
costs, only paths are asked about whose next token is likely to be worth that. So a tree becomes a
chain where siblings don't come true, or where a pass for each of them costs too much. A budget may
also ask for a chain: then every node has one child at most, the one that is worth most.

Compiled where that is at hand; `GrowthInPython` gives the same trees.

Source: EAGLE-2 (Li et al. 2024), section 4.1, which grows trees by the drafter's confidence.
"""

from __future__ import annotations

import ctypes
import math
from array import array
from bisect import insort
from collections.abc import Sequence
from ctypes import addressof, c_float, c_int32
from dataclasses import dataclass
from itertools import accumulate
from struct import Struct
from typing import NamedTuple, Protocol

from medusa_core.messages import CHAIN
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.source import (
    Candidates,
    CandidateSource,
    Paths,
)
from medusa_core.system.native.binding import native_library
from medusa_core.system.native.structs import (
    CandidatesStruct,
    GrowthStruct,
    NodeStruct,
)

MOST_GROWN, MOST_LEVELS, MOST_SOURCES = 1024, 32, 31  # as in growth.h
MOST_OFFERS, _LEAST_OFFERED = 128, 0.01  # so, too
# How a node lies among its siblings: the likeliest one behind likeliest ones alone, the likeliest
# behind others, the second, a further one.
ON_SPINE, OFF_SPINE, SECOND, FURTHER = KINDS = range(4)
TRUST_DEPTHS = 4  # the last one and all below it as one
RANGES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8)  # the upper ends of ranges of chances
_ROOT = Paths(1, 0, array("i"))
_BYTES = 4
_OFFER = Struct("iif")  # above, token, chance


class Grown(NamedTuple):
    """The tree of one step.

    Attributes:
        form: How many children each node has, nodes by depth and siblings by what they are worth;
            then which sources proposed each: bit i for the i-th. int32, [2, nodes]
        token_ids: The drafts' tokens.
        chances: How likely each is if the path before is right. float32
        expected_accepted: Expected number of accepted drafts.
        offers: As `StepTrace.offers` has it; empty where growth isn't to tell.
    """

    form: bytes
    token_ids: Sequence[int]
    chances: bytes
    expected_accepted: float
    offers: bytes = b""


class Growth(Protocol):
    """Grows trees within a budget; for one thread.

    Attributes:
        tells: Whether it tells what it was offered.
    """

    tells: bool

    def scale_costs(self, factor: float) -> None:
        """Multiply the budget's costs of rows and levels by a factor."""

    def grow(self, sources: Sequence[CandidateSource], num_rows: int) -> Grown:
        """A tree of at most so many rows, root included.

        Args:
            sources: Those of the growth's weights, in the same order; their step has started.
            num_rows: No more than the budget has.
        """


class _Costs(NamedTuple):
    """What a budget says that things cost; see `RowBudget` and growth.h."""

    prices: array[float]
    floors: array[float]
    asking: array[float]

    @classmethod
    def of(cls, budget: RowBudget) -> _Costs:
        return cls(budget.prices, floors_of(budget.prices), budget.asking)

    def times(self, share: float) -> _Costs:
        """A share of all of it."""
        asking = array("f", self.asking)
        for kind in (1, 2):  # how likely a level brings something isn't a price
            asking[kind::3] = array("f", [share * price for price in asking[kind::3]])
        return _Costs(
            array("f", [share * price for price in self.prices]),
            array("f", [share * floor for floor in self.floors]),
            asking,
        )


def make_growth(budget: RowBudget, weights: Sequence[float]) -> Growth:
    """The fastest growth that this machine supports.

    Args:
        budget: How many rows trees may have, and what these cost.
        weights: Of each source its part of the mixture, or 0; see `SourceSpec`.
    """
    assert len(weights) <= MOST_SOURCES
    library = native_library()
    if library is None or budget.most > MOST_GROWN:
        return GrowthInPython(budget, weights)
    return CompiledGrowth(library, budget, weights)


class CompiledGrowth:
    """Grows by the compiled step: one call for each level."""

    def __init__(self, library: ctypes.CDLL, budget: RowBudget, weights: Sequence[float]) -> None:
        self.tells = False
        self._library = library
        rows, self._budget, self._costs = budget.most, budget, _Costs.of(budget)
        self._nodes = (NodeStruct * rows)()
        self._paths = array("i", bytes(_BYTES * rows * MOST_LEVELS))
        self._nodes_out, self._chances = (c_int32 * (3 * rows))(), (c_float * rows)()
        self._order, self._open = (c_int32 * rows)(), (c_int32 * rows)()
        self._offers = (c_int32 * (_OFFER.size // _BYTES * MOST_OFFERS))()
        self._offer_bytes, self._offers_address = (
            memoryview(self._offers).cast("B"),
            addressof(self._offers),
        )
        self._offered = (c_int32 * rows)()
        self._out_bytes = memoryview(self._nodes_out).cast("B")
        self._chance_bytes = memoryview(self._chances).cast("B")
        self._struct = GrowthStruct(
            trust=_address(budget.trust),
            chain=budget.growth == CHAIN,
            nodes=addressof(self._nodes),
            order=addressof(self._order),
            open=addressof(self._open),
            paths=self._paths.buffer_info()[0],
            finished=addressof(self._nodes_out),
            chances=addressof(self._chances),
            offered=addressof(self._offered),
        )
        self._address = addressof(self._struct)
        self._candidate_structs = (CandidatesStruct * len(weights))(
            *(
                CandidatesStruct(weight=weight, mark=1 << place)
                for place, weight in enumerate(weights)
            )
        )
        self._structs_address = addressof(self._candidate_structs)
        self.scale_costs(1.0)

    def scale_costs(self, factor: float) -> None:
        self._costs = costs = _Costs.of(self._budget).times(factor)
        self._struct.prices = _address(costs.prices)
        self._struct.floors = _address(costs.floors)
        self._struct.asking = _address(costs.asking)
        self._struct.least = min(costs.floors, default=0.0)

    def grow(self, sources: Sequence[CandidateSource], num_rows: int) -> Grown:
        library, struct, address = self._library, self._struct, self._address
        struct.rows = num_rows
        struct.offers = self._offers_address if self.tells else None
        library.grow_begin(address)
        paths = _ROOT
        while paths.num and num_rows > 1:
            answers = [source.candidates(paths) for source in sources]
            for candidates, filled in zip(answers, self._candidate_structs, strict=True):
                _fill(candidates, filled)
            num = library.grow_level(address, self._structs_address, len(answers))
            paths = Paths(num, paths.level + 1, self._paths)
        count = library.grow_end(address)
        return Grown(
            self._out_bytes[: 2 * _BYTES * count].tobytes(),
            self._nodes_out[2 * count + 1 : 3 * count],
            self._chance_bytes[: _BYTES * (count - 1)].tobytes(),
            struct.promised,
            self._offer_bytes[: _OFFER.size * struct.num_offers].tobytes(),
        )


def _address(values: array[float]) -> int | None:
    """Of an array; None of an empty one."""
    return values.buffer_info()[0] if values else None


def _fill(candidates: Candidates | None, filled: CandidatesStruct) -> None:
    if candidates is None:
        filled.size, filled.counts = 0, None
        return
    filled.tokens, filled.size = candidates.token_ids.buffer_info()
    filled.chances = candidates.chances.buffer_info()[0]
    counts = candidates.counts
    filled.counts = None if counts is None else counts.buffer_info()[0]


def floors_of(prices: Sequence[float]) -> array[float]:
    """What a node must be worth more than to pay where at least 1, 2, ... rows are before it.

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
    return array("f", reversed(list(accumulate(reversed(floors), min))))


def trust_place(source: int, kind: int, depth: int, chance: float) -> int:
    """Where `RowBudget.trust` has what a chance is multiplied by.

    Args:
        source: Which of the sources proposed the token alone; their number if several did.
        kind: One of `KINDS`.
        depth: Of the token, from 1.
        chance: What was said.
    """
    in_range = sum(chance > end for end in RANGES)
    place = (source * len(KINDS) + kind) * TRUST_DEPTHS + min(depth, TRUST_DEPTHS) - 1
    return place * (len(RANGES) + 1) + in_range


@dataclass(slots=True)
class _Node:
    """A path of tokens: what it is worth, the chance of its last one, who proposed it, its kind."""

    path: tuple[int, ...]
    worth: float
    chance: float
    marks: int
    kind: int = ON_SPINE
    offer: int = -1  # which of those that are told; -1 for none


@dataclass(slots=True)
class _Following:
    """What is said of one token behind a path."""

    mixed: float = 0.0
    alone: float = 0.0
    marks: int = 0


class GrowthInPython:
    """The same without the compiled step."""

    def __init__(self, budget: RowBudget, weights: Sequence[float]) -> None:
        self.tells = False
        self._offers: list[bytes] = []
        self._weights, self._trust = weights, budget.trust
        self._is_chain = budget.growth == CHAIN
        self._budget = budget
        self.scale_costs(1.0)

    def scale_costs(self, factor: float) -> None:
        self._prices, self._floors, self._asking = _Costs.of(self._budget).times(factor)

    def grow(self, sources: Sequence[CandidateSource], num_rows: int) -> Grown:
        self._offers = []
        nodes: list[_Node] = []
        open_nodes = [_Node((), 1.0, 1.0, 0)] if num_rows > 1 else []
        level = 0
        while open_nodes and level < MOST_LEVELS:
            flat = [token_id for node in open_nodes for token_id in node.path]
            paths = Paths(len(open_nodes), level, array("i", flat))
            answers = [source.candidates(paths) for source in sources]
            for index, above in enumerate(open_nodes):
                if level and not any(node is above for node in nodes):
                    continue  # better ones took its row
                for node in self._children(above, self._following(answers, index)):
                    self._insert(nodes, node)
                    del nodes[num_rows - 1 :]
            self._prune(nodes)
            level += 1
            open_nodes = self._opened(nodes, level, num_rows)
        return self._result(nodes)

    def _children(self, above: _Node, following: dict[int, _Following]) -> list[_Node]:
        """What may come into the tree behind a node; of a chain what is worth most."""
        chances = [max(found.mixed, found.alone) for found in following.values()]
        comparable = [place for place, chance in enumerate(chances) if not math.isnan(chance)]
        ranked = sorted(comparable, key=lambda place: -chances[place])[:2]
        first = ON_SPINE if above.kind == ON_SPINE else OFF_SPINE
        kinds = dict(zip(ranked, (first, SECOND), strict=False))
        nodes = []
        for place, (token_id, found) in enumerate(following.items()):
            chance, kind = chances[place], kinds.get(place, FURTHER)
            path = (*above.path, token_id)
            worth = above.worth * self._trusted(chance, found.marks, kind, len(path))
            node = _Node(path, worth, chance, found.marks, kind)
            if self.tells:
                node.offer = self._offer(above, node)
            nodes.append(node)
        if not self._is_chain:
            return nodes
        worthy = [node for node in nodes if node.worth > -1.0]
        return [max(worthy, key=lambda node: node.worth)] if worthy else []

    def _trusted(self, chance: float, marks: int, kind: int, depth: int) -> float:
        """How much of its chance a token is trusted with."""
        if not self._trust:
            return chance
        source = len(self._weights) if marks & (marks - 1) else marks.bit_length() - 1
        return min(chance * self._trust[trust_place(source, kind, depth, chance)], 1.0)

    def _opened(self, nodes: list[_Node], level: int, num_rows: int) -> list[_Node]:
        """Those of a level of which is asked what follows, the most valuable first."""
        opened: list[_Node] = []
        for place, node in enumerate(nodes, start=2):
            is_at_end = len(node.path) != level or place >= num_rows or level == MOST_LEVELS
            if is_at_end or not self._pays(node, place):
                continue
            floor = self._floors[place - 1] if self._floors else 0.0
            if self._is_worth_asking(node, floor, level, is_first=not opened):
                opened.append(node)
        return opened

    def _is_worth_asking(self, node: _Node, floor: float, level: int, is_first: bool) -> bool:
        if not self._asking:
            return True
        likely, first, further = self._asking[3 * level : 3 * level + 3]
        price = first if is_first else further
        return price <= 0 or likely * (node.worth - floor) > price

    def _following(self, answers: list[Candidates | None], index: int) -> dict[int, _Following]:
        """What all say of one path."""
        parts = [_behind(candidates, index) for candidates in answers]
        whole = sum(weight for weight, part in zip(self._weights, parts, strict=True) if part)
        found: dict[int, _Following] = {}
        for place, (weight, part) in enumerate(zip(self._weights, parts, strict=True)):
            for token_id, chance in part:
                following = found.setdefault(token_id, _Following())
                following.marks |= 1 << place
                if weight:
                    following.mixed += weight / whole * chance
                else:
                    following.alone = max(following.alone, chance)
        return found

    def _insert(self, nodes: list[_Node], node: _Node) -> None:
        if node.worth > min(self._floors, default=0.0):
            insort(nodes, node, key=lambda other: -other.worth)

    def _offer(self, above: _Node, node: _Node) -> int:
        place, is_offered = len(self._offers), above.offer >= 0 or not above.path
        if not node.worth >= _LEAST_OFFERED or place == MOST_OFFERS or not is_offered:
            return -1
        self._offers.append(_OFFER.pack(above.offer, node.path[-1], node.chance))
        return place

    def _pays(self, node: _Node, num_rows: int) -> bool:
        return not self._floors or node.worth > self._floors[num_rows - 1]

    def _prune(self, nodes: list[_Node]) -> None:
        for place, node in enumerate(nodes, start=1):
            if not self._pays(node, place):
                del nodes[place - 1 :]
                return

    def _result(self, nodes: list[_Node]) -> Grown:
        worths = list(accumulate((node.worth for node in nodes), initial=0.0))
        count = len(nodes)
        if self._prices:
            left = [worth - price for worth, price in zip(worths, self._prices, strict=False)]
            count = left.index(max(left))
        children, drafts = _by_depth(nodes[:count])
        form = array("i", [*children, 0, *(node.marks for node in drafts)])
        chances = array("f", [node.chance for node in drafts])
        tokens = [node.path[-1] for node in drafts]
        offers = b"".join(self._offers)
        return Grown(form.tobytes(), tokens, chances.tobytes(), worths[count], offers)


def _behind(candidates: Candidates | None, index: int) -> list[tuple[int, float]]:
    """What one source says may follow one path."""
    if candidates is None:
        return []
    token_ids, chances, counts = candidates
    if counts is None:
        return list(zip(token_ids, chances, strict=True))
    start = sum(counts[:index])
    own = slice(start, start + counts[index])
    return list(zip(token_ids[own], chances[own], strict=True))


def _by_depth(nodes: Sequence[_Node]) -> tuple[list[int], list[_Node]]:
    """How many children each node has, root first; and the drafts in the order of their nodes."""
    order: list[_Node] = [_Node((), 1.0, 1.0, 0)]
    children = []
    for above in order:  # grows meanwhile
        below = [node for node in nodes if node.path[:-1] == above.path]
        children.append(len(below))
        order += below
    return children, order[1:]
