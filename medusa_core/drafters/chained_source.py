"""A head that goes on token by token as a source: one pass of its layer for every level of a tree.

Source: EAGLE-2 (Li et al. 2024b), section 4, for trees by cumulative confidence, which the growth
of all sources makes.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.drafters.observation import Observation
from medusa_core.drafters.source import Candidates, Memory, Paths, candidates_of, num_common
from medusa_core.heads.chained import ChainedHead
from medusa_core.heads.ranked import ranked_behind
from medusa_core.kv.cache import KvCache
from medusa_core.kv.pool import steps_up
from medusa_core.types import Chance

NAME = "chained"
_RANKS = 10  # of the reference's trees
_DEEPEST = 8
_MOST_AT_ONCE = 64
# How far scores with chance are trusted: heads of one layer say less than a whole model.
_SHARPNESS = 0.7
_ROOM = 3  # more paths are tried than a tree has rows


class ChainedMemory:
    """The head's cache for one conversation.

    Attributes:
        token_ids: Tokens whose pairs with the state before them are known, behind the first token.
    """

    def __init__(self, head: ChainedHead) -> None:
        assert head.caches is not None  # reserved with the target
        self._head, self._caches = head, head.caches
        self.kv: KvCache = self._caches.lend(head.new_cache, 1)
        self.token_ids: list[int] = []
        self._waiting: list[Tensor] = []  # features of the last tokens, which have no row yet
        self._num_waiting = 0
        self._num_lost = 0  # rows that had to go

    def close(self) -> None:
        """Give the cache back."""
        self._caches.give_back(self.kv)

    @property
    def num_pairs(self) -> int:
        """How many there are."""
        return len(self.token_ids)

    def keep(self, length: int) -> None:
        """Forget pairs from `length` on."""
        num_rows = self.num_pairs - self._num_waiting
        if length < num_rows:
            self.kv.truncate(max(0, length - self._num_lost))
        if self._num_waiting and length < self.num_pairs:
            waiting = torch.cat(self._waiting)[: max(0, length - num_rows)]
            self._waiting, self._num_waiting = [waiting], len(waiting)
        del self.token_ids[length:]

    def add(self, features: Tensor, token_ids: Sequence[int]) -> None:
        """Add pairs: what the target says of tokens, and the token behind each."""
        self._waiting.append(features)
        self._num_waiting += len(features)
        self.token_ids += token_ids

    def catch_up(self, num_more: int) -> Tensor | None:
        """Compute the pairs that wait, and see that so many rows fit behind them.

        Returns:
            The head's state behind the last pair, [1, hidden]; None where none waited.
        """
        if not self._num_waiting:
            return None
        self._make_room(self._num_waiting + num_more)
        features = torch.cat(self._waiting)
        first = self.num_pairs - self._num_waiting
        self._waiting, self._num_waiting = [], 0
        state: Tensor | None = None
        for start in range(0, len(features), _MOST_AT_ONCE):
            part = features[start : start + _MOST_AT_ONCE]
            state = self._read(part, first + start)[-1:]
        return state

    def _read(self, features: Tensor, place: int) -> Tensor:
        """States behind consecutive pairs, whose rows are kept."""
        count, length = len(features), self.kv.length
        positions = range(place, place + count)
        token_ids = self.token_ids[place : place + count]
        mask = None
        if count > 1:
            mask = torch.zeros(count, length + count, device=features.device)
            mask[:, length:] = torch.full((count, count), float("-inf")).triu(1)
        self.kv.reserve(count)
        slots = range(length, length + count)
        read = self._head.entered(features)
        states = self._head.step(read, token_ids, positions, slots, mask, length + count, self.kv)
        self.kv.commit(range(count))
        return states

    def _make_room(self, num_rows: int) -> None:
        least = self.kv.length + num_rows
        if least <= self.kv.capacity:
            return
        wanted = steps_up(least, self._caches.num_rows)
        kept = self.kv.length
        self.kv = self._caches.grown(self._head.new_cache, self.kv, least, wanted)
        self._num_lost += kept - self.kv.length


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
        self._memory: ChainedMemory | None = None
        self._prompt: Sequence[int] = ()
        self._chance: Chance | None = None
        self._root: Tensor | None = None
        self._nodes: dict[tuple[int, ...], _Node] = {}
        self._num_rows = 0

    def begin(self, token_ids: Sequence[int]) -> None:
        self._prompt, self._root, self._memory = token_ids, None, None
        self._chance = None

    def resume(self, token_ids: Sequence[int], memory: Memory) -> int:
        known = memory.get(NAME)
        if not isinstance(known, ChainedMemory):
            known = memory[NAME] = ChainedMemory(self._head)
        same = num_common(known.token_ids, token_ids[1:])
        known.keep(same)
        self._memory = known
        return same

    def read(self, place: int, states: Tensor, deep: Tensor | None) -> None:
        memory = self._need_memory()
        features = self._head.features(states, deep)
        token_ids = list(self._prompt[place + 1 : place + 1 + len(features)])
        at = memory.num_pairs - place  # what was heard before
        memory.add(features[at : len(token_ids)], token_ids[at:])
        memory.catch_up(_MOST_AT_ONCE)

    def observe(self, observation: Observation) -> None:
        rows = torch.tensor(list(observation.rows)) % len(observation.states)
        rows = rows.to(observation.states.device)
        deep = observation.deep
        features = self._head.features(
            observation.states.index_select(0, rows),
            None if deep is None else deep.index_select(0, rows),
        )
        self._need_memory().add(features, observation.token_ids)
        self._chance = observation.chance

    def start(self, root_id: int, most_rows: int) -> None:
        memory = self._need_memory()
        behind = memory.catch_up(_ROOM * most_rows)
        self._root = self._root if behind is None else behind
        self._num_rows = 0
        self._nodes = {} if self._root is None else {(): _Node(self._root, ())}

    def candidates(self, paths: Paths) -> Candidates | None:
        if self._root is None or paths.level >= self._levels:
            return None
        if paths.level == 0:
            return self._best(self._root, 1)
        every = [paths.path(index) for index in range(paths.num)]
        known = [path for path in every if path[:-1] in self._nodes]
        states = self._go_on(known) if known else None
        if states is None:
            return None
        best = self._best(states, paths.level + 1)
        if len(known) == len(every) or best.counts is None:
            return best
        counts = iter(best.counts)
        each = [next(counts) if path[:-1] in self._nodes else 0 for path in every]
        return best._replace(counts=array("i", each))

    def _go_on(self, paths: Sequence[tuple[int, ...]]) -> Tensor | None:
        """States behind paths whose beginnings are known; None where there is no room for them."""
        memory = self._need_memory()
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
            [memory.num_pairs + len(path) - 1 for path in paths],
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
        scores = self._head.scores(states)
        num_ranks = min(_RANKS, scores.shape[-1])
        ranked = ranked_behind(
            scores, num_ranks, self._chance, depth, self._head.tokens, _SHARPNESS
        )
        return candidates_of(ranked)

    @property
    def _head_device(self) -> torch.device:
        assert self._root is not None
        return self._root.device

    def truncate(self, length: int) -> None:
        self._root = self._chance = None
        if self._memory is not None:
            self._memory.keep(length)

    def _need_memory(self) -> ChainedMemory:
        if self._memory is None:  # nobody resumed: an answer of its own
            self._memory = ChainedMemory(self._head)
        return self._memory
