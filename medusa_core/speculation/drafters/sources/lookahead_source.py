"""Source of lookahead decoding: n-grams that the target generates by Jacobi iteration.

The riders of every step are the iteration's window (`lookahead_window`), which completes n-grams
for a pool (`LookaheadPool`). N-grams that begin with the root are drafted. The pool starts with
those of the prompt, and those of the answer are added.

Unlike in the paper, n-grams with a common prefix share rows, drafts and columns of the window are
limited to those that are worth the cost of their rows.

Source: lookahead decoding (Fu et al. 2024), sections 3.1 to 3.3.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Sequence

from medusa_core.messages import DrafterChoice, SourceInfo
from medusa_core.runtime.tree.shape import TokenTree
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.lookahead_window import LookaheadWindow
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.source import (
    Candidates,
    Paths,
    SourceSpec,
)

MAX_FIRSTS = 4096  # first tokens with n-grams; the least recently used are dropped

Tail = tuple[int, ...]


class LookaheadPool:
    """N-grams by first token, a few of each, in least-recently-used order."""

    def __init__(self, max_tails: int) -> None:
        """Keep at most `max_tails` n-grams of each first token."""
        self._max_tails = max_tails
        self._tails: OrderedDict[int, OrderedDict[Tail, int]] = OrderedDict()

    def __len__(self) -> int:
        return sum(map(len, self._tails.values()))

    def add(self, ngram: Sequence[int], length: int) -> None:
        """Add an n-gram.

        Args:
            ngram: Its tokens.
            length: Number of decided tokens when it was found.
        """
        first, tail = ngram[0], tuple(ngram[1:])
        tails = self._tails.setdefault(first, OrderedDict())
        self._tails.move_to_end(first)
        tails[tail] = min(length, tails.get(tail, length))
        tails.move_to_end(tail)
        if len(tails) > self._max_tails:
            tails.popitem(last=False)
        if len(self._tails) > MAX_FIRSTS:
            self._tails.popitem(last=False)

    def tails(self, first: int) -> list[Tail]:
        """The n-grams of a first token without it, the latest first."""
        return list(reversed(self._tails.get(first, ())))

    def forget(self, length: int) -> None:
        """Drop n-grams found after more than `length` decided tokens."""
        for first, tails in list(self._tails.items()):
            for tail in [tail for tail, found in tails.items() if found > length]:
                del tails[tail]
            if not tails:
                del self._tails[first]


NAME = "lookahead"
_COLUMN_GAIN = 0.03  # tokens per step that a column yields at most, as measured
# Prior acceptance of the first token of the latest n-gram, the one before it, ..., and of each
# further token; they count as much as so many steps.
_PRIOR = (0.3, 0.15, 0.1, 0.05)
_PRIOR_CONTINUATION = 0.5
_PRIOR_WEIGHT = 8.0


class LookaheadSource:
    """Drafts n-grams of the pool, and runs the window; see `Source` and `Rides`."""

    def __init__(self, budget: RowBudget) -> None:
        """Prepare the window within a budget."""
        self.top_tokens: Sequence[Sequence[int]] = ()
        sizes = budget.lookahead
        self._size, self._max_tails = sizes.size, sizes.guesses
        self._levels = sizes.size - 1
        self._num_columns = profitable_columns(budget)
        self.most_riders = self._num_columns * self._levels
        self._window = LookaheadWindow(self._levels)
        self.begin(())

    def begin(self, token_ids: Sequence[int]) -> None:
        """Start an answer with the prompt's n-grams and a new window."""
        self._text: list[int] = []
        self._pool = LookaheadPool(self._max_tails)
        self._window.clear()
        self._offered: list[Tail] = []
        self._right = [_PRIOR_WEIGHT * share for share in _PRIOR]
        self._drafted = [_PRIOR_WEIGHT] * len(_PRIOR)
        self._continued, self._continuable = _PRIOR_WEIGHT * _PRIOR_CONTINUATION, _PRIOR_WEIGHT
        self._read(token_ids)

    def riders(self, root_id: int, num_rows: int) -> TokenTree | None:
        """The window of this step; None without room for a column."""
        num_columns = min(self._num_columns, columns_in(num_rows, self._levels))
        self._window.fit(num_columns, self._text or (root_id,))
        return self._window.rows(root_id) if num_columns else None

    def start(self, root_id: int, most_rows: int) -> None:
        """Look up the n-grams that begin with the root."""
        self._offered = self._pool.tails(root_id) if most_rows > 1 else []

    def candidates(self, paths: Paths) -> Candidates | None:
        """Tokens that follow each path in the drafted n-grams."""
        if paths.level == self._levels or not self._offered:
            return None
        found = [self._followers(paths.path(index)) for index in range(paths.num)]
        return Candidates(
            array("i", [token_id for followers in found for token_id in followers]),
            array("f", [chance for followers in found for chance in followers.values()]),
            array("i", map(len, found)),
        )

    def _followers(self, path: tuple[int, ...]) -> dict[int, float]:
        """Followers of a path in the drafted n-grams, with their probabilities."""
        level = len(path)
        found: dict[int, float] = {}
        for rank, tail in enumerate(self._offered):
            if tail[:level] == path:
                found.setdefault(tail[level], self._chance(rank, level))
        return found

    def _chance(self, rank: int, level: int) -> float:
        """Observed acceptance of the n-gram of a rank, or of one more of its tokens."""
        if level:
            return self._continued / self._continuable
        place = min(rank, len(_PRIOR) - 1)
        return self._right[place] / self._drafted[place]

    def observe(self, observation: Observation) -> None:
        """Learn from the decided tokens, advance the window, and add n-grams."""
        token_ids, ridden = observation.token_ids, observation.ridden
        self._learn(tuple(token_ids))
        if ridden:
            for ngram in self._window.advance(ridden):
                self._pool.add(ngram, len(self._text))
        self._window.drop(len(token_ids) - bool(ridden))
        self._read(token_ids)

    def _learn(self, decided: tuple[int, ...]) -> None:
        """Count accepted and drafted n-grams."""
        for rank, tail in enumerate(self._offered):
            place = min(rank, len(_PRIOR) - 1)
            self._drafted[place] += 1
            self._right[place] += tail[0] == decided[0]
        matching = {tail for tail in self._offered if tail[0] == decided[0]}
        for level in range(1, min(self._levels, len(decided))):
            self._continuable += bool(matching)
            matching = {tail for tail in matching if tail[level] == decided[level]}
            self._continued += bool(matching)
        self._offered = []

    def _read(self, token_ids: Sequence[int]) -> None:
        """Append text, and add the n-grams that end in it."""
        text, start = self._text, len(self._text)
        text.extend(token_ids)
        for end in range(max(start + 1, self._size), len(text) + 1):
            self._pool.add(text[end - self._size : end], end)

    def truncate(self, length: int) -> None:
        """Drop the text from `length` on, and what was found in it."""
        del self._text[length:]
        self._pool.forget(length)
        self._window.clear()
        self._offered = []


def columns_in(num_rows: int, levels: int) -> int:
    """Columns of the window in a step of `num_rows` rows, half of which are for drafts."""
    return (num_rows - 1) // 2 // levels


def profitable_columns(budget: RowBudget) -> int:
    """Columns of the window that are worth their rows within a budget."""
    sizes, levels = budget.lookahead, budget.lookahead.size - 1
    most = min(sizes.window, columns_in(budget.most, levels))
    if not budget.row_costs:
        return most
    paying = (n for n in range(most, 0, -1) if budget.row_costs[n * levels] <= n * _COLUMN_GAIN)
    return next(paying, 0)


SPEC = SourceSpec(
    SourceInfo(
        name=NAME,
        label="lookahead",
        badge="ahead",
        explanation="found by the model itself, in rows that look ahead",
        colours=("olive",),
        line="dash-dot",
    ),
    serves=lambda _: True,
    make=lambda _, budget: LookaheadSource(budget),
    weight=0.0,
    rides=True,
    alone=DrafterChoice(
        NAME,
        "Lookahead",
        "The model drafts several positions ahead at once; what it finds there is tried later.",
        looks_ahead=True,
    ),
    preference=60,
    # Nowhere measured does it bring as much as the suffix tree, which costs no rows: 1.7 tokens
    # per step against 2.0 where rows cost nothing.
    is_raced=False,
)
