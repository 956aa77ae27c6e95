"""Lookahead decoding as a source: n-grams that the target finds itself while it decodes.

In every step a window of guesses rides beside the tree (`lookahead_window`); each step completes
n-grams there, which a pool keeps (`lookahead_pool`). Those that begin with the root are drafted.
The pool starts with the n-grams of the prompt, and takes those of the answer as it grows.

Unlike in the paper, n-grams that begin alike share their rows, and where rows have a price only
those that are likely enough are drafted, and the window has only the columns that pay.

Source: lookahead decoding (Fu et al. 2024), sections 3.1 to 3.3.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from medusa_core.loading.target import Target
from medusa_core.messages import DrafterChoice, SourceInfo
from medusa_core.runtime.tree.shape import TokenTree
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.lookahead_pool import (
    LookaheadPool,
    Tail,
)
from medusa_core.speculation.drafters.lookahead_window import LookaheadWindow
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.source import (
    Candidates,
    Paths,
    SourceSpec,
)

NAME = "lookahead"
_WORTH = 0.03  # tokens per step that a column brings at most, as measured
# Before anything is known: how often the n-gram found last, the one before it, ... begins right,
# and how often a right one goes on to be right. They weigh as much as so many counted steps.
_PRIOR = (0.3, 0.15, 0.1, 0.05)
_GOES_ON = 0.5
_PRIOR_WEIGHT = 8.0


class LookaheadSource:
    """The window, the pool, and how often what was offered was right; see `Source` and `Rides`."""

    def __init__(self, budget: RowBudget) -> None:
        """Take the sizes, and how many rows there are."""
        self.guesses: Sequence[Sequence[int]] = ()
        sizes = budget.lookahead
        self._size, self._most_guesses = sizes.size, sizes.guesses
        self._levels = sizes.size - 1
        self._num_columns = columns_that_pay(budget)
        self.most_riders = self._num_columns * self._levels
        self._window = LookaheadWindow(self._levels)
        self.begin(())

    def begin(self, token_ids: Sequence[int]) -> None:
        self._text: list[int] = []
        self._pool = LookaheadPool(self._most_guesses)
        self._window.clear()
        self._offered: list[Tail] = []
        self._right = [_PRIOR_WEIGHT * share for share in _PRIOR]
        self._tried = [_PRIOR_WEIGHT] * len(_PRIOR)
        self._went_on, self._could_go_on = _PRIOR_WEIGHT * _GOES_ON, _PRIOR_WEIGHT
        self._read(token_ids)

    def riders(self, root_id: int, num_rows: int) -> TokenTree | None:
        num_columns = min(self._num_columns, columns_in(num_rows, self._levels))
        self._window.fit(num_columns, self._text or (root_id,))
        return self._window.rows(root_id) if num_columns else None

    def start(self, root_id: int, most_rows: int) -> None:
        self._offered = self._pool.behind(root_id) if most_rows > 1 else []

    def candidates(self, paths: Paths) -> Candidates | None:
        if paths.level == self._levels or not self._offered:
            return None
        found = [self._behind(paths.path(index)) for index in range(paths.num)]
        return Candidates(
            array("i", [token_id for followers in found for token_id in followers]),
            array("f", [chance for followers in found for chance in followers.values()]),
            array("i", map(len, found)),
        )

    def _behind(self, path: tuple[int, ...]) -> dict[int, float]:
        """What follows a path in the n-grams that are offered, and how likely it is to."""
        level = len(path)
        found: dict[int, float] = {}
        for rank, tail in enumerate(self._offered):
            if tail[:level] == path:
                found.setdefault(tail[level], self._chance(rank, level))
        return found

    def _chance(self, rank: int, level: int) -> float:
        if level:
            return self._went_on / self._could_go_on
        place = min(rank, len(_PRIOR) - 1)
        return self._right[place] / self._tried[place]

    def observe(self, observation: Observation) -> None:
        token_ids, ridden = observation.token_ids, observation.ridden
        self._learn(tuple(token_ids))
        if ridden:
            for ngram in self._window.advance(ridden):
                self._pool.add(ngram, len(self._text))
        self._window.drop(len(token_ids) - bool(ridden))
        self._read(token_ids)

    def _learn(self, decided: tuple[int, ...]) -> None:
        """Count what came of what was offered."""
        for rank, tail in enumerate(self._offered):
            place = min(rank, len(_PRIOR) - 1)
            self._tried[place] += 1
            self._right[place] += tail[0] == decided[0]
        going_on = {tail for tail in self._offered if tail[0] == decided[0]}
        for level in range(1, min(self._levels, len(decided))):
            self._could_go_on += bool(going_on)
            going_on = {tail for tail in going_on if tail[level] == decided[level]}
            self._went_on += bool(going_on)
        self._offered = []

    def _read(self, token_ids: Sequence[int]) -> None:
        """Take text, and the n-grams that end in it."""
        text, start = self._text, len(self._text)
        text.extend(token_ids)
        for end in range(max(start + 1, self._size), len(text) + 1):
            self._pool.add(text[end - self._size : end], end)

    def truncate(self, length: int) -> None:
        del self._text[length:]
        self._pool.forget(length)
        self._window.clear()
        self._offered = []


def columns_in(num_rows: int, levels: int) -> int:
    """Columns of the window in a step of so many rows: half of them are for drafts."""
    return (num_rows - 1) // 2 // levels


def columns_that_pay(budget: RowBudget) -> int:
    """Columns of a window within a budget: as many as are worth their rows."""
    sizes, levels = budget.lookahead, budget.lookahead.size - 1
    most = min(sizes.window, columns_in(budget.most, levels))
    if not budget.row_costs:
        return most
    paying = (n for n in range(most, 0, -1) if budget.row_costs[n * levels] <= n * _WORTH)
    return next(paying, 0)


def _serves(_: Target) -> bool:
    return True


def _make(_: Target, budget: RowBudget) -> LookaheadSource:
    return LookaheadSource(budget)


SPEC = SourceSpec(
    SourceInfo(
        name=NAME,
        label="lookahead",
        badge="ahead",
        explanation="found by the model itself, in rows that look ahead",
        colours=("olive",),
        line="dash-dot",
    ),
    serves=_serves,
    make=_make,
    weight=0.0,
    rides=True,
    alone=DrafterChoice(
        NAME,
        "Lookahead",
        "The model guesses several places ahead at once; what it finds there is tried later.",
        looks_ahead=True,
    ),
    preference=60,
    # Nowhere measured does it bring as much as the suffix tree, which costs no rows: 1.7 tokens
    # per step against 2.0 where rows cost nothing.
    is_raced=False,
)
