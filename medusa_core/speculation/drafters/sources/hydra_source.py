"""Hydra heads as a source: each says what may follow every path that the ones before it drafted.

Source: Hydra (Ankner et al. 2024), section 3.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from medusa_core.heads.hydra import HydraHeads
from medusa_core.loading.target import Target
from medusa_core.messages import SourceInfo
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.source import (
    Candidates,
    Paths,
    SourceSpec,
    candidates_of,
)
from medusa_core.speculation.drafters.sources.heads_source import ranks_within


class HydraSource:
    """Asks one head for each level of a tree, on all of its paths at once."""

    def __init__(self, heads: HydraHeads, budget: RowBudget) -> None:
        # What a head guesses behind one path says nothing of its guesses behind another.
        self.guesses: Sequence[Sequence[int]] = ()
        self._heads = heads
        levels = heads.num_heads if budget.levels is None else budget.levels
        self._num_heads = min(heads.num_heads, levels)
        self._num_ranks = min(heads.num_columns, ranks_within(budget))
        self._seen: Observation | None = None
        self._root_id = 0
        self._levels = 0

    def begin(self, token_ids: Sequence[int]) -> None:
        self._seen = None

    def start(self, root_id: int, most_rows: int) -> None:
        self._root_id = root_id
        self._levels = min(self._num_heads, most_rows - 1)

    def candidates(self, paths: Paths) -> Candidates | None:
        seen = self._seen
        if seen is None or paths.level >= self._levels:
            return None
        read = torch.full((paths.num, paths.level + 1), self._root_id)
        drafts = torch.tensor(paths.token_ids[: paths.num * paths.level], dtype=torch.int64)
        read[:, 1:] = drafts.view(paths.num, paths.level)
        ranked = self._heads.ranked(seen.hidden, read, self._num_ranks, seen.chance)
        return candidates_of(ranked)

    def observe(self, observation: Observation) -> None:
        self._seen = observation

    def truncate(self, length: int) -> None:
        # The state belongs to the row before the root; after a cut it belongs to no row.
        self._seen = None


def _serves(target: Target) -> bool:
    return isinstance(target.heads, HydraHeads)


def _make(target: Target, budget: RowBudget) -> HydraSource:
    heads = target.heads
    assert isinstance(heads, HydraHeads)  # as it serves
    return HydraSource(heads, budget)


HINT = "Load Hydra heads for this model, or choose the drafter 'suffix' or 'none'."
SPEC = SourceSpec(
    SourceInfo(
        name="hydra",
        label="Hydra",
        badge="y",
        explanation="guessed by a Hydra head, which reads the guesses before its own",
        colours=("blue", "amber", "green", "pink", "vermilion"),
        line="dash-dot",
        is_numbered=True,
    ),
    serves=_serves,
    make=_make,
    hint=HINT,
    of_heads=True,
)
