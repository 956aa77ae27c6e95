"""A block drafter as a source: one pass over a block of places for all levels of a tree.

Where scores of a place don't depend on the token before it, all paths of a length may go on alike.
With a Markov head, or a selector, each path has its own candidates, of the same pass.

Sources: DFlash (arXiv 2602.06036), section 3; DSpark (arXiv 2607.05147), section 3; EAGLE-2 (Li et
al. 2024b), section 4, for trees by cumulative confidence, which the growth of all sources makes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from medusa_core.heads.block import BlockHead, DraftedBlock
from medusa_core.heads.frequent_tokens import FrequentColumns
from medusa_core.messages import DrafterChoice, SourceInfo
from medusa_core.speculation.drafters.head_memory import MOST_AT_ONCE, HeadMemory
from medusa_core.speculation.drafters.level_source import LevelScores, LevelSource, head_spec
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.resumed import Resumed
from medusa_core.speculation.drafters.source import SourceMemory, SourceSpec

NAME = "block"


class BlockMemory(HeadMemory):
    """A block drafter's cache; place i stands for the state at token i."""

    def __init__(self, head: BlockHead) -> None:
        """Take a small cache; it grows."""
        super().__init__(head)
        self._head = head

    def compute(self, features: Tensor, place: int) -> Tensor:
        self._head.inject(features, place, self.kv)
        return features


class BlockSource(LevelSource):
    """Fills a block once per step, and reads it level by level; see `ReadsStates`."""

    def __init__(self, head: BlockHead, levels: int | None = None) -> None:
        """Take the drafter, and how many levels are worth asking for; None for all."""
        super().__init__(head.num_drafts if levels is None else min(levels, head.num_drafts))
        self._head = head
        self._memory = Resumed(NAME, BlockMemory, lambda: BlockMemory(head))
        self._prompt: Sequence[int] = ()
        self._last: int | None = None  # the last decided token, if all before it are known
        self._num_wanted = 0
        self._frequent = FrequentColumns(head.num_columns)
        self._block: DraftedBlock | None = None

    def begin(self, token_ids: Sequence[int]) -> None:
        self._prompt, self._block = token_ids, None
        self._memory.begin()
        self._last = token_ids[-1] if token_ids else None
        self._chance = None
        self._frequent = FrequentColumns(self._head.num_columns)

    def resume(self, token_ids: Sequence[int], memory: SourceMemory) -> int:
        # What is said at the prompt's last token is observed.
        return self._memory.resume(token_ids[:-1], memory)

    def read(self, place: int, states: Tensor, deep: Tensor | None) -> None:
        assert deep is not None  # the runner tells of `taps`
        memory = self._memory.get()
        end = min(place + len(deep), len(self._prompt) - 1)
        at = memory.num_places  # what was heard before
        assert place <= at  # of `resume`
        if at < end:
            features = self._head.features(deep[at - place : end - place])
            memory.add(features, self._prompt[at:end])
            memory.catch_up(MOST_AT_ONCE)

    def observe(self, observation: Observation) -> None:
        deep = observation.deep
        assert deep is not None  # the runner tells of `taps`
        super().observe(observation)
        if self._last is None:
            return
        rows = torch.tensor(list(observation.rows), device=deep.device) % len(deep)
        features = self._head.features(deep.index_select(0, rows))
        memory = self._memory.get()
        memory.add(features, [self._last, *observation.token_ids[:-1]])
        if memory.num_waiting >= MOST_AT_ONCE:  # nobody drafts, and states of many layers are large
            memory.catch_up(MOST_AT_ONCE)
        self._last = observation.token_ids[-1]

    def start(self, root_id: int, most_rows: int) -> None:
        self._block = None
        self._num_wanted = min(self._num_levels, most_rows - 1) if root_id == self._last else 0

    def level_scores(self, level: int, paths: Sequence[tuple[int, ...]]) -> LevelScores | None:
        if level >= self._num_wanted:
            return None
        block = self._block if level else self._fill()
        if block is None:
            return None
        assert self._last is not None  # of `start`
        found = block.scores_after(level, [path[-1] if path else self._last for path in paths])
        tokens = partial(self._tokens, found.columns)
        return LevelScores(found.scores, tokens, not block.depends_on_path, found.confidences)

    def _tokens(self, whose: Tensor | None, columns: Tensor) -> Tensor:
        """The tokens of some scores; `whose` says of which columns there are any."""
        return self._head.tokens(columns if whose is None else whose[columns])

    def _fill(self) -> DraftedBlock | None:
        """Fill a block behind the root; None where there is no room for it."""
        memory = self._memory.get()
        memory.catch_up(self._head.num_places)
        assert self._last is not None  # of `start`
        if memory.is_behind or memory.kv.length + self._head.num_places > memory.kv.capacity:
            return None
        columns = self._frequent.of(memory.token_ids)
        self._block = self._head.draft(
            self._last, memory.num_places, memory.kv, self._num_wanted, columns
        )
        return self._block

    def truncate(self, length: int) -> None:
        self._last = self._chance = self._block = None
        self._memory.keep(length)


def block_spec(info: SourceInfo, alone: DrafterChoice, hint: str) -> SourceSpec:
    """Return the source of a kind of block drafters, which has the name of `info`."""
    return head_spec(
        info,
        BlockHead,
        lambda head, budget: BlockSource(head, budget.levels),
        hint,
        alone,
        lambda target: isinstance(target.heads, BlockHead) and target.heads.kind == info.name,
    )
