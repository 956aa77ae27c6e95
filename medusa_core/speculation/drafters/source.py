"""Interface and registry entry of draft sources, which return candidates for next tokens."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, Protocol, runtime_checkable

from torch import Tensor

from medusa_core.errors import RequestError
from medusa_core.heads.ranked import Ranked, RankedTokens
from medusa_core.i18n import tr
from medusa_core.loading.target import Target
from medusa_core.messages import DrafterChoice, SourceInfo
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.tree.shape import TokenTree
from medusa_core.runtime.tree.step import (
    RowBudget,
)
from medusa_core.speculation.drafters import sources
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.system.registry import Registry


class Paths(NamedTuple):
    """Paths of draft tokens after the root that are queried for candidates, most probable first.

    Attributes:
        num: Number of paths.
        level: Length of each; 0 for the root itself.
        token_ids: Their tokens, one path after the other; the array may be longer. int32
    """

    num: int
    level: int
    token_ids: array[int]

    def path(self, index: int) -> tuple[int, ...]:
        """Tokens of one path."""
        return tuple(self.token_ids[index * self.level : (index + 1) * self.level])


class Candidates(NamedTuple):
    """Candidates for the next tokens of some paths.

    Attributes:
        token_ids: Tokens; those after one path are distinct. int32
        chances: Probability of each if its path is right, in [0, 1]. float32
        counts: Number of candidates of each path, one path after the other; None if all of them
            follow every path. int32
    """

    token_ids: array[int]
    chances: array[float]
    counts: array[int] | None = None


class CandidateSource(Protocol):
    """Returns candidates after the paths of one level."""

    def candidates(self, paths: Paths) -> Candidates | None:
        """Return candidates after the paths of a level; None if this source drafts no further.

        Called once per level of a tree.
        """


class Source(CandidateSource, Protocol):
    """Drafts candidates for the tokens after a path, with probabilities.

    Attributes:
        top_tokens: Its best tokens at depth 1, 2, ... of the current step, in the tree or not, for
            counting how often its ranks are right; empty if it has no ranks.
    """

    top_tokens: Sequence[Sequence[int]]

    def begin(self, token_ids: Sequence[int]) -> None:
        """Start an answer after these tokens."""

    def start(self, root_id: int, most_rows: int) -> None:
        """Start a step: a tree of at most `most_rows` rows after the decided token `root_id`."""

    def observe(self, observation: Observation) -> None:
        """Receive the decided tokens, after prefill and after every step."""

    def truncate(self, length: int) -> None:
        """Drop state of the tokens from `length` on."""


class Remembered(Protocol):
    """State of a conversation that a source keeps between answers."""

    def fork(self, num_tokens: int) -> Remembered:
        """Copy the state of the conversation's first tokens, for another one.

        Args:
            num_tokens: Length of the conversations' common prefix.

        Raises:
            OutOfMemoryError: There is no room for the copy.
        """

    def close(self) -> None:
        """Release its memory."""


SourceMemory = dict[str, Remembered]


@runtime_checkable
class RecallsTexts(Protocol):
    """A source, or its drafter, that drafts from messages that aren't part of the prompt."""

    def recall(self, texts: Iterable[Sequence[int]]) -> None:
        """Receive the tokens of messages that were left out; called after `begin`."""


@runtime_checkable
class ReadsStates(Protocol):
    """A source, or its drafter, that needs the target's hidden state of every token."""

    def resume(self, token_ids: Sequence[int], memory: SourceMemory) -> int:
        """Continue from the state kept of a conversation; called after `begin`.

        Args:
            token_ids: The prompt.
            memory: The conversation's state, updated for the next answer.

        Returns:
            Length of the prefix whose hidden states are already cached.
        """

    def read(self, place: int, states: Tensor, deep: Tensor | None) -> None:
        """Receive the hidden states of consecutive prompt tokens.

        Args:
            place: Position of the first token.
            states: The target's final hidden states. [n, hidden]
            deep: Inputs of the tapped layers. [n, taps · hidden]
        """


@runtime_checkable
class UsesTargetCache(Protocol):
    """A source that drafts from the target's own keys and values."""

    def attach_cache(self, kv: KvCache) -> None:
        """Set the cache, with rows of all decided tokens but the root; called before each step."""


@runtime_checkable
class Rides(Protocol):
    """A source with extra rows in every pass (riders), which are never candidates.

    The target's most likely tokens after them are returned in `Observation.ridden`.

    Attributes:
        most_riders: Number of riders in a step with all rows of the budget.
    """

    most_riders: int

    def riders(self, root_id: int, num_rows: int) -> TokenTree | None:
        """The riders of a step, as a tree under its root.

        Args:
            root_id: The decided token at the root.
            num_rows: Rows of the step: root, drafts and riders.

        Returns:
            The root and at most `num_rows − 1` riders; None for no riders.
        """


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """A registered source.

    Attributes:
        info: Its name, and how the window shows its drafts.
        serves: Returns whether it can draft for a target.
        make: Makes it for one session of a target that it serves, with a budget for its trees.
        weight: Weight in the mixture of sources that give distributions; 0 for a source that only
            points at single tokens, whose probabilities count as they are.
        hint: What users can do if it can't draft.
        of_heads: It drafts with the heads loaded with a target.
        is_ranked: It drafts one list per depth, whatever the path, so that ranks have accuracies
            (`Source.top_tokens`).
        drafts_at_once: All levels of the budget are drafted when a step starts.
        rides: It has riders in every step (`Rides`), so that it can't be combined.
        alone: The drafter of this source alone, if its texts aren't those of `info`.
        preference: `DrafterSpec.preference` of that drafter.
        is_raced: `DrafterSpec.is_raced` of that drafter.
    """

    info: SourceInfo
    serves: Callable[[Target], bool]
    make: Callable[[Target, RowBudget], Source]
    weight: float = 1.0
    hint: str = ""
    of_heads: bool = False
    is_ranked: bool = False
    drafts_at_once: bool = False
    rides: bool = False
    alone: DrafterChoice | None = None
    preference: int = 40
    is_raced: bool = True

    @property
    def name(self) -> str:
        """Name in the registry."""
        return self.info.name

    def build(self, target: Target, budget: RowBudget) -> Source:
        """Make it for one session, with a budget for its trees.

        Raises:
            RequestError: It can't draft for this target.
        """
        if not self.serves(target):
            raise RequestError(
                tr("{0} can't use the drafter {1}.", target.name, repr(self.name)), self.hint
            )
        return self.make(target, budget)


@cache
def source_registry() -> Registry[SourceSpec]:
    """All sources."""
    return Registry(sources, "source of drafts", SourceSpec)


def candidates_of(ranked: RankedTokens, num_paths: int) -> Candidates:
    """Candidates from ranked tokens after paths of one length."""
    token_ids, chances = ranked
    return Candidates(token_ids, chances, array("i", [len(token_ids) // num_paths]) * num_paths)


def candidates_by_level(ranked: Ranked) -> list[Candidates]:
    """Candidates of each level, from ranked tokens that don't depend on the path."""
    probabilities, size = ranked.noised_probabilities(), len(ranked.token_ids[0])
    return [
        Candidates(array("i", best), probabilities[level * size : (level + 1) * size])
        for level, best in enumerate(ranked.token_ids)
    ]


def num_common(a: Sequence[int], b: Sequence[int]) -> int:
    """Length of the longest common prefix of two lists of tokens."""
    same, end = 0, min(len(a), len(b))
    middle = end  # most lists continue each other
    while same < end:
        if a[same:middle] == b[same:middle]:
            same = middle
        else:
            end = middle - 1
        middle = (same + end + 1) // 2
    return same
