"""Medusa with a tree of its own for every step, grown by how sure the heads are.

Where a head is sure, its best guess is all that is worth a row; where it wavers, several are. A
node is worth the product of what the heads give the guesses on its path; where chance chooses, of
how likely they are with what is known of it.

Source: EAGLE-2 (Li et al. 2024), section 4.1, which grows trees by the drafter's confidence.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import NamedTuple

from torch import Tensor

from medusa_core.drafters.medusa import SPEC as MEDUSA
from medusa_core.drafters.medusa import heads_and_trees, medusa_sources
from medusa_core.engine.drafter import DrafterSpec, Observation
from medusa_core.engine.learning import NUM_RANKS
from medusa_core.heads.medusa import MedusaHeads, Ranked
from medusa_core.messages import TARGET, TokenSource
from medusa_core.native.grow import grower
from medusa_core.target import Target
from medusa_core.tree.grown import TokenPath
from medusa_core.tree.shape import TokenTree, TreeShape
from medusa_core.types import Chance, Proposal

_MOST_RANKS = 32


class Form(NamedTuple):
    """A shape, and what follows from it alone.

    Attributes:
        shape: The shape.
        sources: Where each node comes from.
    """

    shape: TreeShape
    sources: tuple[TokenSource, ...]


class Guess(NamedTuple):
    """What the heads guess behind a root, and the tree that it is worth.

    Attributes:
        ranked: Their guesses.
        worths: How likely each guess is; all heads' one after the other.
        form: The tree of the most valuable ones.
        least: What another draft must be worth more than to be taken instead.
    """

    ranked: Ranked
    worths: array[float]
    form: Form
    least: float

    def proposal(self, root_id: int) -> Proposal:
        """The tree under its root."""
        ranked, shape = self.ranked, self.form.shape
        drafts = [ranked.token_ids[head][rank] for head, rank in shape.places]
        return Proposal(
            TokenTree(shape, (root_id, *drafts)),
            self.form.sources,
            partial(ranked.odds, shape),
            self.guesses,
        )

    @property
    def paths(self) -> dict[TokenPath, tuple[int, float]]:
        """The tokens down to every draft: its place among all guesses, and what it is worth."""
        shape, num_ranks = self.form.shape, len(self.ranked.columns[0])
        flat = [token_id for best in self.ranked.token_ids for token_id in best]
        found: list[tuple[TokenPath, float]] = [((), 1.0)]
        drafts: dict[TokenPath, tuple[int, float]] = {}
        places = shape.places_among(num_ranks)
        for parent, place in zip(shape.parents[1:], places, strict=True):
            above, worth = found[parent]
            path, worth = (*above, flat[place]), worth * self.worths[place]
            found.append((path, worth))
            drafts[path] = place, worth
        return drafts

    @property
    def guesses(self) -> list[list[int]]:
        """What is learned from."""
        return [best[:NUM_RANKS] for best in self.ranked.token_ids]


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
        guess = self.guess(root_id, max_rows)
        if guess is None:
            return Proposal(TokenTree(TreeShape.root_only(), (root_id,)), (TARGET,))
        return guess.proposal(root_id)

    def guess(self, root_id: int, max_rows: int) -> Guess | None:
        """What to draft; None where the heads have nothing to read, or there is no room.

        Args:
            root_id: The decided token.
            max_rows: Most nodes, root included.
        """
        rows = min(self._num_rows, max_rows)
        if self._hidden is None or rows < 2:
            return None
        ranks = [self._num_ranks] * self._num_heads
        ranked = self._heads.ranked(self._hidden, root_id, ranks, chance=self._chance)
        worths = ranked.worths()
        children, least = self._grow(worths, self._num_ranks, rows)
        return Guess(ranked, worths, _form(children), least)

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


def _build(target: Target, num_rows: int) -> DynamicDrafter:
    return DynamicDrafter(heads_and_trees(target)[0], num_rows)


SPEC = DrafterSpec("medusa-dynamic", serves=MEDUSA.serves, build=_build)
