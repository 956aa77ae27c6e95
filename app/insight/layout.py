"""A step's tree as it is drawn: states, places and words; no Qt, no widget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from app.insight.words import show_token
from medusa_core.messages import TARGET, BestNode, StepTrace, TokenSource


class State(Enum):
    """What became of a node."""

    ROOT = "decided before"
    ACCEPTED = "accepted"
    MISMATCH = "the best guess where the model chose otherwise"
    PASSED = "not what the model chose"
    UNREACHED = "not reached"
    GHOST = "chosen by the model"
    PLANNED = "planned"


@dataclass(frozen=True, slots=True)
class Node:
    """A node on its place.

    Attributes:
        index: Index in the tree; that of the ghost is the number of nodes.
        parent: Index of the parent; −1 for the root.
        depth: Its column.
        row: Its row; may lie between two whole ones.
        text: What it says.
        state: What became of it.
        source: Who drafted it.
        probability: What is known of its chance; None if nothing is.
        rank: Place among its drafter's guesses; −1 without.
    """

    index: int
    parent: int
    depth: int
    row: float
    text: str
    state: State
    source: TokenSource
    probability: float | None
    rank: int = -1


@dataclass(frozen=True, slots=True)
class TreeLayout:
    """A tree ready to be drawn.

    Attributes:
        nodes: Its nodes; those on the path are on one straight line where there is one.
        num_rows: Rows it takes.
        num_columns: Columns it takes, the ghost's included.
    """

    nodes: tuple[Node, ...] = field(default=())
    num_rows: int = 0
    num_columns: int = 0


def lay_out_step(trace: StepTrace) -> TreeLayout:
    """The verified tree of a step, with the target's last choice as a ghost.

    Nodes beside the path were compared with the target's choice and are none of it; those further
    down were not reached.
    """
    path = trace.path
    choice = trace.verdicts[-1].choice
    parents = (*trace.parents, path[-1])
    rows, depths = _places(parents, (*path, len(trace.parents)))
    nodes = [
        Node(
            index=index,
            parent=told.parent,
            depth=depths[index],
            row=rows[index],
            text=show_token(told.text, told.token_id),
            state=_state(index, trace),
            source=told.source,
            probability=told.probability,
            rank=told.rank,
        )
        for index, told in enumerate(trace.nodes)
    ]
    ghost = len(nodes)
    nodes.append(
        Node(
            index=ghost,
            parent=path[-1],
            depth=depths[ghost],
            row=rows[ghost],
            text=show_token(choice.text, choice.token_id),
            state=State.GHOST,
            source=TARGET,
            probability=choice.probability,
        )
    )
    return TreeLayout(tuple(nodes), round(max(rows)) + 1, max(depths) + 1)


def lay_out_plan(best: Sequence[BestNode], num_rows: int) -> TreeLayout:
    """The tree of so many rows that the heads would fill, before anything is decoded.

    Args:
        best: The heads' best nodes, the most valuable first.
        num_rows: Its rows, root included.
    """
    chosen = best[: max(0, num_rows - 1)]
    parents = (-1, *(node.parent for node in chosen))
    rows, depths = _places(parents, ())
    root = Node(0, -1, 0, rows[0], "last token", State.ROOT, TARGET, 1.0)
    drafts = (
        Node(
            index=index,
            parent=node.parent,
            depth=depths[index],
            row=rows[index],
            text=f"guess {node.rank + 1}",
            state=State.PLANNED,
            source=TokenSource("medusa", node.head),
            probability=node.chance,
            rank=node.rank,
        )
        for index, node in enumerate(chosen, start=1)
    )
    return TreeLayout((root, *drafts), round(max(rows)) + 1, max(depths) + 1)


def _state(index: int, trace: StepTrace) -> State:
    path = trace.path
    if index == 0:
        return State.ROOT
    if index in path:
        return State.ACCEPTED
    if trace.parents[index] not in path:
        return State.UNREACHED
    is_last = trace.parents[index] == path[-1]
    # Nodes are sorted by rank among their siblings.
    return State.MISMATCH if is_last and trace.parents.index(path[-1]) == index else State.PASSED


def _places(parents: Sequence[int], path: Sequence[int]) -> tuple[list[float], list[int]]:
    """Row and column of every node: the path lies in the first row, leaves below each other."""
    children: list[list[int]] = [[] for _ in parents]
    depths = [0] * len(parents)
    for node, parent in enumerate(parents[1:], start=1):
        children[parent].append(node)
        depths[node] = depths[parent] + 1
    on_path = set(path)
    for siblings in children:
        siblings.sort(key=lambda node: node not in on_path)
    rows = [0.0] * len(parents)
    next_row = 0.0
    stack = [0]
    order: list[int] = []
    while stack:
        node = stack.pop()
        order.append(node)
        if children[node]:
            stack += reversed(children[node])
        else:
            rows[node] = next_row
            next_row += 1
    for node in reversed(order):
        if children[node]:
            first = children[node][0]
            last = first if first in on_path else children[node][-1]
            rows[node] = (rows[first] + rows[last]) / 2
    return rows, depths
