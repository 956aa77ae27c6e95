"""Acceptance ratios: accepted over expected drafts, by source, place in the tree and probability.

After each accepted node its children were either right or wrong. Accepted over expected drafts is
the factor by which a source's probabilities are multiplied (calibration). A cell of the table with
few observations follows the larger cells that contain it, and those follow the source.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from medusa_core.runtime.tree.step import Proposal
from medusa_core.speculation.drafters.growth import ratio_index
from medusa_core.system.native.constants import RATIO_DEPTHS, RATIO_RANGES, NodeRank

_PRIOR = 6.0  # a source's own probability counts as much as so many expected drafts
_MIN, _MAX = 0.05, 3.0
_UPDATE_STEPS = 32  # steps between two tables, after as many at the start
_FADING = 0.97  # from table to table, so that drafts that became rare are tried again
_NUM_RANGES = len(RATIO_RANGES) + 1
_RANK_CELLS = RATIO_DEPTHS * _NUM_RANGES
_SOURCE_CELLS = len(NodeRank) * _RANK_CELLS


class AcceptanceRatios:
    """Acceptance ratios of one drafter's sources.

    Attributes:
        table: Factors of probabilities; see `RowBudget.acceptance_ratios`.
    """

    def __init__(self, names: Sequence[str]) -> None:
        """Start with ratios of 1.

        Args:
            names: Names of the sources, in the order of growth.
        """
        self._indices = {name: index for index, name in enumerate(names)}
        size = (len(names) + 1) * _SOURCE_CELLS
        self.table = array("f", [1.0]) * size
        self._expected, self._accepted = [0.0] * size, [0.0] * size
        self._num_steps, self._next_update = 0, 4

    def learn(self, proposal: Proposal, accepted: Sequence[int]) -> None:
        """Count expected and accepted drafts of a step.

        Args:
            proposal: The verified proposal.
            accepted: The accepted draft nodes, from the root's child downward.
        """
        if proposal.tree.shape.num_nodes == 1:  # also while drafting is paused
            return
        cells = self._cells(proposal, (0, *accepted))
        for node, (cell, probability) in cells.items():
            self._expected[cell] += probability
            self._accepted[cell] += node in accepted
        self._num_steps += bool(cells)
        if self._num_steps >= self._next_update:
            self._update_table()

    def _cells(self, proposal: Proposal, path: Sequence[int]) -> dict[int, tuple[int, float]]:
        """Table cell and probability of each child of the path's nodes, by node."""
        shape = proposal.tree.shape
        probabilities = proposal.odds().of_drafts(shape.num_nodes - 1)
        cells, is_greedy = {}, True
        for place, node in enumerate(path):
            known = {child: probabilities[child - 1] for child in shape.children[node]}
            ranked = sorted(known, key=lambda child: -(known[child] or 0.0))
            first = NodeRank.GREEDY if is_greedy else NodeRank.FIRST
            ranks = (first, NodeRank.SECOND, *[NodeRank.LOWER] * len(ranked))
            for child, rank in zip(ranked, ranks, strict=False):
                if probability := known[child]:
                    drafter = proposal.sources[child].drafter
                    source = self._indices.get(drafter, len(self._indices))
                    cell = ratio_index(source, rank, shape.depths[child], probability)
                    cells[child] = (cell, probability)
            followed = path[place + 1 : place + 2]
            is_greedy = is_greedy and list(followed) == ranked[:1]
        return cells

    def _update_table(self) -> None:
        """Fade the counts, and compute the factors of all cells anew."""
        if self._num_steps < _UPDATE_STEPS:
            self._next_update = 2 * self._num_steps
        else:
            self._next_update = self._num_steps + _UPDATE_STEPS
            self._expected = [_FADING * expected for expected in self._expected]
            self._accepted = [_FADING * accepted for accepted in self._accepted]
        for start in range(0, len(self.table), _RANK_CELLS):
            of_kind = self._ratio(start, start + _RANK_CELLS, 1.0)
            for deep in range(start, start + _RANK_CELLS, _NUM_RANGES):
                of_depth = self._ratio(deep, deep + _NUM_RANGES, of_kind)
                for cell in range(deep, deep + _NUM_RANGES):
                    self.table[cell] = min(_MAX, max(_MIN, self._ratio(cell, cell + 1, of_depth)))

    def _ratio(self, start: int, end: int, prior: float) -> float:
        """Accepted over expected drafts in a range of cells, with the ratio of a larger range."""
        expected, accepted = sum(self._expected[start:end]), sum(self._accepted[start:end])
        return (accepted + _PRIOR * prior) / (expected + _PRIOR)

    def to_json(self) -> dict[str, Any]:
        """The counts by source, for `load`."""
        names = (*self._indices, "")
        slices = {
            name: slice(index * _SOURCE_CELLS, (index + 1) * _SOURCE_CELLS)
            for index, name in enumerate(names)
        }
        return {
            name: [
                [round(count, 3) for count in counts[cells]]
                for counts in (self._expected, self._accepted)
            ]
            for name, cells in slices.items()
            if any(self._expected[cells])
        }

    def load(self, raw: Any) -> None:
        """Continue from the counts of earlier runs; sources that are gone are left out.

        Raises:
            TypeError: A value has another type.
            ValueError: The counts make no sense.
        """
        for name, (expected, accepted) in dict(raw).items():
            index = self._indices.get(name, len(self._indices))
            if name and name not in self._indices:
                continue
            counts = [float(count) for count in (*expected, *accepted)]
            has_size = len(expected) == len(accepted) == _SOURCE_CELLS
            if not has_size or not all(0 <= count < 1e9 for count in counts):
                raise ValueError("the counts make no sense")
            cells = slice(index * _SOURCE_CELLS, (index + 1) * _SOURCE_CELLS)
            self._expected[cells] = counts[:_SOURCE_CELLS]
            self._accepted[cells] = counts[_SOURCE_CELLS:]
        self._num_steps = self._next_update = _UPDATE_STEPS
        self._update_table()
