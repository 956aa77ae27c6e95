"""Medusa with a tree of its own for every step, grown by how sure the heads are.

Where a head is sure, its best guess is all that is worth a row; where it wavers, several are. A
node is worth the product of what the heads give the guesses on its path; where chance chooses, of
how likely they are with what is known of it.

Source: EAGLE-2 (Li et al. 2024), section 4.1, which grows trees by the drafter's confidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

from torch import Tensor

from medusa_core.drafters.medusa import SPEC as MEDUSA
from medusa_core.drafters.medusa import heads_and_trees, medusa_sources
from medusa_core.engine.drafter import DrafterSpec, Observation
from medusa_core.engine.learning import NUM_RANKS
from medusa_core.heads.medusa import MedusaHeads, Ranked
from medusa_core.messages import TARGET
from medusa_core.native.grow import grower
from medusa_core.target import Target
from medusa_core.tree.shape import TokenTree, TreeShape
from medusa_core.types import Chance, Form, Proposal

_MOST_RANKS = 32


class DynamicDrafter:
    """Grows a tree from the heads' probabilities in each step."""

    def __init__(self, heads: MedusaHeads, num_rows: int) -> None:
        self._heads = heads
        self._num_rows = num_rows
        self._num_heads = min(heads.num_heads, num_rows - 1)
        self._num_ranks = min(heads.num_columns, max(NUM_RANKS, min(num_rows // 2, _MOST_RANKS)))
        self._grow = grower(num_rows)
        self._hidden: Tensor | None = None
        self._chance: Chance | None = None

    def begin(self, token_ids: Sequence[int]) -> None:
        self._hidden = None

    def propose(self, root_id: int, max_rows: int) -> Proposal:
        rows = min(self._num_rows, max_rows)
        ranked = self.ranked(root_id, rows)
        if ranked is None:
            return Proposal(TokenTree(TreeShape.root_only(), (root_id,)), (TARGET,))
        shape, sources = _form(self._grow(ranked.worths(), self._num_ranks, rows))
        drafts = [ranked.token_ids[head][rank] for head, rank in shape.places]
        tree = TokenTree(shape, (root_id, *drafts))
        return Proposal(tree, sources, partial(ranked.odds, shape), learned_from(ranked))

    def ranked(self, root_id: int, rows: int) -> Ranked | None:
        """What the heads guess; None where they have nothing to read, or there is no room.

        Args:
            root_id: The decided token.
            rows: Most nodes, root included.
        """
        if self._hidden is None or rows < 2:
            return None
        ranks = [self._num_ranks] * self._num_heads
        return self._heads.ranked(self._hidden, root_id, ranks, chance=self._chance)

    def observe(self, observation: Observation) -> None:
        self._hidden, self._chance = observation.hidden, observation.chance

    def truncate(self, length: int) -> None:
        # The state belongs to the row before the root; after a cut it belongs to no row.
        self._hidden = None


@lru_cache(maxsize=2048)
def _form(children: bytes) -> Form:
    """One object per shape, so that what is computed from it is computed once."""
    shape = TreeShape.from_children(memoryview(children).cast("i").tolist())
    return Form(shape, medusa_sources(shape))


def learned_from(ranked: Ranked) -> list[list[int]]:
    """What is learned of the heads from: their best guesses."""
    return [best[:NUM_RANKS] for best in ranked.token_ids]


def _build(target: Target, num_rows: int) -> DynamicDrafter:
    return DynamicDrafter(heads_and_trees(target)[0], num_rows)


SPEC = DrafterSpec("medusa-dynamic", serves=MEDUSA.serves, build=_build)
