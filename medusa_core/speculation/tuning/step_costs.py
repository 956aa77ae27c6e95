"""Measured seconds of steps, T(n) by rows and cache length, and of drafting."""

from __future__ import annotations

import statistics
from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

from medusa_core.runtime.tree.step import RowBudget

MAX_ROWS = 64  # of trees whose size the row policy chooses
PROBED_PATHS = 8  # paths per level while drafting is measured, about as many as in profitable trees
_SAME_SPEED = 0.97  # measurements can't tell closer speeds apart
_MIN_SLOPE = 1 / 64  # of a plain step, for each row beyond the measured ones
_MAX_RATIO = 2.0  # a step takes at most this times as long as its rows one by one


class SourceCost(NamedTuple):
    """Cumulative seconds of drafting 1, 2, ... levels with one source.

    Attributes:
        greedy: Under a deterministic rule, after `PROBED_PATHS` paths of each level.
        drawn: Under sampling, whose noise the source applies.
        chain: As `greedy`, but after one path of each level; empty if that takes as long.
    """

    greedy: tuple[float, ...]
    drawn: tuple[float, ...]
    chain: tuple[float, ...] = ()

    def seconds(self, *, draws: bool = False, is_chain: bool = False) -> tuple[float, ...]:
        """Cumulative seconds of 1, 2, ... levels.

        Args:
            draws: The rule samples.
            is_chain: Each level has one path.
        """
        if not is_chain or not self.chain:
            return self.drawn if draws else self.greedy
        if not draws:
            return self.chain
        noise = (drawn / greedy for drawn, greedy in zip(self.drawn, self.greedy, strict=True))
        return tuple(seconds * ratio for seconds, ratio in zip(self.chain, noise, strict=True))


class PassMix(NamedTuple):
    """Numbers of sequences that decode in one pass.

    Attributes:
        drafting: Sequences with a tree.
        plain: Sequences with one row.
    """

    drafting: int
    plain: int

    @property
    def num(self) -> int:
        """Number of all sequences."""
        return self.drafting + self.plain


ALONE = PassMix(1, 0)


@dataclass(frozen=True, slots=True)
class StepCosts:
    """Measured seconds of steps and drafts.

    Attributes:
        lengths: Measured lengths of the cache, ascending.
        rows: Measured numbers of rows, ascending, from 1.
        seconds: Seconds of verification and acceptance, by length and number of rows.
        source_costs: Seconds of drafting, by source.
        max_rows: Maximum rows of a step; 0 for the largest measured number. Steps that weren't
            measured are extrapolated.
        is_complete: Everything was measured.
    """

    lengths: tuple[int, ...]
    rows: tuple[int, ...]
    seconds: tuple[tuple[float, ...], ...]
    source_costs: Mapping[str, SourceCost] = field(default_factory=dict)
    max_rows: int = 0
    is_complete: bool = True

    @property
    def row_limit(self) -> int:
        """Maximum rows of a step."""
        return self.max_rows or self.rows[-1]

    def step_s(self, num_rows: float, length: int) -> float:
        """Seconds of a step; linear between measured points, and beyond the last one."""
        costs = [_seconds_of(num_rows, self.rows, seconds) for seconds in self.seconds]
        return max(interpolate(length, self.lengths, costs), min(costs) / 2)

    def plain_s(self, length: int) -> float:
        """Seconds of a plain step."""
        return self.step_s(1, length)

    def source_s(
        self, sources: Sequence[str], draws: bool = False, is_chain: bool = False
    ) -> tuple[float, ...]:
        """Cumulative seconds of drafting 0, 1, 2, ... levels with some sources.

        Args:
            sources: Names; sources that weren't measured count as nothing.
            draws: The rule samples.
            is_chain: Each level has one path.
        """
        known = [self.source_costs[name] for name in sources if name in self.source_costs]
        each = [cost.seconds(draws=draws, is_chain=is_chain) for cost in known]
        levels = max(map(len, each), default=0)
        return (
            0.0,
            *(sum(s[min(level, len(s)) - 1] for s in each) for level in range(1, levels + 1)),
        )

    def tree_s(
        self, num_rows: int, levels: int, length: int, source_s: Sequence[float] = (0.0,)
    ) -> float:
        """Seconds of a step with a tree, drafting included; arguments as in `best_rows`."""
        return self.step_s(num_rows, length) + source_s[min(levels, len(source_s) - 1)]

    def best_rows(
        self,
        depths: Sequence[int],
        values: Sequence[float],
        length: int,
        source_s: Sequence[float] = (0.0,),
        mix: PassMix = ALONE,
    ) -> int:
        """The number of rows with the most tokens per second: the largest τ(n) / step time.

        Of numbers that are as fast as the fastest, the smallest: rows cost more than measured while
        other programs run, and in an answer more than in a loop.

        Args:
            depths: Depth of every draft node, the most probable node first.
            values: Probability that the whole path to each node is accepted.
            length: Number of cached rows.
            source_s: Cumulative seconds of drafting 0, 1, 2, ... levels.
            mix: Sequences of the pass; each that drafts has such a tree.

        Returns:
            Rows of one tree, root included; 1 if no tree is profitable.
        """
        drafting, plain = mix
        speeds, expected, deepest = [mix.num / self.step_s(mix.num, length)], 1.0, 0
        for num_rows, (depth, value) in enumerate(zip(depths, values, strict=True), start=2):
            rows_of_all = num_rows * drafting + plain
            if rows_of_all > self.row_limit:
                break
            expected, deepest = expected + value, max(deepest, depth)
            pass_s = self.step_s(rows_of_all, length)
            drafting_s = source_s[min(deepest, len(source_s) - 1)]
            tokens = expected * drafting + plain
            speeds.append(tokens / (pass_s + drafting * drafting_s))
        fast_enough = _SAME_SPEED * max(speeds)
        return next(rows for rows, speed in enumerate(speeds, start=1) if speed >= fast_enough)

    def budget(self, max_rows: int, length: int, tokens_per_s: float) -> RowBudget:
        """Costs of rows in tokens.

        Tokens per second are maximal if every tree has the rows that yield more tokens than their
        time does on average (Dinkelbach 1967, on fractional programming).

        Args:
            max_rows: Maximum number of rows.
            length: Number of cached rows.
            tokens_per_s: Average tokens per second of decoding.
        """
        seconds = self.steps_s(max_rows, length)
        costs = [tokens_per_s * (step_s - seconds[0]) for step_s in seconds]
        return RowBudget(len(costs), array("f", costs))

    def steps_s(self, max_rows: int, length: int) -> list[float]:
        """Ascending seconds of a step of 1, 2, ... rows, up to `max_rows`."""
        curves = [_curve(self.rows, row, min(max_rows, self.row_limit)) for row in self.seconds]
        left, fraction = _neighbours(length, self.lengths)
        right = min(left + 1, len(curves) - 1)
        pairs = zip(curves[left], curves[right], strict=True)
        return list(accumulate((short + fraction * (long - short) for short, long in pairs), max))

    def to_json(self) -> dict[str, Any]:
        """The costs for the measurement files."""
        return asdict(self)

    @classmethod
    def from_json(cls, raw: Any) -> StepCosts:
        """Costs from the measurement files.

        Raises:
            KeyError: A key is missing.
            TypeError: A value has another type.
            ValueError: A number is out of range.
        """
        costs = cls(
            lengths=tuple(int(length) for length in raw["lengths"]),
            rows=tuple(int(rows) for rows in raw["rows"]),
            seconds=tuple(tuple(float(s) for s in row) for row in raw["seconds"]),
            source_costs={
                name: _source_cost(seconds) for name, seconds in dict(raw["source_costs"]).items()
            },
            max_rows=int(raw["max_rows"]),
            is_complete=bool(raw["is_complete"]),
        )
        has_shape = (
            all(
                len(cost.greedy) == len(cost.drawn) > 0 and len(cost.chain) in (0, len(cost.greedy))
                for cost in costs.source_costs.values()
            )
            and len(costs.seconds) == len(costs.lengths) > 0
            and all(len(row) == len(costs.rows) for row in costs.seconds)
        )
        is_ascending = list(costs.rows) == sorted(set(costs.rows)) and costs.rows[:1] == (1,)
        draft_s = [s for cost in costs.source_costs.values() for seconds in cost for s in seconds]
        numbers = [*draft_s, *(s for row in costs.seconds for s in row)]
        if not has_shape or not is_ascending or not all(0 < number < 3600 for number in numbers):
            raise ValueError("the costs make no sense")
        # A step never takes twice as long as its rows one by one, unless it was disturbed.
        is_disturbed = any(
            s > _MAX_RATIO * n * row[0]
            for row in costs.seconds
            for n, s in zip(costs.rows, row, strict=True)
        )
        if is_disturbed or (costs.is_complete and len(costs.rows) == 1 < costs.row_limit):
            raise ValueError("the costs were disturbed, or not measured to the end")
        return costs


def _source_cost(raw: Any) -> SourceCost:
    """Parse a saved `SourceCost`: three lists of seconds."""
    greedy, drawn, chain = (tuple(map(float, seconds)) for seconds in raw)
    return SourceCost(greedy, drawn, chain)


def quartile_s(measured: Sequence[float]) -> float:
    """The lower quartile of measured seconds: other programs make steps longer, never shorter."""
    return statistics.quantiles(measured, n=4)[0] if len(measured) > 1 else measured[0]


def ascending(seconds: Sequence[float]) -> tuple[float, ...]:
    """Make seconds monotonic: more rows never take less, so that a larger value before is noise."""
    return tuple(accumulate(reversed(seconds), min))[::-1]


@lru_cache(maxsize=64)
def _curve(rows: tuple[int, ...], seconds: tuple[float, ...], max_rows: int) -> tuple[float, ...]:
    """Seconds of 1, 2, ..., `max_rows` rows at one cache length."""
    return tuple(_seconds_of(num_rows, rows, seconds) for num_rows in range(1, max_rows + 1))


def _seconds_of(num_rows: float, rows: Sequence[int], seconds: Sequence[float]) -> float:
    """Seconds of a step; each row beyond the measured ones costs as much as those on average.

    If the last two measurements happen to be equal, further rows aren't free.
    """
    if num_rows <= rows[-1]:
        return interpolate(num_rows, rows, seconds)
    slopes = [seconds[0] * _MIN_SLOPE]
    if len(rows) > 1:
        slopes.append((seconds[-1] - seconds[0]) / (rows[-1] - rows[0]))
        slopes.append((seconds[-1] - seconds[-2]) / (rows[-1] - rows[-2]))
    return seconds[-1] + (num_rows - rows[-1]) * max(slopes)


def interpolate(at: float, places: Sequence[int], values: Sequence[float]) -> float:
    """Linear interpolation; beyond the end, extrapolation of the last two values."""
    left, fraction = _neighbours(at, places)
    if not fraction:
        return values[left]
    return values[left] + fraction * (values[left + 1] - values[left])


def _neighbours(at: float, places: Sequence[int]) -> tuple[int, float]:
    """Index of the place before `at`, and the fraction of the way to the next place."""
    if len(places) == 1 or at <= places[0]:
        return 0, 0.0
    left = min(bisect_left(places, at), len(places) - 1) - 1
    return left, (at - places[left]) / (places[left + 1] - places[left])
