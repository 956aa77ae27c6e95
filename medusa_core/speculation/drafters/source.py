"""What a source of drafts is: it says which tokens may follow a path, and how likely each is."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, Protocol, runtime_checkable

from torch import Tensor

from medusa_core.errors import RequestError
from medusa_core.heads.ranked import Ranked
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
    """Paths of draft tokens below the root of which is asked what follows, the likeliest first.

    Attributes:
        num: How many there are.
        level: How long each is; 0 for the root itself.
        token_ids: Their tokens, one path after the other; there may be more behind. int32
    """

    num: int
    level: int
    token_ids: array[int]

    def path(self, index: int) -> tuple[int, ...]:
        """The tokens of one path."""
        return tuple(self.token_ids[index * self.level : (index + 1) * self.level])


class Candidates(NamedTuple):
    """What may follow some paths.

    Attributes:
        token_ids: Tokens; those behind one path differ from each other. int32
        chances: How likely each is where its path is right, in [0, 1]. float32
        counts: How many of them follow each path, one path after the other; None where all of them
            follow every path. int32
    """

    token_ids: array[int]
    chances: array[float]
    counts: array[int] | None = None


class CandidateSource(Protocol):
    """Proposes what may follow the paths of one level."""

    def candidates(self, paths: Paths) -> Candidates | None:
        """What may follow; None for nothing. Asked once for each level of a tree."""


class Source(CandidateSource, Protocol):
    """Proposes tokens that may follow a path, with probabilities.

    Attributes:
        guesses: In the step under way: its best tokens at depth 1, 2, ..., in the tree or not,
            from which is learned how often its ranks are right; empty where it has no ranks.
    """

    guesses: Sequence[Sequence[int]]

    def begin(self, token_ids: Sequence[int]) -> None:
        """Start an answer behind these tokens."""

    def start(self, root_id: int, most_rows: int) -> None:
        """Start a step: under the decided token `root_id` a tree of so many rows is to grow."""

    def observe(self, observation: Observation) -> None:
        """Learn what was decided; called after prefill and after every step."""

    def truncate(self, length: int) -> None:
        """Forget what was learned of tokens from `length` on."""


class Remembered(Protocol):
    """What a source keeps of a conversation from one answer to the next."""

    def fork(self, num_tokens: int) -> Remembered:
        """Copy what is known of the conversation's first tokens, for another one.

        Args:
            num_tokens: Tokens that both conversations begin with.

        Raises:
            OutOfMemoryError: There is no room for the copy.
        """

    def close(self) -> None:
        """Give back what it holds."""


SourceMemory = dict[str, Remembered]


@runtime_checkable
class ReadsStates(Protocol):
    """A source, or a drafter of such sources, that must hear the target's state of every token."""

    def resume(self, token_ids: Sequence[int], memory: SourceMemory) -> int:
        """Go on with what is remembered of a conversation; called behind `begin`.

        Args:
            token_ids: The prompt.
            memory: Of the conversation; it keeps what is needed for the next answer.

        Returns:
            Of how many first tokens the states needn't be heard again.
        """

    def read(self, place: int, states: Tensor, deep: Tensor | None) -> None:
        """Hear the states of some of the prompt's tokens.

        Args:
            place: Of the first of them.
            states: The target's final ones. [n, hidden]
            deep: What enters the layers that the heads asked for. [n, taps · hidden]
        """


@runtime_checkable
class ReadsCache(Protocol):
    """A source that drafts from the target's own keys and values."""

    def attach_cache(self, kv: KvCache) -> None:
        """Hear which cache holds rows of all decided tokens but the root; called before a step."""


@runtime_checkable
class Rides(Protocol):
    """A source that has rows of its own computed beside every tree, which are never candidates.

    What the target says there comes back in `Observation.ridden`.

    Attributes:
        most_riders: How many rows ride in a step that has all rows of the budget.
    """

    most_riders: int

    def riders(self, root_id: int, num_rows: int) -> TokenTree | None:
        """The rows of the step that begins, as a tree under its root.

        Args:
            root_id: The decided token at the root.
            num_rows: Rows of the step, root, drafts and riders together.

        Returns:
            The root and at most `num_rows − 1` rows below it; None for nobody.
        """


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """A registered source.

    Attributes:
        info: Its name, and how the window shows what it drafted.
        serves: Can it draft for this target?
        make: Makes it for one session of a target that it serves, whose trees keep to a budget.
        weight: Its part of the mixture, where several say how likely every next token is; 0 for a
            source that only points at single tokens: its chances count as they are.
        hint: What to do where it can't draft.
        of_heads: It drafts by the heads that are loaded with a target.
        is_ranked: It guesses one list for each depth, whatever the path, so that its ranks are
            right so and so often (`Source.guesses`).
        drafts_at_once: Starting a step asks for all of the budget's levels.
        rides: It takes rows of every step besides its drafts (`Rides`), so that it drafts alone.
        alone: The drafter of this source alone, where its name or words aren't those of `info`.
        preference: Of that drafter; as `DrafterSpec` has it.
        is_raced: That drafter is; as `DrafterSpec` has it.
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
        """Its name."""
        return self.info.name

    def build(self, target: Target, budget: RowBudget) -> Source:
        """Make it for one session, whose trees keep to a budget.

        Raises:
            RequestError: It can't draft for this target.
        """
        if not self.serves(target):
            raise RequestError(f"{target.name} can't use the drafter {self.name!r}.", self.hint)
        return self.make(target, budget)


@cache
def source_registry() -> Registry[SourceSpec]:
    """All sources."""
    return Registry(sources, "source of drafts", SourceSpec)


def candidates_of(ranked: Ranked) -> Candidates:
    """What heads guess behind some paths, all of one length."""
    return Candidates(
        array("i", [token_id for best in ranked.token_ids for token_id in best]),
        ranked.worths(),
        array("i", [len(best) for best in ranked.token_ids]),
    )


def num_common(a: Sequence[int], b: Sequence[int]) -> int:
    """Length of the longest common prefix of two lists of tokens."""
    same, end = 0, min(len(a), len(b))
    middle = end  # most lists that are compared continue each other
    while same < end:
        if a[same:middle] == b[same:middle]:
            same = middle
        else:
            end = middle - 1
        middle = (same + end + 1) // 2
    return same
