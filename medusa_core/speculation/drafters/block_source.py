"""Source of block drafters: one pass over a block of positions for all levels of a tree.

If the logits of a position don't depend on the token before it, all paths of a length have the same
candidates. With a Markov head or a selector each path has its own, from the same pass.

Sources: DFlash (arXiv 2602.06036), section 3; DSpark (arXiv 2607.05147), section 3; EAGLE-2 (Li et
al. 2024b), section 4, for trees by cumulative confidence, which the growth builds.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from medusa_core.heads.block import BlockHead, DraftedBlock
from medusa_core.heads.frequent_tokens import FrequentVocabulary
from medusa_core.heads.ranked import DraftVocabulary
from medusa_core.messages import DrafterChoice, SourceInfo
from medusa_core.speculation.drafters.head_memory import MAX_CHUNK, HeadMemory
from medusa_core.speculation.drafters.level_source import LevelScores, LevelSource, head_spec
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.resumed import Resumed
from medusa_core.speculation.drafters.source import SourceMemory, SourceSpec

NAME = "block"


class BlockMemory(HeadMemory):
    """A block drafter's cache; position i has the state of token i."""

    def __init__(self, head: BlockHead) -> None:
        """Allocate a small cache, which grows later."""
        super().__init__(head)
        self._head = head

    def compute(self, features: Tensor, place: int) -> Tensor:
        """Append the keys and values of the target's features to the drafter's cache."""
        self._head.inject(features, place, self.kv)
        return features


class BlockSource(LevelSource):
    """Drafts a block once per step, and returns it level by level; see `ReadsStates`."""

    def __init__(self, head: BlockHead, levels: int | None = None) -> None:
        """Prepare to draft at most `levels` levels; None for all."""
        super().__init__(head.num_drafts if levels is None else min(levels, head.num_drafts))
        self._head = head
        self._memory = Resumed(NAME, BlockMemory, lambda: BlockMemory(head))
        self._prompt: Sequence[int] = ()
        self._last: int | None = None  # the last decided token, if all before it are known
        self._num_drafts = 0
        self._frequent = FrequentVocabulary(head.num_columns)
        self._block: DraftedBlock | None = None

    def begin(self, token_ids: Sequence[int]) -> None:
        """Start an answer, whose state may be resumed from the conversation's."""
        super().begin(token_ids)
        self._prompt, self._block = token_ids, None
        self._memory.begin()
        self._last = token_ids[-1] if token_ids else None
        self._frequent = FrequentVocabulary(self._head.num_columns)

    def resume(self, token_ids: Sequence[int], memory: SourceMemory) -> int:
        """Continue from the conversation's cache; see `ReadsStates`."""
        # The state of the prompt's last token comes with the first observation.
        return self._memory.resume(token_ids[:-1], memory)

    def read(self, place: int, states: Tensor, deep: Tensor | None) -> None:
        """Add prompt tokens with the target's tapped states; see `ReadsStates`."""
        assert deep is not None  # the runner has `taps`
        memory = self._memory.get()
        end = min(place + len(deep), len(self._prompt) - 1)
        at = memory.num_places  # known before
        assert place <= at  # by `resume`
        if at < end:
            features = self._head.features(deep[at - place : end - place])
            memory.add(features, self._prompt[at:end])
            memory.catch_up(MAX_CHUNK)

    def observe(self, observation: Observation) -> None:
        """Add the decided tokens with the target's tapped states."""
        deep = observation.deep
        assert deep is not None  # the runner has `taps`
        super().observe(observation)
        if self._last is None:
            return
        rows = torch.tensor(list(observation.rows), device=deep.device) % len(deep)
        features = self._head.features(deep.index_select(0, rows))
        memory = self._memory.get()
        memory.add(features, [self._last, *observation.token_ids[:-1]])
        if (
            memory.num_waiting >= MAX_CHUNK
        ):  # while drafting is paused: states of many layers are large
            memory.catch_up(MAX_CHUNK)
        self._last = observation.token_ids[-1]

    def start(self, root_id: int, most_rows: int) -> None:
        """Start a step; the block itself is drafted when its first level is queried."""
        self._block = None
        self._num_drafts = min(self._num_levels, most_rows - 1) if root_id == self._last else 0

    def level_scores(self, level: int, paths: Sequence[tuple[int, ...]]) -> LevelScores | None:
        """Scores of a level of the block, by the last token of each path."""
        if level >= self._num_drafts:
            return None
        block = self._block if level else self._draft()
        if block is None:
            return None
        assert self._last is not None  # by `start`
        found = block.scores_after(level, [path[-1] if path else self._last for path in paths])
        vocabulary = self._head.vocabulary
        if found.columns is not None:
            token_ids = vocabulary.tokens(found.columns)
            vocabulary = DraftVocabulary(vocabulary.size, token_ids)
        return LevelScores(found.scores, vocabulary, not block.depends_on_path, found.confidences)

    def _draft(self) -> DraftedBlock | None:
        """Draft a block after the root; None without room in the cache."""
        memory = self._memory.get()
        memory.catch_up(self._head.num_places)
        assert self._last is not None  # by `start`
        if memory.has_waiting or memory.kv.length + self._head.num_places > memory.kv.capacity:
            return None
        columns = self._frequent.num_columns(memory.token_ids)
        self._block = self._head.draft(
            self._last, memory.num_places, memory.kv, self._num_drafts, columns
        )
        return self._block

    def truncate(self, length: int) -> None:
        """Drop the drafter's rows from `length` on."""
        super().truncate(length)
        self._last = self._block = None
        self._memory.keep(length)


def block_spec(info: SourceInfo, alone: DrafterChoice, hint: str) -> SourceSpec:
    """Return the source of a kind of block drafters, named like `info`."""
    return head_spec(
        info,
        BlockHead,
        lambda head, budget: BlockSource(head, budget.levels),
        hint,
        alone,
        lambda target: isinstance(target.heads, BlockHead) and target.heads.kind == info.name,
    )
