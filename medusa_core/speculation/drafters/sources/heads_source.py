"""Source of Medusa heads: head k drafts the token k positions after the root.

Source: Medusa (Cai et al. 2024), section 2.1.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from medusa_core.heads.medusa import MedusaHeads
from medusa_core.i18n import tr
from medusa_core.loading.target import Target
from medusa_core.messages import DrafterChoice, SourceInfo
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.drafter import NUM_RANKS
from medusa_core.speculation.drafters.level_source import head_spec
from medusa_core.speculation.drafters.observation import LastObservation
from medusa_core.speculation.drafters.source import Candidates, Paths, candidates_by_level

_MAX_RANKS = 32


class HeadsSource(LastObservation):
    """Runs the heads once per step, on the hidden state before the root."""

    def __init__(self, heads: MedusaHeads, budget: RowBudget) -> None:
        self.top_tokens: Sequence[Sequence[int]] = ()
        self._heads = heads
        levels = heads.num_heads if budget.levels is None else budget.levels
        self._num_heads = min(heads.num_heads, levels)
        self._num_ranks = min(heads.num_columns, ranks_within(budget))
        self._candidates: list[Candidates] = []

    def start(self, root_id: int, most_rows: int) -> None:
        """Start a step: run the heads of all levels on the state before the root."""
        self.top_tokens, self._candidates = (), []
        num_heads, seen = min(self._num_heads, most_rows - 1), self._seen
        if seen is None or num_heads < 1:
            return
        num_ranks = [self._num_ranks] * num_heads
        ranked = self._heads.ranked(seen.hidden, root_id, num_ranks, chance=seen.chance)
        self.top_tokens = [best[:NUM_RANKS] for best in ranked.token_ids]
        self._candidates = candidates_by_level(ranked)

    def candidates(self, paths: Paths) -> Candidates | None:
        """Candidates of a level, whatever the path."""
        return self._candidates[paths.level] if paths.level < len(self._candidates) else None


def ranks_within(budget: RowBudget) -> int:
    """Number of top tokens per head that can be worth a row.

    The probability of the r-th token is rarely above 0.5 / r.
    """
    min_cost = min((more - less for less, more in pairwise(budget.row_costs)), default=0.0)
    max_ranks = min(budget.most // 2, _MAX_RANKS)
    return max(NUM_RANKS, min(max_ranks, int(0.5 / min_cost)) if min_cost else max_ranks)


def medusa_heads(target: Target) -> MedusaHeads | None:
    """A target's Medusa heads; None without any."""
    return target.heads if isinstance(target.heads, MedusaHeads) else None


def has_heads(target: Target) -> bool:
    """Whether a target has Medusa heads."""
    heads = medusa_heads(target)
    return heads is not None and heads.num_heads > 0


HINT = tr("Load Medusa heads for this model, or choose the drafter 'suffix' or 'none'.")
SPEC = head_spec(
    SourceInfo(
        name="medusa",
        label="head",
        badge="h",
        explanation="drafted by a Medusa head; head k drafts the token k places ahead",
        colours=("blue", "amber", "green", "pink", "vermilion"),
        line="solid",
        is_numbered=True,
    ),
    MedusaHeads,
    HeadsSource,
    HINT,
    serves=has_heads,
    is_ranked=True,
    drafts_at_once=True,
    alone=DrafterChoice(
        "medusa-dynamic",
        "Medusa, dynamic tree",
        "The heads' draft tokens, in a tree that is larger where the heads are unsure.",
    ),
    preference=11,
)
