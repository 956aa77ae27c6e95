"""Source of a draft model with the target's vocabulary: one pass of it per level of a tree.

Its cache has the rows of all decided tokens but those of the last step, which the first pass of the
next step computes. Rows of drafts are never kept.

Sources: speculative decoding (Leviathan et al. 2023); SpecInfer (Miao et al. 2024), for trees.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from medusa_core.errors import OutOfMemoryError
from medusa_core.heads.ranked import DraftVocabulary, rank_tokens
from medusa_core.i18n import tr
from medusa_core.loading.target import Target
from medusa_core.messages import DrafterChoice, SourceInfo
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.pool import steps_up
from medusa_core.runtime.runner.runner import PlacedTree
from medusa_core.runtime.tree.shape import (
    TokenTree,
    TreeShape,
)
from medusa_core.runtime.tree.step import (
    Chance,
    RowBudget,
)
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.resumed import Resumed
from medusa_core.speculation.drafters.source import (
    Candidates,
    Paths,
    SourceMemory,
    SourceSpec,
    candidates_of,
)

log = logging.getLogger(__name__)

NAME = "draft-model"
_RANKS = 8
_MAX_LEVELS = 8
_CHUNK = 64
# Of 0.35 to 1.5 this sharpness of noisy probabilities gave the most tokens per step.
_SHARPNESS = 1.0
_ROOM = 3  # times the rows of a tree, as more paths are drafted than verified


class DraftMemory:
    """The draft model's cache for one conversation.

    Attributes:
        token_ids: Tokens with rows in the cache.
    """

    def __init__(self, model: Target) -> None:
        self._model = model
        self.kv: KvCache = model.allocate_cache(1)
        self.token_ids: list[int] = []

    def fork(self, num_tokens: int) -> DraftMemory:
        """See `Remembered`."""
        num_rows = self.kv.num_reusable(num_tokens)
        fork = copy.copy(self)
        fork.kv = self._model.allocate_cache(num_rows + 1)
        fork.kv.copy_prefix(self.kv, num_rows)
        fork.token_ids = self.token_ids[:num_rows]
        return fork

    def close(self) -> None:
        """Release the cache."""
        self._model.caches.release(self.kv)

    def keep(self, length: int) -> None:
        """Drop the tokens from `length` on."""
        del self.token_ids[length:]
        self.kv.truncate(length)

    def read(self, token_ids: Sequence[int], num_more: int) -> Tensor | None:
        """Prefill the tokens of a text that have no rows.

        Args:
            token_ids: The text.
            num_more: Number of further rows to reserve if possible.

        Returns:
            The hidden state of the last token, [1, hidden]; None if all tokens have rows.
        """
        self._make_room(len(token_ids), num_more)
        state = None
        for start in range(self.kv.length, len(token_ids), _CHUNK):
            chunk = token_ids[start : start + _CHUNK]
            state = self._model.runner.extend(chunk, self.kv, only_last=True)
        self.token_ids = list(token_ids)
        return state

    def _make_room(self, num_rows: int, num_more: int) -> None:
        """Grow the cache for `num_rows` rows, and for `num_more` if there is room."""
        if num_rows + num_more > self.kv.capacity:
            caches = self._model.caches
            max_rows = steps_up(num_rows + num_more, caches.num_rows)
            self.kv = caches.grown(self._model.runner.new_cache, self.kv, num_rows, max_rows)


class DraftModelSource:
    """Runs the draft model once per level; see `Source` and `ReadsStates`."""

    def __init__(self, model: Target, vocab_size: int, levels: int | None = None) -> None:
        """Prepare to draft.

        Args:
            model: The loaded draft model.
            vocab_size: The target's, which may have fewer padding tokens.
            levels: Maximum number of levels; None for the default.
        """
        self.top_tokens: Sequence[Sequence[int]] = ()
        self._model = model
        self._vocab_size = vocab_size
        self._levels = _MAX_LEVELS if levels is None else min(levels, _MAX_LEVELS)
        self._text: list[int] = []
        self._memory = Resumed(NAME, DraftMemory, lambda: DraftMemory(model))
        self._chance: Chance | None = None
        self._root_logits: Tensor | None = None
        self._room = 0

    def begin(self, token_ids: Sequence[int]) -> None:
        """Start an answer, whose cache may be resumed from the conversation's."""
        self._text, self._root_logits = list(token_ids), None
        self._memory.begin()
        self._chance = None

    def resume(self, token_ids: Sequence[int], memory: SourceMemory) -> int:
        """Continue from the conversation's cache; no hidden states are needed."""
        with _without_memory_errors():
            self._memory.resume(token_ids, memory)
        return len(token_ids)

    def read(self, place: int, states: Tensor, deep: Tensor | None) -> None:
        """Prefill as much of the prompt as the target has, so that no step has to do it at once."""
        so_far = min(place + len(states), len(self._text) - 1)
        if so_far <= self._model.config.context_tokens:
            with _without_memory_errors():
                self._memory.get().read(self._text[:so_far], 0)

    def observe(self, observation: Observation) -> None:
        """Append the decided tokens to the text."""
        self._text.extend(observation.token_ids)
        self._chance = observation.chance

    def start(self, root_id: int, most_rows: int) -> None:
        """Compute the rows of new tokens, and the logits after the root."""
        self._root_logits, self._room = None, _ROOM * most_rows
        if len(self._text) + _MAX_LEVELS > self._model.config.context_tokens:
            return  # beyond its context
        with _without_memory_errors():
            memory = self._memory.get()
            memory.keep(len(self._text) - 1)
            state = memory.read(self._text, self._room)
            assert state is not None  # the root has no row
            memory.keep(len(self._text) - 1)
            self._root_logits = self._model.runner.logits(state)

    def candidates(self, paths: Paths) -> Candidates | None:
        """Verify the paths with the draft model, and rank the tokens after them."""
        if self._root_logits is None or paths.level >= self._levels:
            return None
        if paths.level == 0:
            return self._best(self._root_logits, 1)
        wanted = [paths.path(index) for index in range(paths.num)]
        inner = {path[:length] for path in wanted for length in range(1, len(path) + 1)}
        kv = self._memory.get().kv
        if len(inner) + 1 > min(self._room, kv.most_rows, kv.capacity - kv.length):
            return None
        shape = TreeShape.from_paths(inner)
        tree = TokenTree(shape, (self._text[-1], *(path[-1] for path in shape.paths[1:])))
        states = self._model.runner.verify(PlacedTree(tree, kv))
        node_of = {path: node for node, path in enumerate(shape.paths)}
        nodes = torch.tensor([node_of[path] for path in wanted], device=states.device)
        return self._best(self._model.runner.logits(states[nodes]), paths.level + 1)

    def _best(self, scores: Tensor, depth: int) -> Candidates:
        """The best tokens of each row of logits, with sharpened probabilities."""
        own = scores[:, : self._vocab_size].float()
        num_ranks = min(_RANKS, own.shape[-1])
        vocabulary = DraftVocabulary(self._vocab_size)
        ranked = rank_tokens(own, num_ranks, vocabulary, self._chance, depth, _SHARPNESS)
        return candidates_of(ranked, len(own))

    def truncate(self, length: int) -> None:
        """Drop the draft model's rows from `length` on."""
        self._root_logits = self._chance = None
        del self._text[length:]
        self._memory.keep(length)


@contextmanager
def _without_memory_errors() -> Iterator[None]:
    """Draft nothing if other answers hold the memory; the answer itself continues."""
    try:
        yield
    except OutOfMemoryError:
        log.info("the draft model has no room, and drafts nothing")


def _serves(target: Target) -> bool:
    """Whether a target has a draft model, which must be able to verify trees of its own drafts."""
    # Its drafts are trees, which it must be able to verify.
    return target.assistant is not None and not target.assistant.runner.plain_why


def _make(target: Target, budget: RowBudget) -> DraftModelSource:
    """Make the source of a target's draft model."""
    assert target.assistant is not None  # by `_serves`
    return DraftModelSource(target.assistant, target.config.vocab_size, budget.levels)


HINT = tr("Load it with a smaller model of the same vocabulary, or choose another drafter.")
SPEC = SourceSpec(
    SourceInfo(
        name=NAME,
        label="draft model",
        badge="d",
        explanation="drafted by a smaller model of the same vocabulary",
        colours=("brown",),
        line="wave",
        is_numbered=True,
    ),
    serves=_serves,
    make=_make,
    hint=HINT,
    alone=DrafterChoice(
        NAME,
        "Draft model",
        "The draft tokens of a smaller model of the same vocabulary.",
    ),
    preference=15,
)
