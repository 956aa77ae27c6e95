"""Source of Gemma 4 assistants: one pass of their layers per level of a tree.

It attends to the target's committed rows. Draft tokens have no rows: the next level
continues from a draft token and the state of its parent, at the root's position.

Source: transformers' `SinglePositionMultiTokenCandidateGenerator`, for chains; the growth of all
sources makes trees of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from medusa_core.heads.gemma4_assistant import AssistantHead, TargetKv
from medusa_core.heads.gemma4_assistant_parts import KIND
from medusa_core.i18n import tr
from medusa_core.messages import DrafterChoice, SourceInfo
from medusa_core.runtime.kv.cache import KvCache, ReadableCache
from medusa_core.speculation.drafters.level_source import LevelScores, LevelSource, head_spec

_MAX_LEVELS = 8


class AssistantSource(LevelSource):
    """Runs the assistant once per level; see `LevelSource` and `UsesTargetCache`."""

    def __init__(self, head: AssistantHead, levels: int | None = None) -> None:
        """Prepare to draft at most `levels` levels; None for the default."""
        super().__init__(_MAX_LEVELS if levels is None else min(levels, _MAX_LEVELS))
        self._head = head
        self._kv: ReadableCache | None = None
        self._target_kv: TargetKv | None = None
        self._root_id = 0
        self._states: dict[tuple[int, ...], Tensor] = {}  # after each path: [1, backbone]

    def attach_cache(self, kv: KvCache) -> None:
        """Set the target's cache; None for one whose rows can't be read."""
        self._kv = kv if isinstance(kv, ReadableCache) else None

    def start(self, root_id: int, most_rows: int) -> None:
        """Start a step: read the target's keys and values of the last layers."""
        self._root_id, self._states, self._target_kv = root_id, {}, None
        if self._kv is not None and self._kv.length and most_rows > 1:
            self._target_kv = self._head.target_kv(self._kv)

    def is_known(self, path: tuple[int, ...]) -> bool:
        """Whether the assistant has a state of the path without its last token."""
        return not path or path[:-1] in self._states

    def level_scores(self, level: int, paths: Sequence[tuple[int, ...]]) -> LevelScores | None:
        """Run the assistant on the last token of each path."""
        last, target_kv = self._seen, self._target_kv
        if last is None or target_kv is None:
            return None
        states, backbone = self._head.step(
            [path[-1] if path else self._root_id for path in paths],
            torch.cat([self._states[path[:-1]] if path else last.hidden[None] for path in paths]),
            target_kv,
        )
        self._states |= {path: backbone[row : row + 1] for row, path in enumerate(paths)}
        scored = self._head.scores(states)
        return LevelScores(scored.scores, scored.vocabulary)

    def truncate(self, length: int) -> None:
        """Forget the last row's state, and release the keys and values that were read."""
        super().truncate(length)
        self._target_kv = None


HINT = tr(
    "Load Gemma 4 with its assistant and with all layers on this computer, as the assistant "
    "reads the model's keys and values; or choose another drafter."
)
SPEC = head_spec(
    SourceInfo(
        name=KIND,
        label="assistant",
        badge="a",
        explanation="drafted by Gemma 4's assistant, which reads the model's own keys and values",
        colours=("steel",),
        line="dash-dot",
        is_numbered=True,
    ),
    AssistantHead,
    lambda head, budget: AssistantSource(head, budget.levels),
    HINT,
    alone=DrafterChoice(
        KIND,
        "Gemma 4 assistant",
        "The draft tokens of the small assistant that was published with a Gemma 4, which reads "
        "the model's own keys and values.",
    ),
    # Keys and values on other machines can't be read.
    serves=lambda target: not target.is_divided,
)
