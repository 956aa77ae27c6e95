"""What followed the same words before as a source: in the text so far, and in earlier answers.

Behind the root the longest context is looked for that stood somewhere before, of 24 tokens at most;
what followed it there may follow again. The text comes first: earlier answers count where they know
a longer context. Paths go on as the places go on that they came from, whoever drafted their tokens,
so that a level costs no search. (To look for the best path of each level anew brought nothing.)

How likely a token is comes from how often it followed, and from how often what followed contexts of
that length was right. The paper bounds drafts by a factor times the length instead, and by a least
probability: what isn't likely isn't worth its row here.

Sources: Oliaro et al., "SuffixDecoding" (2024, arXiv 2411.04975), section 3; prompt lookup decoding
(Saxena 2023); REST (He et al. 2024), section 3.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from medusa_core.loading.target import Target
from medusa_core.messages import DrafterChoice, SourceInfo
from medusa_core.models.datastore.earlier_answers import EarlierAnswers
from medusa_core.models.datastore.follower_stats import FollowerStats
from medusa_core.models.datastore.suffix_array import DEPTH, Found, SuffixArray
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.source import (
    Candidates,
    Paths,
    SourceSpec,
)


class _Known(NamedTuple):
    """What is known of a path.

    Attributes:
        texts: In which texts its context was found.
        found: Where.
    """

    texts: SuffixArray
    found: Found


class SuffixSource:
    """The text so far, earlier answers, and how often what they say was right."""

    def __init__(self, earlier: EarlierAnswers | None) -> None:
        self.guesses: Sequence[Sequence[int]] = ()
        self._earlier = earlier
        self._text = SuffixArray()
        self._stats = FollowerStats() if earlier is None else earlier.stats
        self._root: _Known | None = None  # behind the text as it is
        self._level: dict[tuple[int, ...], _Known] = {}  # by path of the level asked last

    def begin(self, token_ids: Sequence[int]) -> None:
        if self._earlier is None:
            self._stats = FollowerStats()
        self._text, self._root = SuffixArray(), None
        self._text.extend(token_ids)

    def start(self, root_id: int, most_rows: int) -> None:
        self._level = {}

    def candidates(self, paths: Paths) -> Candidates | None:
        if paths.level >= DEPTH or (paths.level and not self._level):
            return None
        listed = [paths.path(index) for index in range(paths.num)]
        self._level = self._behind_root() if paths.level == 0 else self._behind(listed)
        if not self._level:
            return None
        token_ids, chances, counts = array("i"), array("f"), array("i", bytes(4 * paths.num))
        for index, path in enumerate(listed):
            if (known := self._level.get(path)) is not None:
                followers = self._stats.probabilities(known.found)
                token_ids.extend(followers)
                chances.extend(followers.values())
                counts[index] = len(followers)
        return Candidates(token_ids, chances, counts)

    def observe(self, observation: Observation) -> None:
        known = self._behind_root().get(())
        for token_id in observation.token_ids:
            if known is not None:
                self._learn(known, token_id)
                known = _gone_on(known, token_id)
        self._text.extend(observation.token_ids)
        self._root = None

    def truncate(self, length: int) -> None:
        self._root = None
        self._text.truncate(length)

    def _behind_root(self) -> dict[tuple[int, ...], _Known]:
        if self._root is None:
            self._root = self._search(self._text.tail)
        return {(): self._root} if self._root.found.places else {}

    def _behind(self, paths: Sequence[tuple[int, ...]]) -> dict[tuple[int, ...], _Known]:
        """What is known of the paths of one level; of some nothing."""
        level = {}
        for path in paths:
            above = self._level.get(path[:-1])
            known = None if above is None else _gone_on(above, path[-1])
            if known is not None:
                level[path] = known
        return level

    def _search(self, tail: array[int]) -> _Known:
        found = self._text.search(tail)
        if self._earlier is not None:
            earlier = self._earlier.texts.array
            other = earlier.search(tail)
            if max(other.lengths, default=0) > max(found.lengths, default=0):
                return _Known(earlier, other)
        return _Known(self._text, found)

    def _learn(self, known: _Known, token_id: int) -> None:
        """A token followed; answers out of which it was drafted are kept longest."""
        texts, found = known
        self._stats.learn(found, token_id)
        earlier = self._earlier
        if earlier is not None and texts is earlier.texts.array and token_id in found.token_ids:
            earlier.use(found.places[found.token_ids.index(token_id)])


def _gone_on(known: _Known, token_id: int) -> _Known | None:
    """What is known of a path that is longer by a token."""
    found = known.texts.advance(known.found, token_id)
    return _Known(known.texts, found) if found.places else None


def _serves(_: Target) -> bool:
    return True


def _make(target: Target, _: RowBudget) -> SuffixSource:
    return SuffixSource(target.learned)


SPEC = SourceSpec(
    SourceInfo(
        name="suffix",
        label="suffix",
        badge="suffix",
        explanation="what followed the same words before, in the text or in earlier answers",
        colours=("grey",),
        line="dash",
    ),
    serves=_serves,
    make=_make,
    weight=0.0,
    alone=DrafterChoice(
        "suffix",
        "Suffix tree",
        "What followed the same words before, in this conversation or in earlier answers.",
    ),
    preference=30,
)
