"""A head that goes on token by token as a source: one pass of its layer for every level of a tree.

Source: EAGLE-2 (Li et al. 2024b), section 4, for trees by cumulative confidence, which the growth
of all sources makes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.heads.chained import ChainedHead
from medusa_core.heads.ranked import ranked_by_layers
from medusa_core.heads.usual_tokens import UsualColumns
from medusa_core.models.blocks.caches import causal_mask
from medusa_core.runtime.tree.step import Chance
from medusa_core.speculation.drafters.head_memory import MOST_AT_ONCE, HeadMemory
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.resumed import Resumed
from medusa_core.speculation.drafters.source import (
    Candidates,
    Paths,
    SourceMemory,
    behind_some,
    candidates_of,
)

NAME = "chained"
_DEEPEST = 8
_ROOM = 3  # more paths are tried than a tree has rows


class ChainedMemory(HeadMemory):
    """A chained head's cache; place i stands for the state at token i and the token behind it."""

    def __init__(self, head: ChainedHead) -> None:
        """Take a small cache; it grows."""
        super().__init__(head)
        self._head = head

    def compute(self, features: Tensor, place: int) -> Tensor:
        count, length = len(features), self.kv.length
        positions = range(place, place + count)
        token_ids = self.token_ids[place : place + count]
        mask = None
        if count > 1:
            mask = causal_mask(length, count, torch.float32, features.device)
        self.kv.reserve(count)
        slots = range(length, length + count)
        read = self._head.entered(features)
        width = length + count
        states = self._head.step(
            read, token_ids, positions, slots, mask, width, self.kv, only_last=True
        )
        self.kv.commit(range(count))
        return states


class _Node(NamedTuple):
    """A path of guesses: the head's state behind it, and the slots of its rows."""

    state: Tensor
    slots: tuple[int, ...]


class ChainedSource:
    """Asks the head level by level; see `Source` and `ReadsStates`."""

    def __init__(self, head: ChainedHead, levels: int | None = None) -> None:
        """Take the head, and how many levels are worth asking for; None for the usual ones."""
        self.guesses: Sequence[Sequence[int]] = ()
        self._head = head
        self._levels = _DEEPEST if levels is None else min(levels, _DEEPEST)
        self._memory = Resumed(NAME, ChainedMemory, lambda: ChainedMemory(head))
        self._prompt: Sequence[int] = ()
        self._chance: Chance | None = None
        self._root: Tensor | None = None
        self._nodes: dict[tuple[int, ...], _Node] = {}
        self._num_rows = 0
        self._columns = 0  # of the step under way
        self._usual = UsualColumns(head.num_columns)

    def begin(self, token_ids: Sequence[int]) -> None:
        self._prompt, self._root = token_ids, None
        self._memory.begin()
        self._usual = UsualColumns(self._head.num_columns)
        self._chance = None

    def resume(self, token_ids: Sequence[int], memory: SourceMemory) -> int:
        return self._memory.resume(token_ids[1:], memory)

    def read(self, place: int, states: Tensor, deep: Tensor | None) -> None:
        memory = self._memory.get()
        features = self._head.features(states, deep)
        token_ids = list(self._prompt[place + 1 : place + 1 + len(features)])
        at = memory.num_places - place  # what was heard before
        memory.add(features[at : len(token_ids)], token_ids[at:])
        memory.catch_up(MOST_AT_ONCE)

    def observe(self, observation: Observation) -> None:
        rows = torch.tensor(list(observation.rows)) % len(observation.states)
        rows = rows.to(observation.states.device)
        deep = observation.deep
        features = self._head.features(
            observation.states.index_select(0, rows),
            None if deep is None else deep.index_select(0, rows),
        )
        self._memory.get().add(features, observation.token_ids)
        self._chance = observation.chance

    def start(self, root_id: int, most_rows: int) -> None:
        memory = self._memory.get()
        behind = memory.catch_up(_ROOM * most_rows)
        self._columns = self._usual.of(memory.token_ids)
        if behind is not None or memory.is_behind:
            self._root = behind
        self._num_rows = 0
        self._nodes = {} if self._root is None else {(): _Node(self._root, ())}

    def candidates(self, paths: Paths) -> Candidates | None:
        if self._root is None or paths.level >= self._levels:
            return None
        if paths.level == 0:
            return self._best(self._root, 1)
        every = [paths.path(index) for index in range(paths.num)]
        are_known = [path[:-1] in self._nodes for path in every]
        known = [path for path, is_known in zip(every, are_known, strict=True) if is_known]
        states = self._go_on(known) if known else None
        if states is None:
            return None
        return behind_some(self._best(states, paths.level + 1), are_known)

    def _go_on(self, paths: Sequence[tuple[int, ...]]) -> Tensor | None:
        """States behind paths whose beginnings are known; None where there is no room for them."""
        memory = self._memory.get()
        kv, length = memory.kv, memory.kv.length
        first = length + self._num_rows
        if first + len(paths) > kv.capacity:
            return None
        above = [self._nodes[path[:-1]] for path in paths]
        mask = torch.zeros(len(paths), first + len(paths))
        mask[:, length:] = float("-inf")
        for row, node in enumerate(above):
            mask[row, [*node.slots, first + row]] = 0.0
        mask = mask.to(self._head_device)
        states = self._head.step(
            torch.cat([node.state for node in above]),
            [path[-1] for path in paths],
            [memory.num_places + len(path) - 1 for path in paths],
            range(first, first + len(paths)),
            mask,
            first + len(paths),
            kv,
        )
        self._num_rows += len(paths)
        for row, (path, node) in enumerate(zip(paths, above, strict=True)):
            slots = (*node.slots, first + row)
            self._nodes[path] = _Node(states[row : row + 1], slots)
        return states

    def _best(self, states: Tensor, depth: int) -> Candidates:
        scores = self._head.scores(states, self._columns)
        return candidates_of(ranked_by_layers(scores, self._chance, depth, self._head.tokens))

    @property
    def _head_device(self) -> torch.device:
        assert self._root is not None
        return self._root.device

    def truncate(self, length: int) -> None:
        self._root = self._chance = None
        self._memory.keep(length)
