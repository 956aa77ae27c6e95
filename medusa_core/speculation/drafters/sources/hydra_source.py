"""Source of Hydra heads: each drafts after every path of the heads before it.

Source: Hydra (Ankner et al. 2024), section 3.
"""

from __future__ import annotations

from collections.abc import Sequence

from medusa_core.heads.hydra import HydraHeads
from medusa_core.i18n import tr
from medusa_core.messages import SourceInfo
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.level_source import head_spec
from medusa_core.speculation.drafters.observation import LastObservation
from medusa_core.speculation.drafters.source import Candidates, Paths, candidates_of
from medusa_core.speculation.drafters.sources.heads_source import ranks_within


class HydraSource(LastObservation):
    """Runs one head per level of a tree, on all of its paths at once; see `Source`.

    Attributes:
        top_tokens: Empty, as candidates depend on the path.
    """

    def __init__(self, heads: HydraHeads, budget: RowBudget) -> None:
        levels = heads.num_heads if budget.levels is None else budget.levels
        self.top_tokens: Sequence[Sequence[int]] = ()
        self._num_levels = min(heads.num_heads, levels)
        self._heads = heads
        self._num_ranks = min(heads.num_columns, ranks_within(budget))
        self._root_id = 0
        self._levels = 0

    def start(self, root_id: int, most_rows: int) -> None:
        """Start a step of at most `most_rows` rows."""
        self._root_id = root_id
        self._levels = min(self._num_levels, most_rows - 1)

    def candidates(self, paths: Paths) -> Candidates | None:
        """Run the head of a level after each path; see `CandidateSource`."""
        if self._seen is None or paths.level >= self._levels:
            return None
        ranked = self._heads.ranked(
            self._seen.hidden,
            self._root_id,
            paths.token_ids,
            paths.num,
            paths.level,
            self._num_ranks,
            self._seen.chance,
        )
        return candidates_of(ranked, paths.num)


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
