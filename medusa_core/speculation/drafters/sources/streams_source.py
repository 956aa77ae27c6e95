"""Source of speculative streams: stream j drafts the token j positions after the root.

In the paper streams run with all nodes of a tree during verification, as it isn't known yet which
of them will be accepted last. Here they run after acceptance, with that node's row only: they draft
the same, as streams of a node don't attend to other nodes. That saves the rows of all others, and
reads the weights of the last layers once more.

Source: Speculative Streaming (Bhendawade et al. 2024), section 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from medusa_core.heads.streams import StreamHeads
from medusa_core.i18n import tr
from medusa_core.messages import DrafterChoice, SourceInfo
from medusa_core.runtime.tree.step import (
    RowBudget,
)
from medusa_core.speculation.drafters.head_memory import HeadMemory
from medusa_core.speculation.drafters.level_source import head_spec
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.resumed import Resumed
from medusa_core.speculation.drafters.source import (
    Candidates,
    Paths,
    SourceMemory,
    candidates_by_level,
)
from medusa_core.speculation.drafters.sources.heads_source import ranks_within

NAME = "streams"


class StreamsMemory(HeadMemory):
    """The streams' cache; position i is token i."""

    def __init__(self, heads: StreamHeads) -> None:
        """Allocate a small cache, which grows later."""
        super().__init__(heads)
        self._streams = heads

    def compute(self, features: Tensor, place: int) -> Tensor:
        """Store the keys and values of the target's states; returns the streams' inputs."""
        self._streams.store_keys_values(features, place, self.kv)
        return features[:, : features.shape[1] // len(self._streams.taps)]


class StreamsSource:
    """Runs the streams once per step, after the last row before the root; see `ReadsStates`."""

    def __init__(self, heads: StreamHeads, budget: RowBudget) -> None:
        """Prepare to draft within a budget."""
        self.top_tokens: Sequence[Sequence[int]] = ()
        self._heads = heads
        levels = heads.num_heads if budget.levels is None else budget.levels
        self._num_streams = min(heads.num_heads, levels)
        self._num_ranks = ranks_within(budget)
        self._memory = Resumed(NAME, StreamsMemory, lambda: StreamsMemory(heads))
        self.begin(())

    def begin(self, token_ids: Sequence[int]) -> None:
        """Start an answer, whose cache may be resumed from the conversation's."""
        self._prompt = token_ids
        self._last_id = token_ids[-1] if token_ids else 0
        self._memory.begin()
        self._entering: Tensor | None = None
        self._seen: Observation | None = None
        self._candidates: list[Candidates] = []

    def resume(self, token_ids: Sequence[int], memory: SourceMemory) -> int:
        """Continue from the conversation's cache; see `ReadsStates`."""
        return self._memory.resume(token_ids[:-1], memory)

    def read(self, place: int, states: Tensor, deep: Tensor | None) -> None:
        """Add prompt tokens with the target's tapped states; see `ReadsStates`."""
        assert deep is not None  # the runner has `taps`
        memory = self._memory.get()
        # The prompt's last token comes with the first observation.
        token_ids = list(self._prompt[:-1][place : place + len(deep)])
        at = memory.num_places - place  # known before
        memory.add(deep[at : len(token_ids)], token_ids[at:])
        memory.catch_up(self._num_streams)

    def observe(self, observation: Observation) -> None:
        """Add the decided tokens with the target's tapped states."""
        deep = observation.deep
        assert deep is not None
        rows = torch.tensor(list(observation.rows), device=deep.device) % len(deep)
        token_ids = [self._last_id, *observation.token_ids]
        self._memory.get().add(deep.index_select(0, rows), token_ids[:-1])
        self._last_id, self._seen = token_ids[-1], observation

    def start(self, root_id: int, most_rows: int) -> None:
        """Start a step: run the streams after the row before the root."""
        self._candidates = []
        memory, seen = self._memory.get(), self._seen
        states = memory.catch_up(self._num_streams)
        if states is not None or memory.has_waiting:
            self._entering = None if states is None else states[0]
        num_streams = min(self._num_streams, most_rows - 1)
        if self._entering is None or seen is None or num_streams < 1:
            return
        if memory.kv.length + num_streams > memory.kv.capacity:
            return
        place = memory.num_places - 1
        ranked = self._heads.ranked(
            self._entering, place, memory.kv, num_streams, self._num_ranks, seen.chance
        )
        self._candidates = candidates_by_level(ranked)

    def candidates(self, paths: Paths) -> Candidates | None:
        """Candidates of a level, whatever the path."""
        return self._candidates[paths.level] if paths.level < len(self._candidates) else None

    def truncate(self, length: int) -> None:
        """Drop the streams' rows from `length` on."""
        self._entering, self._seen, self._candidates = None, None, []
        self._memory.keep(length)


HINT = tr("Load streams that were trained for this model, or choose another drafter.")
SPEC = head_spec(
    SourceInfo(
        name=NAME,
        label="stream",
        badge="s",
        explanation="drafted by a stream, which runs beside the model through its last layers",
        colours=("magenta",),
        line="dash-dot",
        is_numbered=True,
    ),
    StreamHeads,
    StreamsSource,
    HINT,
    drafts_at_once=True,
    alone=DrafterChoice(
        NAME,
        "Streams",
        "The draft tokens of streams that run beside the model through its last layers.",
    ),
)
