"""The Medusa drafter: heads on the target's last hidden state fill a fixed tree.

Source: Medusa (Cai et al. 2024), sections 2.1.1 and 2.1.2.
"""

from __future__ import annotations

from functools import partial

from medusa_core.errors import RequestError
from medusa_core.heads.medusa import MedusaHeads
from medusa_core.i18n import tr
from medusa_core.loading.target import Target
from medusa_core.messages import CHAIN, TARGET, DrafterChoice, Odds, TokenSource
from medusa_core.models.text.grammar import Grammar
from medusa_core.runtime.tree.shape import (
    TokenTree,
    TreeShape,
)
from medusa_core.runtime.tree.step import (
    Chance,
    Proposal,
    RowBudget,
)
from medusa_core.runtime.tree.tables import TreePresets
from medusa_core.speculation.drafters.constrained import GrammarFilter
from medusa_core.speculation.drafters.drafter import (
    NUM_RANKS,
    DrafterSpec,
    accuracies_of,
)
from medusa_core.speculation.drafters.observation import LastObservation, Observation
from medusa_core.speculation.drafters.sources.heads_source import SPEC as HEADS
from medusa_core.speculation.drafters.sources.heads_source import (
    has_heads,
    medusa_heads,
)

_GRAMMAR_RANKS = 4  # times the ranks of the tree are computed under a grammar


class MedusaDrafter(LastObservation):
    """Runs the heads that the tree uses on the hidden state before the root."""

    def __init__(
        self,
        heads: MedusaHeads,
        shape: TreeShape,
        expected_accepted: float = 0.0,
        applies_noise: bool = True,
    ) -> None:
        """Prepare to draft.

        Args:
            heads: The heads.
            shape: The tree.
            expected_accepted: Expected number of accepted drafts of the tree.
            applies_noise: Apply the rule's noise to the heads' logits.
        """
        self._applies_noise = applies_noise
        self._heads = heads
        self._shape = shape
        self._expected_accepted = expected_accepted
        self._sources = medusa_sources(shape)

    def propose(self, root_id: int, max_rows: int, grammar: Grammar | None = None) -> Proposal:
        """Fill the tree with the heads' best tokens after the last observation."""
        shape, seen = self._shape, self._seen
        if shape.num_nodes > max_rows:
            shape = shape.first_rows(max_rows)
        if seen is None or shape.num_nodes == 1:
            return Proposal(TokenTree(TreeShape.root_only(), (root_id,)), (TARGET,))
        chance = seen.chance if self._applies_noise else None
        if grammar is not None:
            return self._constrained(root_id, shape, seen, grammar, chance)
        ranked = self._heads.ranked(seen.hidden, root_id, shape.num_ranks, NUM_RANKS, chance)
        token_ids = ranked.token_ids
        tree = TokenTree(shape, (root_id, *[token_ids[head][rank] for head, rank in shape.places]))
        odds = partial(ranked.odds, shape)
        expected_accepted = self._expected_accepted if shape is self._shape else 0.0
        return Proposal(tree, self._sources[: shape.num_nodes], odds, token_ids, expected_accepted)

    def _constrained(
        self,
        root_id: int,
        shape: TreeShape,
        seen: Observation,
        grammar: Grammar,
        chance: Chance | None,
    ) -> Proposal:
        """Fill the shape with each head's best tokens that the grammar allows."""
        at_least = max(NUM_RANKS, _GRAMMAR_RANKS * max(shape.num_ranks))
        ranked = self._heads.ranked(seen.hidden, root_id, shape.num_ranks, at_least, chance)
        allowed = GrammarFilter(grammar)
        filled = allowed.fill(root_id, shape, ranked.token_ids, ranked.chances())
        odds = Odds(ranked.chances().tobytes(), filled.places)
        sources = medusa_sources(filled.tree.shape)
        top_tokens = ranked.token_ids
        return Proposal(filled.tree, sources, lambda: odds, top_tokens, forbidden=allowed.forbidden)


def medusa_sources(shape: TreeShape) -> tuple[TokenSource, ...]:
    """Sources of the nodes of the heads' tree."""
    drafted = (TokenSource("medusa", depth) for depth in shape.depths[1:])
    return (TARGET, *drafted)


def heads_and_trees(target: Target) -> tuple[MedusaHeads, TreePresets]:
    """A target's Medusa heads and trees.

    Raises:
        RequestError: The target has no heads.
    """
    heads = medusa_heads(target)
    if heads is None or target.trees is None:
        raise RequestError(
            tr("{0} has no Medusa heads.", target.name),
            "Choose heads for this model, or the drafter 'suffix' or 'none'.",
        )
    return heads, target.trees


def _build(target: Target, budget: RowBudget) -> MedusaDrafter:
    """Make the drafter with the heads' chain or their best tree within a budget."""
    heads, trees = heads_and_trees(target)
    if budget.growth == CHAIN:
        shape = TreeShape.chain(1 + min(heads.num_heads, budget.most - 1))
    else:
        shape = trees.tree(budget.most).pruned(heads.num_heads, heads.num_columns)
    return MedusaDrafter(heads, shape, trees.expected_length(shape) - 1)


SPEC = DrafterSpec(
    DrafterChoice("medusa", "Medusa heads", "The heads' draft tokens, in one tree for all steps."),
    serves=has_heads,
    build=_build,
    preference=10,
    sources=(HEADS.name,),
    accuracies=accuracies_of,
)
