"""What followed the same words before as a source: in the text so far, and in earlier answers.

Behind every path the longest context is looked for that stood somewhere before, 24 tokens at most;
what followed it there may follow again. The text comes first: earlier answers count where they know
a longer context. A path goes on as the places go on that it came from, so that a level costs no
search; the likeliest path of a level is searched for anew where it came from another source.

How likely a token is comes from how often it followed, and from how often what followed contexts
of that length was right. That replaces the paper's bounds on a draft's length (a factor times the
context's): what isn't likely isn't worth its row.

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
from medusa_core.models.datastore.suffix_array import DEPTH, Occurrence, SuffixArray
from medusa_core.models.datastore.trust import Trust
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.source import (
    Candidates,
    Paths,
    SourceSpec,
)


class _Found(NamedTuple):
    """Where a path's context stood before.

    Attributes:
        texts: In which texts.
        occurrences: The places; none where nothing is known.
    """

    texts: SuffixArray
    occurrences: list[Occurrence]


class SuffixSource:
    """The text so far, earlier answers, and how often they were right.

    The root's context is looked for once; what is accepted below it is looked for as it is learned.
    """

    def __init__(self, earlier: EarlierAnswers | None) -> None:
        self.guesses: Sequence[Sequence[int]] = ()
        self._earlier = earlier
        self._text = SuffixArray()
        self._trust = Trust() if earlier is None else earlier.trust
        self._root: _Found | None = None  # what is known behind the text as it is
        self._level: dict[tuple[int, ...], _Found] = {}  # by path of the level before

    def begin(self, token_ids: Sequence[int]) -> None:
        if self._earlier is None:
            self._trust = Trust()
        self._text, self._root = SuffixArray(), None
        self._text.extend(token_ids)

    def start(self, root_id: int, most_rows: int) -> None:
        self._level = {}

    def candidates(self, paths: Paths) -> Candidates | None:
        if paths.level >= DEPTH:
            return None
        if paths.level == 0:
            self._level = {(): self._behind_root()}
        else:
            self._level = {
                path: self._behind(path, is_likeliest=index == 0)
                for index, path in enumerate(map(paths.path, range(paths.num)))
            }
        known = [
            self._trust.chances(found.occurrences) if found.occurrences else {}
            for found in self._level.values()
        ]
        if not any(known):
            return None
        return Candidates(
            array("i", [token_id for followers in known for token_id in followers]),
            array("f", [chance for followers in known for chance in followers.values()]),
            array("i", map(len, known)),
        )

    def observe(self, observation: Observation) -> None:
        for token_id in observation.token_ids:
            found = self._behind_root()
            if found.occurrences:
                self._trust.learn(found.occurrences, token_id)
                self._use(found, token_id)
            self._text.extend((token_id,))
            self._root = None

    def truncate(self, length: int) -> None:
        self._root = None
        self._text.truncate(length)

    def _behind_root(self) -> _Found:
        if self._root is None:
            self._root = self._search(self._text.tail)
        return self._root

    def _behind(self, path: tuple[int, ...], *, is_likeliest: bool) -> _Found:
        above = self._level.get(path[:-1])
        if above is not None:
            occurrences = above.texts.after(above.occurrences, path[-1])
            if occurrences or not is_likeliest:
                return _Found(above.texts, occurrences)
        if is_likeliest:
            return self._search(self._text.tail + array("i", path).tobytes())
        return _Found(self._text, [])

    def _search(self, tail: bytes) -> _Found:
        found = _Found(self._text, self._text.behind(tail))
        if self._earlier is not None:
            earlier = self._earlier.texts.array
            others = _Found(earlier, earlier.behind(tail))
            if _longest(others) > _longest(found):
                return others
        return found

    def _use(self, found: _Found, token_id: int) -> None:
        """Answers out of which was drafted what is right are kept longest."""
        if self._earlier is not None and found.texts is not self._text:
            for one in found.occurrences:
                if one.token_id == token_id:
                    self._earlier.use(one.place)
                    return


def _longest(found: _Found) -> int:
    return max((length for _, length, _ in found.occurrences), default=0)


def _serves(_: Target) -> bool:
    return True


def _build(target: Target, _: RowBudget) -> SuffixSource:
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
    build=_build,
    weight=0.0,
    alone=DrafterChoice(
        "suffix",
        "Suffix tree",
        "What followed the same words before, in this conversation or in earlier answers.",
    ),
    preference=30,
)
