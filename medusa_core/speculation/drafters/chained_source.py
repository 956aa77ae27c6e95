"""Source of heads that draft token by token: one pass of their layer per level of a tree."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.heads.chained import ChainedHead
from medusa_core.heads.frequent_tokens import FrequentVocabulary
from medusa_core.runtime.backends.native_layers import TreeRows
from medusa_core.speculation.drafters.head_memory import MAX_CHUNK, HeadMemory
from medusa_core.speculation.drafters.level_source import LevelScores, LevelSource
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.resumed import Resumed
from medusa_core.speculation.drafters.source import SourceMemory

NAME = "chained"
_MAX_LEVELS = 8
_ROOM = 3  # times the rows of a tree, as more paths are drafted than verified


class ChainedMemory(HeadMemory):
    """A chained head's cache; position i has the state of token i and the token after it."""

    def __init__(self, head: ChainedHead) -> None:
        """Allocate a small cache, which grows later."""
        super().__init__(head)
        self._head = head

    def compute(self, features: Tensor, place: int) -> Tensor:
        """Run the head on known tokens and the target's features, and keep its rows."""
        count = len(features)
        rows = TreeRows.chain(self.token_ids[place : place + count], place)
        self.kv.reserve(count)
        states = self._head.step(self._head.fused(features), rows, self.kv, only_last=True)
        self.kv.commit(range(count))
        return states


class _Node(NamedTuple):
    """A drafted path: the head's state after it, and its row in the tree; −1 for the root."""

    state: Tensor
    row: int


class ChainedSource(LevelSource):
    """Runs the head once per level; see `LevelSource` and `ReadsStates`."""

    def __init__(self, head: ChainedHead, levels: int | None = None) -> None:
        """Prepare to draft at most `levels` levels; None for the default."""
        super().__init__(_MAX_LEVELS if levels is None else min(levels, _MAX_LEVELS))
        self._head = head
        self._memory = Resumed(NAME, ChainedMemory, lambda: ChainedMemory(head))
        self._prompt: Sequence[int] = ()
        self._root: Tensor | None = None
        self._nodes: dict[tuple[int, ...], _Node] = {}
        self._parents, self._depths = array("i"), array("i")  # of the tree's rows in the cache
        self._columns = 0  # of the current step
        self._frequent = FrequentVocabulary(head.num_columns)

    def begin(self, token_ids: Sequence[int]) -> None:
        """Start an answer, whose state may be resumed from the conversation's."""
        super().begin(token_ids)
        self._prompt, self._root = token_ids, None
        self._memory.begin()
        self._frequent = FrequentVocabulary(self._head.num_columns)

    def resume(self, token_ids: Sequence[int], memory: SourceMemory) -> int:
        """Continue from the conversation's cache; see `ReadsStates`."""
        return self._memory.resume(token_ids[1:], memory)

    def read(self, place: int, states: Tensor, deep: Tensor | None) -> None:
        """Add prompt tokens with the target's states; see `ReadsStates`."""
        memory = self._memory.get()
        features = self._head.features(states, deep)
        token_ids = list(self._prompt[place + 1 : place + 1 + len(features)])
        at = memory.num_places - place  # known before
        memory.add(features[at : len(token_ids)], token_ids[at:])
        memory.catch_up(MAX_CHUNK)

    def observe(self, observation: Observation) -> None:
        """Add the decided tokens with the target's states."""
        rows = torch.tensor(list(observation.rows)) % len(observation.states)
        rows = rows.to(observation.states.device)
        deep = observation.deep
        features = self._head.features(
            observation.states.index_select(0, rows),
            None if deep is None else deep.index_select(0, rows),
        )
        self._memory.get().add(features, observation.token_ids)
        super().observe(observation)

    def start(self, root_id: int, most_rows: int) -> None:
        """Start a step: compute the rows of new tokens, which gives the root's state."""
        memory = self._memory.get()
        state = memory.catch_up(_ROOM * most_rows)
        self._columns = self._frequent.num_columns(memory.token_ids)
        if state is not None or memory.has_waiting:
            self._root = state
        self._parents, self._depths = array("i"), array("i")
        self._nodes = {} if self._root is None else {(): _Node(self._root, -1)}

    def is_known(self, path: tuple[int, ...]) -> bool:
        """Whether the head has a state of the path without its last token."""
        return not path or path[:-1] in self._nodes

    def level_scores(self, level: int, paths: Sequence[tuple[int, ...]]) -> LevelScores | None:
        """Run the head on the last token of each path."""
        states = self._root if not level or self._root is None else self._extend(paths)
        return None if states is None else self._scores(states)

    def _scores(self, states: Tensor) -> LevelScores:
        """Scores of the next tokens from the head's states. [paths, hidden]"""
        return LevelScores(self._head.scores(states, self._columns), self._head.vocabulary)

    def _extend(self, paths: Sequence[tuple[int, ...]]) -> Tensor | None:
        """The head's states after paths with known parents; None without room in the cache."""
        memory, known = self._memory.get(), len(self._parents)
        kv = memory.kv
        if kv.length + known + len(paths) > kv.capacity:
            return None
        above = [self._nodes[path[:-1]] for path in paths]
        self._parents.extend(node.row for node in above)
        self._depths.extend(len(path) - 1 for path in paths)
        token_ids, place = [path[-1] for path in paths], memory.num_places
        rows = TreeRows(token_ids, place, self._parents, self._depths, known)
        states = self._head.step(torch.cat([node.state for node in above]), rows, kv)
        for row, path in enumerate(paths):
            self._nodes[path] = _Node(states[row : row + 1], known + row)
        return states

    def truncate(self, length: int) -> None:
        """Drop the head's rows from `length` on."""
        super().truncate(length)
        self._root = None
        self._memory.keep(length)
