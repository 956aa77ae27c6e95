"""Medusa with a tree of its own for every step, grown by how sure the heads are.

Where a head is sure, its best guess is all that is worth a row; where it wavers, several are. A
node is worth the product of what the heads give the guesses on its path.

Source: EAGLE-2 (Li et al. 2024), section 4.1, which grows trees by the drafter's confidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import NamedTuple

from torch import Tensor

from medusa_core.drafters.medusa import SPEC as MEDUSA
from medusa_core.drafters.medusa import heads_and_trees
from medusa_core.engine.drafter import DrafterSpec, Observation
from medusa_core.engine.learning import NUM_RANKS
from medusa_core.heads.medusa import MedusaHeads
from medusa_core.messages import TARGET, TokenSource
from medusa_core.target import Target
from medusa_core.tree.search import Path, grow
from medusa_core.tree.shape import TokenTree, TreeShape
from medusa_core.types import Chance, Proposal

_MOST_RANKS = 10


class DynamicDrafter:
    """Grows a tree from the heads' probabilities in each step."""

    def __init__(self, heads: MedusaHeads, num_rows: int) -> None:
        self._heads = heads
        self._num_rows = num_rows
        self._num_heads = min(heads.num_heads, num_rows - 1)
        self._num_ranks = min(heads.num_columns, max(NUM_RANKS, min(num_rows - 1, _MOST_RANKS)))
        self._hidden: Tensor | None = None
        self._chance: Chance | None = None

    def begin(self, token_ids: Sequence[int]) -> None:
        self._hidden = None

    def propose(self, root_id: int, max_rows: int) -> Proposal:
        rows = min(self._num_rows, max_rows)
        if self._hidden is None or rows < 2:
            return Proposal(TokenTree(TreeShape.root_only(), (root_id,)), (TARGET,))
        ranked = self._heads.ranked(
            self._hidden, root_id, [self._num_ranks] * self._num_heads, chance=self._chance
        )
        chances, ranks = ranked.chances().tolist(), self._num_ranks
        of_heads = [chances[start : start + ranks] for start in range(0, len(chances), ranks)]
        form = _form_of(grow(of_heads, rows - 1))
        drafts = [ranked.token_ids[head][rank] for head, rank in form.shape.places]
        return Proposal(
            TokenTree(form.shape, (root_id, *drafts)),
            form.sources,
            partial(ranked.odds, form.shape),
            [best[:NUM_RANKS] for best in ranked.token_ids],
        )

    def observe(self, observation: Observation) -> None:
        self._hidden, self._chance = observation.hidden, observation.chance

    def truncate(self, length: int) -> None:
        self._hidden = None


class _Form(NamedTuple):
    """A shape, and what follows from it alone.

    Attributes:
        shape: The shape.
        sources: Where each node comes from.
    """

    shape: TreeShape
    sources: tuple[TokenSource, ...]


def _form_of(grown: Sequence[tuple[Path, float]]) -> _Form:
    return _form(tuple(sorted([path for path, _ in grown], key=lambda path: (len(path), path))))


@lru_cache(maxsize=2048)
def _form(paths: tuple[Path, ...]) -> _Form:
    """One object per shape, so that what is computed from it is computed once."""
    shape = TreeShape.from_paths(paths)
    drafted = (TokenSource("medusa", depth) for depth in shape.depths[1:])
    return _Form(shape, (TARGET, *drafted))


def _build(target: Target, num_rows: int) -> DynamicDrafter:
    return DynamicDrafter(heads_and_trees(target)[0], num_rows)


SPEC = DrafterSpec("medusa-dynamic", serves=MEDUSA.serves, build=_build)
