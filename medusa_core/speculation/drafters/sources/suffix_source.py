"""Suffix decoding: draft the tokens that followed the same context before.

The longest suffix of the text, up to 24 tokens, is searched in the text so far, in messages that
were left out of a long conversation, in earlier answers, and in a folder that the user named; the
longest match is used, of equally long ones the first. What followed it may follow again. Paths are
extended at the matched positions, whichever source drafted their tokens, so a level needs no
search. (Searching for the best match of each level didn't help.)

A token's probability comes from how often it followed, and from how often followers of contexts of
that length were accepted. The paper bounds drafts by a factor times the length and a minimum
probability instead; here the growth drops tokens that aren't worth a row.

Sources: Oliaro et al., "SuffixDecoding" (2024, arXiv 2411.04975), section 3; prompt lookup decoding
(Saxena 2023); REST (He et al. 2024), section 3.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from medusa_core.messages import DrafterChoice, SourceInfo
from medusa_core.models.datastore.earlier_answers import EarlierAnswers
from medusa_core.models.datastore.folder_texts import FolderTexts
from medusa_core.models.datastore.follower_stats import FollowerStats
from medusa_core.models.datastore.suffix_array import DEPTH, Found, SuffixArray
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.source import (
    Candidates,
    Paths,
    SourceSpec,
)


class _Match(NamedTuple):
    """Occurrences of a path's last tokens in earlier text.

    Attributes:
        texts: Text so far, or other texts.
        found: Positions of the occurrences, and the tokens that follow them.
    """

    texts: SuffixArray
    found: Found


class SuffixSource:
    """Drafts from the text so far and from other texts; see `Source`."""

    def __init__(self, earlier: EarlierAnswers | None, folder: FolderTexts | None = None) -> None:
        """Start without a text.

        Args:
            earlier: Earlier answers; None for none.
            folder: Texts of a folder; None for none.
        """
        self.top_tokens: Sequence[Sequence[int]] = ()
        self._earlier, self._folder = earlier, folder
        self._left_out = SuffixArray()
        self._text = SuffixArray()
        self._stats = FollowerStats() if earlier is None else earlier.stats
        self._root: _Match | None = None  # of the whole text
        self._level: dict[tuple[int, ...], _Match] = {}  # by path of the last level

    def begin(self, token_ids: Sequence[int]) -> None:
        """Start an answer: index its prompt."""
        if self._earlier is None:
            self._stats = FollowerStats()
        self._text, self._root = SuffixArray(), None
        self._left_out = SuffixArray()
        self._text.extend(token_ids)

    def recall(self, texts: Iterable[Sequence[int]]) -> None:
        """Index texts of the conversation that aren't part of the prompt; see `RecallsTexts`."""
        for token_ids in texts:
            self._left_out.add_text(token_ids, 0)

    def start(self, root_id: int, most_rows: int) -> None:
        """Start a step: forget the matches of the step before."""
        self._level = {}

    def candidates(self, paths: Paths) -> Candidates | None:
        """Tokens that followed each path's match, with their probabilities."""
        if paths.level >= DEPTH or (paths.level and not self._level):
            return None
        listed = [paths.path(index) for index in range(paths.num)]
        self._level = self._root_match() if paths.level == 0 else self._extended(listed)
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
        """Count which followers were right, and append the decided tokens.

        The match is only known if the step drafted: while drafting is paused, nothing is searched.
        """
        known = self._root if self._root is not None and self._root.found.places else None
        for token_id in observation.token_ids:
            if known is not None:
                self._learn(known, token_id)
                known = _extend(known, token_id)
        self._text.extend(observation.token_ids)
        self._root = None

    def truncate(self, length: int) -> None:
        """Drop the text from `length` on."""
        self._root = None
        self._text.truncate(length)

    def _root_match(self) -> dict[tuple[int, ...], _Match]:
        """The match of the whole text, as that of the empty path; empty without one."""
        if self._root is None:
            self._root = self._search(self._text.tail)
        return {(): self._root} if self._root.found.places else {}

    def _extended(self, paths: Sequence[tuple[int, ...]]) -> dict[tuple[int, ...], _Match]:
        """Matches of the paths of one level; some have none."""
        level = {}
        for path in paths:
            above = self._level.get(path[:-1])
            known = None if above is None else _extend(above, path[-1])
            if known is not None:
                level[path] = known
        return level

    def _search(self, tail: array[int]) -> _Match:
        """The longest match of the text's end, in the text or in the other texts."""
        others = [self._left_out]
        if self._earlier is not None:
            others.append(self._earlier.texts.array)
        if self._folder is not None:
            others.append(self._folder.array)
        best = _Match(self._text, self._text.search(tail))
        for texts in others:
            if len(texts):
                found = texts.search(tail)
                if max(found.lengths, default=0) > max(best.found.lengths, default=0):
                    best = _Match(texts, found)
        return best

    def _learn(self, known: _Match, token_id: int) -> None:
        """Count a follower; earlier answers that contained it are kept longest."""
        texts, found = known
        self._stats.learn(found, token_id)
        earlier = self._earlier
        if earlier is not None and texts is earlier.texts.array and token_id in found.token_ids:
            earlier.use(found.places[found.token_ids.index(token_id)])


def _extend(known: _Match, token_id: int) -> _Match | None:
    """Extend a match by a token."""
    found = known.texts.advance(known.found, token_id)
    return _Match(known.texts, found) if found.places else None


SPEC = SourceSpec(
    SourceInfo(
        name="suffix",
        label="suffix",
        badge="suffix",
        explanation="what followed the same words before, in the text or in earlier answers",
        colours=("grey",),
        line="dash",
    ),
    serves=lambda _: True,
    make=lambda target, _: SuffixSource(target.learned, target.folder_texts),
    weight=0.0,
    alone=DrafterChoice(
        "suffix",
        "Suffix tree",
        "What followed the same words before, in this conversation or in earlier answers.",
    ),
    preference=30,
)
