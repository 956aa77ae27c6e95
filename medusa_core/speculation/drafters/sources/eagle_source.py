"""Source of EAGLE heads; see `ChainedSource`."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from medusa_core.heads.eagle import EagleHead
from medusa_core.i18n import tr
from medusa_core.messages import DrafterChoice, SourceInfo
from medusa_core.runtime.backends.native_layers import TreeRows
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.chained_source import ChainedSource
from medusa_core.speculation.drafters.level_source import LevelScores, head_spec


class ParallelSource(ChainedSource):
    """Drafts all levels in one pass, by a P-EAGLE head; its cache is that of `ChainedSource`.

    The root's row is followed by rows of MASK, each of which attends to those before it. Their
    drafts don't depend on the path: all paths of a level have the same candidates.

    Source: P-EAGLE (arXiv 2602.01469); the speculators project's `models/peagle`, for the mask.
    """

    def __init__(self, head: EagleHead, levels: int | None = None) -> None:
        """Prepare to draft at most `levels` levels; None for the default."""
        super().__init__(head, levels)
        assert head.masked is not None  # else it drafts token by token
        self._masked, self._mask_id = head.masked, head.mask_token_id
        self._states: Sequence[Tensor] = ()

    def start(self, root_id: int, most_rows: int) -> None:
        """Start a step: draft all levels in one pass."""
        super().start(root_id, most_rows)
        self._states = () if self._root is None else self._all_states(self._root, most_rows)

    def is_known(self, path: tuple[int, ...]) -> bool:
        """True: the drafts of a level don't depend on the path."""
        return True

    def level_scores(self, level: int, paths: Sequence[tuple[int, ...]]) -> LevelScores | None:
        """Return the logits of a level, equal for all paths; None beyond the drafted levels."""
        if level >= len(self._states):
            return None
        return self._scores(self._states[level])._replace(is_shared=True)

    def _all_states(self, root: Tensor, most_rows: int) -> Sequence[Tensor]:
        """States of the root's row and of every MASK row. [1, hidden] each"""
        memory = self._memory.get()
        kv, length, place = memory.kv, memory.kv.length, memory.num_places
        count = max(0, min(self._num_levels, most_rows - 1, kv.capacity - length + 1) - 1)
        if not count:
            return (root,)
        rows = TreeRows.chain([self._mask_id] * count, place)
        states = self._head.step(self._masked.expand(count, -1), rows, kv)
        return (root, *torch.split(states, 1))


def _make(head: EagleHead, budget: RowBudget) -> ChainedSource:
    """Make the source of a head that drafts token by token, or of one that drafts in one pass."""
    kind = ChainedSource if head.masked is None else ParallelSource
    return kind(head, budget.levels)


HINT = tr("Load an EAGLE head for this model, or choose another drafter.")
SPEC = head_spec(
    SourceInfo(
        name="eagle",
        label="EAGLE",
        badge="e",
        explanation="drafted by an EAGLE head, which goes on from the model's own states",
        colours=("teal",),
        line="dash-dot",
        is_numbered=True,
    ),
    EagleHead,
    _make,
    HINT,
    alone=DrafterChoice(
        "eagle",
        "EAGLE head",
        "The draft tokens of a head that goes on from the model's own states, token by token.",
    ),
)
