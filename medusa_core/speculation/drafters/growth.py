"""Grow the token tree of a step level by level, from candidates of any list of sources.

A node's value is the probability of its whole path. If several sources give a distribution of the
next token, these are mixed; a source that only points at single tokens counts if it is surer. The
most valuable nodes are kept, as many as together are worth most beyond the costs of their rows: if
little is known, few or none. A node that several sources propose is credited to all of them.

Probabilities are multiplied by the budget's acceptance ratios. A path is only queried for further
candidates if they are expected to be worth the budget's cost of drafting them. So a tree becomes a
chain if siblings are rarely accepted, or if a draft pass for each of them costs too much. A budget
may also ask for a chain, whose nodes have at most one child: the most valuable one.

The compiled growth is used if possible; `GrowthInPython` grows the same trees.

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
from medusa_core.system.native.constants import (
    MAX_LEVELS,
    MAX_OFFERS,
    MAX_SOURCES,
    MAX_TREE_NODES,
    MIN_OFFER_VALUE,
    RATIO_DEPTHS,
    RATIO_RANGES,
    NodeRank,
)
from medusa_core.system.native.structs import (
    CandidatesStruct,
    GrowthStruct,
    NodeStruct,
)

_ROOT = Paths(1, 0, array("i"))
_BYTES = 4
_OFFER = Struct("iif")  # parent offer, token, probability


class Grown(NamedTuple):
    """The tree of one step.

    Attributes:
        form: Number of children of each node, nodes by depth and siblings by value; then a bit
            mask of the sources that proposed each node. int32, [2, nodes]
        token_ids: Tokens of the drafts.
        chances: Probability of each draft if the path before it is right. float32
        expected_accepted: Expected number of accepted drafts.
        offers: Candidates by node, as in `StepTrace.offers`; empty unless they are recorded.
    """

    form: bytes
    token_ids: Sequence[int]
    chances: bytes
    expected_accepted: float
    offers: bytes = b""


class Growth(Protocol):
    """Grows trees within a budget; not thread-safe.

    Attributes:
        records_offers: Whether candidates are recorded for a trace.
    """

    records_offers: bool

    def scale_costs(self, factor: float) -> None:
        """Multiply the budget's costs of rows and levels by a factor."""

    def grow(self, sources: Sequence[CandidateSource], num_rows: int) -> Grown:
        """Grow a tree.

        Args:
            sources: Sources in the order of the growth's weights, whose step has started.
            num_rows: Maximum number of nodes, root included; at most the budget's.
        """


class _Costs(NamedTuple):
    """Costs of a budget in tokens; see `RowBudget`.

    Attributes:
        rows: `RowBudget.row_costs`.
        floors: `min_values` of these.
        drafts: `RowBudget.draft_costs`.
    """

    rows: array[float]
    floors: array[float]
    drafts: array[float]

    @classmethod
    def of(cls, budget: RowBudget) -> _Costs:
        """Costs of a budget."""
        return cls(budget.row_costs, min_values(budget.row_costs), budget.draft_costs)

    def times(self, factor: float) -> _Costs:
        """All costs multiplied by a factor; acceptance rates stay as they are."""
        drafts = array("f", self.drafts)
        for column in (1, 2):  # column 0 is an acceptance rate
            drafts[column::3] = array("f", [factor * cost for cost in drafts[column::3]])
        return _Costs(
            array("f", [factor * cost for cost in self.rows]),
            array("f", [factor * floor for floor in self.floors]),
            drafts,
        )


def make_growth(budget: RowBudget, weights: Sequence[float]) -> Growth:
    """Make the fastest growth that this machine supports.

    Args:
        budget: Maximum rows of trees, and their costs.
        weights: Weight of each source in the mixture, or 0; see `SourceSpec`.
    """
    assert len(weights) <= MAX_SOURCES
    library = native_library()
    if library is None or budget.most > MAX_TREE_NODES:
        return GrowthInPython(budget, weights)
    return CompiledGrowth(library, budget, weights)


class CompiledGrowth:
    """Grows with compiled code, one call per level."""

    def __init__(self, library: ctypes.CDLL, budget: RowBudget, weights: Sequence[float]) -> None:
        self.records_offers = False
        self._library = library
        rows, self._budget, self._costs = budget.most, budget, _Costs.of(budget)
        self._nodes = (NodeStruct * rows)()
        self._paths = array("i", bytes(_BYTES * rows * MAX_LEVELS))
        self._nodes_out, self._chances = (c_int32 * (3 * rows))(), (c_float * rows)()
        self._order, self._open = (c_int32 * rows)(), (c_int32 * rows)()
        self._offers = (c_int32 * (_OFFER.size // _BYTES * MAX_OFFERS))()
        self._offer_bytes, self._offers_address = (
            memoryview(self._offers).cast("B"),
            addressof(self._offers),
        )
        self._offered = (c_int32 * rows)()
        self._out_bytes = memoryview(self._nodes_out).cast("B")
        self._chance_bytes = memoryview(self._chances).cast("B")
        self._struct = GrowthStruct(
            acceptance_ratios=_address(budget.acceptance_ratios),
            is_chain=budget.growth == CHAIN,
            nodes=addressof(self._nodes),
            order=addressof(self._order),
            open=addressof(self._open),
            paths=self._paths.buffer_info()[0],
            result=addressof(self._nodes_out),
            probabilities=addressof(self._chances),
            offer_of_node=addressof(self._offered),
        )
        self._address = addressof(self._struct)
        self._candidate_structs = (CandidatesStruct * len(weights))(
            *(
                CandidatesStruct(weight=weight, source=1 << place)
                for place, weight in enumerate(weights)
            )
        )
        self._structs_address = addressof(self._candidate_structs)
        self.scale_costs(1.0)

    def scale_costs(self, factor: float) -> None:
        """Multiply the budget's costs by a factor, in the structure that the library reads."""
        self._costs = costs = _Costs.of(self._budget).times(factor)
        self._struct.row_costs = _address(costs.rows)
        self._struct.min_values = _address(costs.floors)
        self._struct.draft_costs = _address(costs.drafts)
        self._struct.min_value = min(costs.floors, default=0.0)

    def grow(self, sources: Sequence[CandidateSource], num_rows: int) -> Grown:
        """Grow a tree, one call of the library per level; see `Growth`."""
        library, struct, address = self._library, self._struct, self._address
        struct.max_nodes = num_rows
        struct.offers = self._offers_address if self.records_offers else None
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
            struct.expected_accepted,
            self._offer_bytes[: _OFFER.size * struct.num_offers].tobytes(),
        )


def _address(values: array[float]) -> int | None:
    """The array's address; None if it is empty."""
    return values.buffer_info()[0] if values else None


def _fill(candidates: Candidates | None, filled: CandidatesStruct) -> None:
    """Point a structure at candidates; no candidates have size 0."""
    if candidates is None:
        filled.size, filled.counts = 0, None
        return
    filled.tokens, filled.size = candidates.token_ids.buffer_info()
    filled.probabilities = candidates.chances.buffer_info()[0]
    counts = candidates.counts
    filled.counts = None if counts is None else counts.buffer_info()[0]


def min_values(row_costs: Sequence[float]) -> array[float]:
    """Value that a node must exceed to be profitable after at least 1, 2, ... rows.

    It may be profitable together with others, none of them more valuable: so it must exceed the
    average cost of some number of further rows. That is the slope of the costs' lower convex hull.
    """
    floors = [math.inf] * len(row_costs)
    corners = [len(row_costs) - 1]  # of the hull, the nearest last

    def slope(place: int, corner: int) -> float:
        """Mean cost of a row between two numbers of rows."""
        return (row_costs[corner] - row_costs[place]) / (corner - place)

    for place in range(len(row_costs) - 2, -1, -1):
        slopes = [slope(place, corner) for corner in corners[-2:]]
        while len(corners) > 1 and slopes[0] <= slopes[1]:
            corners.pop()
            slopes = [slope(place, corner) for corner in corners[-2:]]
        floors[place] = slopes[-1]
        corners.append(place)
    return array("f", reversed(list(accumulate(reversed(floors), min))))


def ratio_index(source: int, rank: int, depth: int, chance: float) -> int:
    """Index of a token's factor in `RowBudget.acceptance_ratios`.

    Args:
        source: Index of the source that proposed it; the number of sources if several did.
        rank: Its `NodeRank`.
        depth: Its depth, from 1.
        chance: Its probability.
    """
    in_range = sum(chance > end for end in RATIO_RANGES)
    place = (source * len(NodeRank) + rank) * RATIO_DEPTHS + min(depth, RATIO_DEPTHS) - 1
    return place * (len(RATIO_RANGES) + 1) + in_range


@dataclass(slots=True)
class _Node:
    """A node of a growing tree.

    Attributes:
        path: Tokens from the root's child to it.
        value: Corrected probability of the path.
        chance: Probability of its token, as proposed.
        marks: Bit mask of the sources that proposed it.
        rank: Rank among its siblings.
        offer: Index of its recorded offer; -1 for none.
    """

    path: tuple[int, ...]
    value: float
    chance: float
    marks: int
    rank: NodeRank = NodeRank.GREEDY
    offer: int = -1


@dataclass(slots=True)
class _Candidate:
    """A token that may follow a path.

    Attributes:
        mixed: Its probability in the mixture of distributions.
        pointed: Highest probability of a source that only points at tokens.
        marks: Bit mask of the sources that proposed it.
    """

    mixed: float = 0.0
    pointed: float = 0.0
    marks: int = 0


class GrowthInPython:
    """Grows the same trees without compiled code."""

    def __init__(self, budget: RowBudget, weights: Sequence[float]) -> None:
        self.records_offers = False
        self._offers: list[bytes] = []
        self._weights, self._ratios = weights, budget.acceptance_ratios
        self._is_chain = budget.growth == CHAIN
        self._budget = budget
        self.scale_costs(1.0)

    def scale_costs(self, factor: float) -> None:
        """Multiply the budget's costs by a factor."""
        self._row_costs, self._floors, self._draft_costs = _Costs.of(self._budget).times(factor)

    def grow(self, sources: Sequence[CandidateSource], num_rows: int) -> Grown:
        """Grow a tree; see `Growth`."""
        self._offers = []
        nodes: list[_Node] = []
        open_nodes = [_Node((), 1.0, 1.0, 0)] if num_rows > 1 else []
        level = 0
        while open_nodes and level < MAX_LEVELS:
            flat = [token_id for node in open_nodes for token_id in node.path]
            paths = Paths(len(open_nodes), level, array("i", flat))
            answers = [source.candidates(paths) for source in sources]
            for index, above in enumerate(open_nodes):
                if level and not any(node is above for node in nodes):
                    continue  # more valuable nodes took its row
                for node in self._children(above, self._candidates(answers, index)):
                    self._insert(nodes, node)
                    del nodes[num_rows - 1 :]
            self._prune(nodes)
            level += 1
            open_nodes = self._open_nodes(nodes, level, num_rows)
        return self._result(nodes)

    def _children(self, above: _Node, candidates: dict[int, _Candidate]) -> list[_Node]:
        """A node's possible children; in a chain the most valuable one."""
        chances = [max(found.mixed, found.pointed) for found in candidates.values()]
        comparable = [place for place, chance in enumerate(chances) if not math.isnan(chance)]
        ranked = sorted(comparable, key=lambda place: -chances[place])[:2]
        first = NodeRank.GREEDY if above.rank == NodeRank.GREEDY else NodeRank.FIRST
        ranks = dict(zip(ranked, (first, NodeRank.SECOND), strict=False))
        nodes = []
        for place, (token_id, found) in enumerate(candidates.items()):
            chance, rank = chances[place], ranks.get(place, NodeRank.LOWER)
            path = (*above.path, token_id)
            value = above.value * self._corrected(chance, found.marks, rank, len(path))
            node = _Node(path, value, chance, found.marks, rank)
            if self.records_offers:
                node.offer = self._offer(above, node)
            nodes.append(node)
        if not self._is_chain:
            return nodes
        comparable_nodes = [node for node in nodes if node.value > -1.0]  # not NaN
        return [max(comparable_nodes, key=lambda node: node.value)] if comparable_nodes else []

    def _corrected(self, chance: float, marks: int, rank: int, depth: int) -> float:
        """A token's probability times its acceptance ratio."""
        if not self._ratios:
            return chance
        source = len(self._weights) if marks & (marks - 1) else marks.bit_length() - 1
        return min(chance * self._ratios[ratio_index(source, rank, depth, chance)], 1.0)

    def _open_nodes(self, nodes: list[_Node], level: int, num_rows: int) -> list[_Node]:
        """Nodes of a level whose children are drafted next, the most valuable first."""
        opened: list[_Node] = []
        for place, node in enumerate(nodes, start=2):
            is_at_end = len(node.path) != level or place >= num_rows or level == MAX_LEVELS
            if is_at_end or not self._is_profitable(node, place):
                continue
            floor = self._floors[place - 1] if self._floors else 0.0
            if self._is_worth_drafting(node, floor, level, is_first=not opened):
                opened.append(node)
        return opened

    def _is_worth_drafting(self, node: _Node, floor: float, level: int, is_first: bool) -> bool:
        """Whether drafting a node's children is expected to yield more than it costs."""
        if not self._draft_costs:
            return True
        acceptance_rate, first, further = self._draft_costs[3 * level : 3 * level + 3]
        cost = first if is_first else further
        return cost <= 0 or acceptance_rate * (node.value - floor) > cost

    def _candidates(self, answers: list[Candidates | None], index: int) -> dict[int, _Candidate]:
        """Candidates of all sources after one path, by token."""
        parts = [_of_path(candidates, index) for candidates in answers]
        whole = sum(weight for weight, part in zip(self._weights, parts, strict=True) if part)
        found: dict[int, _Candidate] = {}
        for place, (weight, part) in enumerate(zip(self._weights, parts, strict=True)):
            for token_id, chance in part:
                candidate = found.setdefault(token_id, _Candidate())
                candidate.marks |= 1 << place
                if weight:
                    candidate.mixed += weight / whole * chance
                else:
                    candidate.pointed = max(candidate.pointed, chance)
        return found

    def _insert(self, nodes: list[_Node], node: _Node) -> None:
        """Insert a node in descending order of values, unless no row can be worth it."""
        if node.value > min(self._floors, default=0.0):
            insort(nodes, node, key=lambda other: -other.value)

    def _offer(self, above: _Node, node: _Node) -> int:
        """Record a candidate for a trace; returns its index, or -1 if it isn't recorded."""
        place, is_offered = len(self._offers), above.offer >= 0 or not above.path
        if not node.value >= MIN_OFFER_VALUE or place == MAX_OFFERS or not is_offered:
            return -1
        self._offers.append(_OFFER.pack(above.offer, node.path[-1], node.chance))
        return place

    def _is_profitable(self, node: _Node, num_rows: int) -> bool:
        """Whether a node is worth the cost of row `num_rows`."""
        return not self._floors or node.value > self._floors[num_rows - 1]

    def _prune(self, nodes: list[_Node]) -> None:
        """Drop the nodes after the first that isn't worth its row."""
        for place, node in enumerate(nodes, start=1):
            if not self._is_profitable(node, place):
                del nodes[place - 1 :]
                return

    def _result(self, nodes: list[_Node]) -> Grown:
        """The tree with the most expected tokens beyond the costs of its rows."""
        expected = list(accumulate((node.value for node in nodes), initial=0.0))
        count = len(nodes)
        if self._row_costs:
            gains = [value - cost for value, cost in zip(expected, self._row_costs, strict=False)]
            count = gains.index(max(gains))
        children, drafts = _by_depth(nodes[:count])
        form = array("i", [*children, 0, *(node.marks for node in drafts)])
        chances = array("f", [node.chance for node in drafts])
        tokens = [node.path[-1] for node in drafts]
        offers = b"".join(self._offers)
        return Grown(form.tobytes(), tokens, chances.tobytes(), expected[count], offers)


def _of_path(candidates: Candidates | None, index: int) -> list[tuple[int, float]]:
    """A source's candidates after one path, with their probabilities."""
    if candidates is None:
        return []
    token_ids, chances, counts = candidates
    if counts is None:
        return list(zip(token_ids, chances, strict=True))
    start = sum(counts[:index])
    own = slice(start, start + counts[index])
    return list(zip(token_ids[own], chances[own], strict=True))


def _by_depth(nodes: Sequence[_Node]) -> tuple[list[int], list[_Node]]:
    """Number of children of each node, root first, and the drafts in breadth-first order."""
    order: list[_Node] = [_Node((), 1.0, 1.0, 0)]
    counts = []
    for above in order:  # grows during the loop
        children = [node for node in nodes if node.path[:-1] == above.path]
        counts.append(len(children))
        order += children
    return counts, order[1:]
