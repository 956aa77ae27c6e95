"""A Gemma 4 assistant as a source: one pass of its layers for every level of a tree.

It attends to the target's committed rows. What is drafted has no rows: behind a guess it goes on
from the guess and the state that it left before it, at the root's position.

Source: transformers' `SinglePositionMultiTokenCandidateGenerator`, for chains; the growth of all
sources makes trees of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from medusa_core.heads.gemma4_assistant import AssistantHead, SeenRows
from medusa_core.heads.gemma4_assistant_parts import KIND
from medusa_core.heads.ranked import ranked_by_layers
from medusa_core.loading.target import Target
from medusa_core.messages import DrafterChoice, SourceInfo
from medusa_core.runtime.kv.cache import KvCache, ReadableCache
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.source import (
    Candidates,
    Paths,
    SourceSpec,
    behind_some,
    candidates_of,
)

_DEEPEST = 8


class AssistantSource:
    """Asks the assistant level by level; see `Source` and `ReadsCache`."""

    def __init__(self, head: AssistantHead, levels: int | None = None) -> None:
        """Take the assistant, and how many levels are worth asking for; None for the usual ones."""
        self.guesses: Sequence[Sequence[int]] = ()
        self._head = head
        self._levels = _DEEPEST if levels is None else min(levels, _DEEPEST)
        self._last: Observation | None = None
        self._kv: ReadableCache | None = None
        self._seen: SeenRows | None = None
        self._root_id = 0
        self._states: dict[tuple[int, ...], Tensor] = {}  # behind each path: [1, backbone]

    def begin(self, token_ids: Sequence[int]) -> None:
        self._last = self._seen = None

    def attach_cache(self, kv: KvCache) -> None:
        self._kv = kv if isinstance(kv, ReadableCache) else None

    def start(self, root_id: int, most_rows: int) -> None:
        self._root_id, self._states, self._seen = root_id, {}, None
        if self._kv is not None and self._kv.length and most_rows > 1:
            self._seen = self._head.rows_of(self._kv)

    def candidates(self, paths: Paths) -> Candidates | None:
        last, seen = self._last, self._seen
        if last is None or seen is None or paths.level >= self._levels:
            return None
        every = [paths.path(index) for index in range(paths.num)]
        are_known = [not path or path[:-1] in self._states for path in every]
        known = [path for path, is_known in zip(every, are_known, strict=True) if is_known]
        if not known:
            return None
        left, behind = self._head.step(
            [path[-1] if path else self._root_id for path in known],
            torch.cat([self._states[path[:-1]] if path else last.hidden[None] for path in known]),
            seen,
        )
        self._states |= {path: behind[row : row + 1] for row, path in enumerate(known)}
        scored = self._head.scored(left)
        ranked = ranked_by_layers(scored.scores, last.chance, paths.level + 1, scored.tokens)
        return behind_some(candidates_of(ranked), are_known)

    def observe(self, observation: Observation) -> None:
        self._last = observation

    def truncate(self, length: int) -> None:
        # The state belongs to the row before the root; after a cut it belongs to no row.
        self._last = self._seen = None


def _serves(target: Target) -> bool:
    # Keys and values on other machines can't be read here.
    return isinstance(target.heads, AssistantHead) and not target.is_divided


def _make(target: Target, budget: RowBudget) -> AssistantSource:
    head = target.heads
    assert isinstance(head, AssistantHead)  # as it serves
    return AssistantSource(head, budget.levels)


HINT = (
    "Load Gemma 4 with its assistant and with all layers on this computer, as the assistant reads "
    "the model's keys and values; or choose another drafter."
)
SPEC = SourceSpec(
    SourceInfo(
        name=KIND,
        label="assistant",
        badge="a",
        explanation="guessed by Gemma 4's assistant, which reads the model's own keys and values",
        colours=("steel",),
        line="dash-dot",
        is_numbered=True,
    ),
    serves=_serves,
    make=_make,
    hint=HINT,
    of_heads=True,
    alone=DrafterChoice(
        KIND,
        "Gemma 4 assistant",
        "The guesses of the small assistant that was published with a Gemma 4, which reads the "
        "model's own keys and values.",
    ),
    preference=10,
)
