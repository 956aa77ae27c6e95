"""What the model said in earlier answers as a source: it may say the same behind the same words.

Reads the very tokens of every path, so that it goes on where another source has begun.

Source: REST (He et al. 2024), section 3.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from medusa_core.errors import RequestError
from medusa_core.loading.target import Target
from medusa_core.messages import SourceInfo
from medusa_core.models.datastore.earlier_answers import EarlierAnswers
from medusa_core.models.datastore.suffixes import (
    LONGEST,
    SuffixMatch,
)
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.source import (
    Candidates,
    Paths,
    SourceSpec,
)

_DEEPEST = 12


class LearnedSource:
    """Finds what followed the end of each path before."""

    def __init__(self, learned: EarlierAnswers) -> None:
        self.guesses: Sequence[Sequence[int]] = ()
        self._learned = learned
        self._text = array("i")
        self._found: SuffixMatch | None = None  # behind the root, in the step under way

    def begin(self, token_ids: Sequence[int]) -> None:
        self._text, self._found = array("i", token_ids), None

    def start(self, root_id: int, most_rows: int) -> None:
        self._found = None

    def candidates(self, paths: Paths) -> Candidates | None:
        if paths.level >= _DEEPEST or not self._learned.index.token_ids:
            return None
        tail = self._text[-LONGEST:]
        if paths.level == 0:
            self._found = self._learned.index.behind(tail)
            index = [self._followers(self._found)]
        else:
            behind, level, below = self._learned.index.behind, paths.level, paths.token_ids
            index = [
                self._followers(behind(tail + below[place : place + level]))
                for place in range(0, paths.num * level, level)
            ]
        if not any(index):
            return None
        return Candidates(
            array("i", [token_id for followers in index for token_id in followers]),
            array("f", [chance for followers in index for chance in followers.values()]),
            array("i", map(len, index)),
        )

    def _followers(self, found: SuffixMatch | None) -> dict[int, float]:
        if found is None:
            return {}
        index = self._learned.index.token_ids
        return self._learned.trust.chances(found.kind, [index[place] for place in found.places])

    def observe(self, observation: Observation) -> None:
        if self._found is not None:
            index, token_id = self._learned.index.token_ids, observation.token_ids[0]
            followers = [index[place] for place in self._found.places]
            self._learned.trust.learn(self._found.kind, followers, token_id)
            if token_id in followers:
                self._learned.use(self._found.places[followers.index(token_id)])
        self._found = None
        self._text.extend(observation.token_ids)

    def truncate(self, length: int) -> None:
        self._found = None
        del self._text[length:]


def _serves(target: Target) -> bool:
    return target.learned is not None


def _build(target: Target, _: RowBudget) -> LearnedSource:
    if target.learned is None:
        raise RequestError(f"What {target.name} said isn't kept.", HINT)
    return LearnedSource(target.learned)


HINT = "Leave out --no-learned, or choose another drafter."
SPEC = SourceSpec(
    SourceInfo(
        name="learned",
        label="learned",
        badge="learned",
        explanation="what the model said in earlier answers",
        colours=("wine",),
        line="dash-dot",
    ),
    serves=_serves,
    build=_build,
    weight=0.0,
    hint=HINT,
)
