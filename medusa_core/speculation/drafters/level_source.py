"""The source of heads that draft level by level, each level after the drafts of the one before.

Heads return scores after paths with known parents; this ranks them. Trees by cumulative
probability (EAGLE-2, Li et al. 2024b, section 4) are what the growth of all sources makes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from torch import Tensor

from medusa_core.heads.ranked import DraftVocabulary, rank_tokens_of_layers
from medusa_core.loading.target import Target
from medusa_core.messages import DrafterChoice, SourceInfo
from medusa_core.runtime.tree.step import Chance, RowBudget
from medusa_core.speculation.drafters.observation import LastObservation
from medusa_core.speculation.drafters.source import Candidates, Paths, Source, SourceSpec

H = TypeVar("H")


class LevelScores(NamedTuple):
    """Scores of the tokens after the paths of one level.

    Attributes:
        scores: [paths, columns], float32 or better; [1, columns] with `is_shared`.
        vocabulary: Tokens of the columns.
        is_shared: The scores don't depend on the path.
        confidences: Factor of each path's probabilities, in [0, 1]; empty for 1.
    """

    scores: Tensor
    vocabulary: DraftVocabulary
    is_shared: bool = False
    confidences: Sequence[float] = ()


class LevelSource(LastObservation, ABC):
    """Queries heads once per level of a tree, on all of its paths at once; see `Source`.

    Attributes:
        top_tokens: Empty, as candidates depend on the path.
    """

    def __init__(self, num_levels: int) -> None:
        """Prepare for trees of at most this many levels."""
        self.top_tokens: Sequence[Sequence[int]] = ()
        self._num_levels = num_levels

    @property
    def _chance(self) -> Chance | None:
        """Noise and filters of the acceptance rule after the root."""
        return None if self._seen is None else self._seen.chance

    @abstractmethod
    def level_scores(self, level: int, paths: Sequence[tuple[int, ...]]) -> LevelScores | None:
        """Return the scores after some paths, or None if there are none.

        Args:
            level: Length of the paths.
            paths: Known paths.
        """

    def is_known(self, path: tuple[int, ...]) -> bool:
        """Whether the heads can draft after a path."""
        return True

    def candidates(self, paths: Paths) -> Candidates | None:
        """Rank the scores after the paths that the heads know; see `CandidateSource`."""
        if paths.level >= self._num_levels:
            return None
        # Growth may ask for paths whose beginning had no room in the heads' cache.
        every = [paths.path(index) for index in range(paths.num)]
        are_known = [self.is_known(path) for path in every]
        known = [path for path, is_known in zip(every, are_known, strict=True) if is_known]
        scored = self.level_scores(paths.level, known) if known else None
        if scored is None:
            return None
        token_ids, chances = rank_tokens_of_layers(
            scored.scores, scored.vocabulary, self._chance, paths.level + 1
        )
        if scored.is_shared:
            return Candidates(token_ids, chances)
        count = len(token_ids) // len(known)
        if scored.confidences:
            factors = (factor for factor in scored.confidences for _ in range(count))
            chances = array("f", [one * f for one, f in zip(chances, factors, strict=True)])
        of_paths = array("i", [count if is_known else 0 for is_known in are_known])
        return Candidates(token_ids, chances, of_paths)


def head_spec(
    info: SourceInfo,
    kind: type[H],
    make: Callable[[H, RowBudget], Source],
    hint: str,
    alone: DrafterChoice | None = None,
    serves: Callable[[Target], bool] = lambda _: True,
    *,
    preference: int = 10,
    is_ranked: bool = False,
    drafts_at_once: bool = False,
) -> SourceSpec:
    """Register draft heads as a source; the arguments become members of the `SourceSpec`.

    Args:
        info: Name, label and colour of the source.
        kind: Class of the heads.
        make: Builds the source for one session.
        hint: What the user can do if the target has no such heads.
        alone: Drafter that uses only this source; None to derive it from `info`.
        serves: Returns whether a target with heads of this class can use them.
        preference: The usable drafter with the lowest value is the default.
        is_ranked: Whether the heads draft one list of tokens per depth, whatever the path.
        drafts_at_once: Whether all levels are drafted when a step starts.
    """

    def can_draft(target: Target) -> bool:
        """Whether a target has such heads and can use them."""
        return isinstance(target.heads, kind) and serves(target)

    def build(target: Target, budget: RowBudget) -> Source:
        """Make the source of a target's heads."""
        assert isinstance(target.heads, kind)  # `can_draft` is true
        return make(target.heads, budget)

    return SourceSpec(
        info,
        serves=can_draft,
        make=build,
        hint=hint,
        of_heads=True,
        is_ranked=is_ranked,
        drafts_at_once=drafts_at_once,
        alone=alone,
        preference=preference,
    )
