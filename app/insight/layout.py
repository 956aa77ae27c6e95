"""Layout of a step's tree: state, position and text of each node; no Qt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from PySide6.QtCore import QCoreApplication

from app.i18n.words import QT_TRANSLATE_NOOP
from app.insight.forms import CHAIN, tree_form
from app.insight.words import NO_SPECIALS, show_token
from medusa_core.messages import TARGET, BestNode, DroppedToken, StepTrace, TokenSource, TraceNode

_MOST_PRUNED, _MOST_BESIDE = 8, 3  # drawn, in all and under one node: they push others apart
_Outline = tuple[list[int], list[int]]  # highest and lowest row of each column of a subtree


class NodeState(Enum):
    """Result of a node in its step."""

    ROOT = QT_TRANSLATE_NOOP("Insight", "decided before")
    ACCEPTED = QT_TRANSLATE_NOOP("Insight", "accepted")
    MISMATCH = QT_TRANSLATE_NOOP("Insight", "the best draft token where the model chose otherwise")
    PASSED = QT_TRANSLATE_NOOP("Insight", "not what the model chose")
    UNREACHED = QT_TRANSLATE_NOOP("Insight", "not reached")
    GHOST = QT_TRANSLATE_NOOP("Insight", "chosen by the model")
    FORBIDDEN = QT_TRANSLATE_NOOP("Insight", "forbidden by the grammar")
    PRUNED = QT_TRANSLATE_NOOP("Insight", "offered, but not verified")
    PLANNED = QT_TRANSLATE_NOOP("Insight", "planned")


class DrawnBlock(NamedTuple):
    """Columns of a step that a source drafted in one pass.

    Attributes:
        source: Name of the source.
        first: Column of the first of them.
        last: Column of the last.
    """

    source: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Node:
    """A node with its position.

    Attributes:
        index: Index in the tree. The bonus token, which isn't a node, has the number of nodes;
            tokens that grammar or row budget kept out of the tree follow it.
        parent: Index of the parent; −1 for the root.
        depth: Its column.
        row: Its row.
        text: Text of its token.
        state: Its result.
        source: Its drafter; the target if unknown.
        probability: Its drafter's probability; None if unknown.
        judged: The target's probability; None if not computed.
        rank: Rank among its drafter's candidates; −1 for none.
    """

    index: int
    parent: int
    depth: int
    row: int
    text: str
    state: NodeState
    source: TokenSource
    probability: float | None
    judged: float | None = None
    rank: int = -1

    @property
    def is_verified(self) -> bool:
        """Whether it was a row of the pass."""
        return self.state is not NodeState.GHOST and not self.is_dropped

    @property
    def is_dropped(self) -> bool:
        """Whether it was drafted but not verified."""
        return self.state in (NodeState.FORBIDDEN, NodeState.PRUNED)


@dataclass(frozen=True, slots=True)
class TreeLayout:
    """A laid-out tree.

    Attributes:
        nodes: Its nodes; an accepted path is the first row.
        num_rows: Number of rows.
        num_columns: Number of columns, the ghost's included.
        blocks: Columns that sources drafted in one pass.
    """

    nodes: tuple[Node, ...] = field(default=())
    num_rows: int = 0
    num_columns: int = 0
    blocks: tuple[DrawnBlock, ...] = ()

    @property
    def drafts(self) -> tuple[Node, ...]:
        """Verified nodes without the root."""
        return tuple(node for node in self.nodes[1:] if node.is_verified)

    @property
    def is_chain(self) -> bool:
        """Whether the tree is a chain."""
        return tree_form([-1, *(node.parent for node in self.drafts)]) == CHAIN

    def num_of(self, state: NodeState) -> int:
        """Return the number of nodes in a state."""
        return sum(node.state is state for node in self.nodes)


def layout_of_step(
    trace: StepTrace,
    specials: Mapping[int, str] = NO_SPECIALS,
    block_sources: Collection[str] = (),
) -> TreeLayout:
    """Lay out the verified tree of a step, with the bonus token as an additional box (the ghost).

    Tokens that were kept out of the tree are drawn at their position. A chain is the first row,
    accepted or not; in other trees the accepted path is.

    Siblings of the path were compared with the target's choice and rejected; nodes further
    down were not reached.

    Args:
        trace: The step.
        specials: As `show_token` has them.
        block_sources: Names of the sources that draft all tokens of a step in one pass.
    """
    dropped = (
        *((NodeState.FORBIDDEN, dropped_token) for dropped_token in trace.forbidden),
        *((NodeState.PRUNED, dropped_token) for dropped_token in _likeliest(trace.pruned)),
    )
    count, path = len(trace.parents), trace.path
    parents = (*trace.parents, path[-1], *(dropped_token.node for _, dropped_token in dropped))
    is_chain = tree_form(trace.parents) == CHAIN
    places = _places(parents, (*(range(count) if is_chain else path), count))
    draw = _Drawer(trace, specials, parents, places)
    nodes = (
        *(draw.verified(index, drafted) for index, drafted in enumerate(trace.nodes)),
        draw.ghost(count),
        *(draw.dropped(index, *one) for index, one in enumerate(dropped, start=count + 1)),
    )
    rows, depths = places
    blocks = tuple(_blocks(nodes, block_sources))
    return TreeLayout(nodes, max(rows) + 1, max(depths) + 1, blocks)


def layout_of_plan(best: Sequence[BestNode], num_rows: int, source: str) -> TreeLayout:
    """Lay out the planned tree of the heads, before anything is decoded.

    Args:
        best: The heads' best nodes, the most valuable first.
        num_rows: Its number of rows, root included.
        source: Name of the source that drafts them.
    """
    chosen = best[: max(0, num_rows - 1)]
    parents = (-1, *(node.parent for node in chosen))
    rows, depths = _places(parents, ())
    root = Node(
        0,
        -1,
        0,
        rows[0],
        QCoreApplication.translate("Insight", "last token"),
        NodeState.ROOT,
        TARGET,
        1.0,
    )
    drafts = (
        Node(
            index=index,
            parent=node.parent,
            depth=depths[index],
            row=rows[index],
            text=QCoreApplication.translate("Insight", "draft token {0}").format(node.rank + 1),
            state=NodeState.PLANNED,
            source=TokenSource(source, node.head),
            probability=node.chance,
            rank=node.rank,
        )
        for index, node in enumerate(chosen, start=1)
    )
    return TreeLayout((root, *drafts), max(rows) + 1, max(depths) + 1)


class _Drawer:
    """Creates the positioned nodes of a step."""

    def __init__(
        self,
        trace: StepTrace,
        specials: Mapping[int, str],
        parents: Sequence[int],
        places: tuple[list[int], list[int]],
    ) -> None:
        self._trace, self._specials = trace, specials
        self._parents, (self._rows, self._depths) = parents, places
        self._judged = {
            (verdict.node, candidate.token_id): candidate.probability
            for verdict in trace.verdicts
            for candidate in (*verdict.alternatives, verdict.choice)
        }

    def verified(self, index: int, drafted: TraceNode) -> Node:
        """Return the node of the root, or of a draft token."""
        state = _state(index, self._trace)
        node = self._node(index, drafted.text, drafted.token_id, state, drafted.probability)
        return replace(node, source=drafted.source, rank=drafted.rank)

    def ghost(self, index: int) -> Node:
        """Return the node of the bonus token."""
        choice = self._trace.verdicts[-1].choice
        node = self._node(index, choice.text, choice.token_id, NodeState.GHOST, None)
        return replace(node, judged=choice.probability)

    def dropped(self, index: int, state: NodeState, dropped_token: DroppedToken) -> Node:
        """Return the node of a token that was drafted but not verified."""
        text = self._trace.pieces.get(dropped_token.token_id, b"")
        return self._node(index, text, dropped_token.token_id, state, dropped_token.probability)

    def _node(
        self, index: int, text: bytes, token_id: int, state: NodeState, probability: float | None
    ) -> Node:
        parent = self._parents[index]
        return Node(
            index=index,
            parent=parent,
            depth=self._depths[index],
            row=self._rows[index],
            text=show_token(text, token_id, self._specials),
            state=state,
            source=TARGET,
            probability=probability,
            judged=self._judged.get((parent, token_id)),
        )


def _likeliest(pruned: Iterable[DroppedToken]) -> Iterator[DroppedToken]:
    """Return the dropped tokens to draw, the most valuable first."""
    num_beside: Counter[int] = Counter()
    for dropped_token in pruned:
        num_beside[dropped_token.node] += 1
        drawn = sum(min(count, _MOST_BESIDE) for count in num_beside.values())
        if drawn <= _MOST_PRUNED and num_beside[dropped_token.node] <= _MOST_BESIDE:
            yield dropped_token


def _blocks(nodes: Sequence[Node], block_sources: Collection[str]) -> Iterator[DrawnBlock]:
    """Return the columns that each block source drafted.

    The drafter of unverified tokens is unknown, unless one source drafted all others.
    """
    drafts = [node for node in nodes[1:] if node.is_verified]
    for name in block_sources:
        own = [node for node in drafts if name in node.source.proposers]
        if own and len(own) == len(drafts):
            own += [node for node in nodes if node.state is NodeState.PRUNED]
        if own:
            yield DrawnBlock(name, min(node.depth for node in own), max(node.depth for node in own))


def _state(index: int, trace: StepTrace) -> NodeState:
    path = trace.path
    if index == 0:
        return NodeState.ROOT
    if index in path:
        return NodeState.ACCEPTED
    if trace.parents[index] not in path:
        return NodeState.UNREACHED
    is_last = trace.parents[index] == path[-1]
    # Nodes are sorted by rank among their siblings.
    return (
        NodeState.MISMATCH
        if is_last and trace.parents.index(path[-1]) == index
        else NodeState.PASSED
    )


def _places(parents: Sequence[int], path: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return row and column of each node.

    First children are right of their parents, so the path is the first row. Later ones are
    below, as close as the subtrees above them allow in every column. No lines cross.
    """
    children: list[list[int]] = [[] for _ in parents]
    depths = [0] * len(parents)
    for node, parent in enumerate(parents[1:], start=1):
        children[parent].append(node)
        depths[node] = depths[parent] + 1
    on_path = set(path)
    for siblings in children:
        siblings.sort(key=lambda node: node not in on_path)
    drops = [0] * len(parents)  # rows below the parent
    outlines: list[_Outline] = [([], [])] * len(parents)
    for node in reversed(range(len(parents))):  # children come behind their parents
        below: _Outline = ([], [])
        for child in children[node]:
            drops[child] = _drop(below, outlines[child])
            below = _joined(below, outlines[child], drops[child])
        outlines[node] = ([0, *below[0]], [0, *below[1]])
    rows = [0] * len(parents)
    for node, parent in enumerate(parents[1:], start=1):
        rows[node] = rows[parent] + drops[node]
    return rows, depths


def _drop(above: _Outline, subtree: _Outline) -> int:
    """Return the number of rows to move a subtree down, so that it doesn't overlap those above."""
    columns = zip(above[1], subtree[0], strict=False)
    return max((low + 1 - high for low, high in columns), default=0)


def _joined(above: _Outline, subtree: _Outline, drop: int) -> _Outline:
    """Return the joint outline of a subtree and the nodes above it."""
    highest, lowest = ([drop + row for row in rows] for rows in subtree)
    return above[0] + highest[len(above[0]) :], lowest + above[1][len(lowest) :]
