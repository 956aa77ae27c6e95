"""How far sources' chances come true: by source, place in the tree, and range.

Of every accepted node the children were right or wrong: what came true over what was promised is
by how much a chance is multiplied. A cell of which little is known follows the larger ones that it
lies in, and those follow what was said.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

from medusa_core.runtime.tree.step import Proposal
from medusa_core.speculation.drafters.growth import (
    FURTHER,
    KINDS,
    OFF_SPINE,
    ON_SPINE,
    RANGES,
    SECOND,
    TRUST_DEPTHS,
    trust_place,
)

_PRIOR = 6.0  # a source's chance counts as much as so many promised tokens
_LEAST, _MOST = 0.05, 3.0
_OFTEN = 32  # steps between two tables, once there were so many
_AGES = 0.97  # from table to table: what isn't tried any more comes to be tried again
_NUM_RANGES = len(RANGES) + 1
_BY_KIND = TRUST_DEPTHS * _NUM_RANGES


class _Promise(NamedTuple):
    """What a source said of a draft: its place in the table, and its chance."""

    place: int
    chance: float


class ChanceTrust:
    """What is known of the sources of one drafter.

    Attributes:
        table: By what chances are multiplied; see `RowBudget.trust`.
    """

    def __init__(self, names: Sequence[str]) -> None:
        """Trust everyone.

        Args:
            names: Of the sources, in the order of their growth.
        """
        self._places = {name: place for place, name in enumerate(names)}
        size = (len(names) + 1) * len(KINDS) * _BY_KIND
        self.table = array("f", [1.0]) * size
        self._promised, self._right = [0.0] * size, [0.0] * size
        self._num_steps, self._next = 0, 4

    def learn(self, proposal: Proposal, accepted: Sequence[int]) -> None:
        """Count what came true in a step.

        Args:
            proposal: What was verified.
            accepted: The accepted draft nodes, from the root's child downward.
        """
        promises = self._promises(proposal, (0, *accepted))
        for node, (place, chance) in promises.items():
            self._promised[place] += chance
            self._right[place] += node in accepted
        self._num_steps += bool(promises)
        if self._num_steps >= self._next:
            self._settle()

    def _promises(self, proposal: Proposal, path: Sequence[int]) -> dict[int, _Promise]:
        """What sources said of the children of a path's nodes, by node."""
        shape = proposal.tree.shape
        chances = proposal.odds().of_drafts(shape.num_nodes - 1)
        promises, is_spine = {}, True
        for place, node in enumerate(path):
            known = {child: chances[child - 1] for child in shape.children[node]}
            ranked = sorted(known, key=lambda child: -(known[child] or 0.0))
            first = ON_SPINE if is_spine else OFF_SPINE
            for child, kind in zip(ranked, (first, SECOND, *[FURTHER] * len(ranked)), strict=False):
                if chance := known[child]:
                    drafter = proposal.sources[child].drafter
                    source = self._places.get(drafter, len(self._places))
                    promises[child] = _Promise(
                        trust_place(source, kind, shape.depths[child], chance), chance
                    )
            followed = path[place + 1 : place + 2]
            is_spine = is_spine and list(followed) == ranked[:1]
        return promises

    def _settle(self) -> None:
        """Make the table anew."""
        if self._num_steps < _OFTEN:
            self._next = 2 * self._num_steps
        else:
            self._next = self._num_steps + _OFTEN
            self._promised = [_AGES * promised for promised in self._promised]
            self._right = [_AGES * right for right in self._right]
        for start in range(0, len(self.table), _BY_KIND):
            of_kind = self._share(start, start + _BY_KIND, 1.0)
            for deep in range(start, start + _BY_KIND, _NUM_RANGES):
                of_depth = self._share(deep, deep + _NUM_RANGES, of_kind)
                for place in range(deep, deep + _NUM_RANGES):
                    share = self._share(place, place + 1, of_depth)
                    self.table[place] = min(_MOST, max(_LEAST, share))

    def _share(self, start: int, end: int, usual: float) -> float:
        """What came true of what some neighbouring cells promised."""
        promised, right = sum(self._promised[start:end]), sum(self._right[start:end])
        return (right + _PRIOR * usual) / (promised + _PRIOR)

    def to_json(self) -> dict[str, Any]:
        """What was counted, by source."""
        size, names = len(KINDS) * _BY_KIND, (*self._places, "")
        return {
            name: [
                [round(count, 3) for count in counts[place * size : (place + 1) * size]]
                for counts in (self._promised, self._right)
            ]
            for place, name in enumerate(names)
            if any(self._promised[place * size : (place + 1) * size])
        }

    def go_on(self, raw: Any) -> None:
        """Go on from what was counted before; of sources that aren't there any more, nothing.

        Raises:
            TypeError: A value has another type.
            ValueError: The counts make no sense.
        """
        size = len(KINDS) * _BY_KIND
        for name, (promised, right) in dict(raw).items():
            place = self._places.get(name, len(self._places))
            if name and name not in self._places:
                continue
            counts = [float(count) for count in (*promised, *right)]
            if len(promised) != size or len(right) != size or not all(0 <= c < 1e9 for c in counts):
                raise ValueError("the counts make no sense")
            self._promised[place * size : (place + 1) * size] = counts[:size]
            self._right[place * size : (place + 1) * size] = counts[size:]
        self._num_steps = self._next = _OFTEN
        self._settle()
