"""Source of Hydra heads: each drafts after every path of the heads before it.

Source: Hydra (Ankner et al. 2024), section 3.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from medusa_core.heads.hydra import HydraHeads
from medusa_core.heads.ranked import Ranked, rank_tokens
from medusa_core.i18n import tr
from medusa_core.messages import SourceInfo
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.level_source import LevelScores, LevelSource, head_spec
from medusa_core.speculation.drafters.sources.heads_source import ranks_within


class HydraSource(LevelSource):
    """Runs one head per level of a tree; see `LevelSource`."""

    def __init__(self, heads: HydraHeads, budget: RowBudget) -> None:
        levels = heads.num_heads if budget.levels is None else budget.levels
        super().__init__(min(heads.num_heads, levels))
        self._heads = heads
        self._num_ranks = min(heads.num_columns, ranks_within(budget))
        self._root_id = 0
        self._levels = 0

    def start(self, root_id: int, most_rows: int) -> None:
        """Start a step of at most `most_rows` rows."""
        self._root_id = root_id
        self._levels = min(self._num_levels, most_rows - 1)

    def level_scores(self, level: int, paths: Sequence[tuple[int, ...]]) -> LevelScores | None:
        """Run the head of a level after each path."""
        if self._seen is None or level >= self._levels:
            return None
        rows = torch.tensor([(self._root_id, *path) for path in paths])
        return LevelScores(self._heads.logits(self._seen.hidden, rows), self._heads.tokens)

    def _ranked(self, scored: LevelScores, depth: int) -> Ranked:
        """The best tokens of each path, as many as can be worth a row."""
        return rank_tokens(scored.scores, self._num_ranks, self._chance, depth, scored.tokens)


HINT = tr("Load Hydra heads for this model, or choose the drafter 'suffix' or 'none'.")
SPEC = head_spec(
    SourceInfo(
        name="hydra",
        label="Hydra",
        badge="y",
        explanation="drafted by a Hydra head, which reads the draft tokens before its own",
        colours=("blue", "amber", "green", "pink", "vermilion"),
        line="dash-dot",
        is_numbered=True,
    ),
    HydraHeads,
    HydraSource,
    HINT,
    preference=40,
)
