"""What a step costs on this machine: T(n), by rows and by the length of the cache."""

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

MOST_ROWS = 64  # of a tree whose size the engine chooses
ASKED_PATHS = 8  # that go on at each level, about as many as in trees that pay
_AS_FAST = 0.97  # closer than this, measurements don't tell speeds apart
_LEAST_SLOPE = 1 / 64  # of a plain step, for a row that wasn't measured
_DEAREST = 2.0  # times as long as its rows one by one: no step takes longer


class SourceCost(NamedTuple):
    """Measured seconds of asking one source of drafts for one level of a tree, two, ...

    Attributes:
        greedy: Where the same scores always give the same token; behind `ASKED_PATHS` paths of
            each level.
        drawn: Where chance chooses: its noise is told to the source.
        chain: As `greedy`, behind one path of each level; as long, or empty for the same.
    """

    greedy: tuple[float, ...]
    drawn: tuple[float, ...]
    chain: tuple[float, ...] = ()

    def seconds(self, *, draws: bool = False, is_chain: bool = False) -> tuple[float, ...]:
        """Of asking for one level, two, ...

        Args:
            draws: Whether chance chooses.
            is_chain: Behind one path of each level.
        """
        if not is_chain or not self.chain:
            return self.drawn if draws else self.greedy
        if not draws:
            return self.chain
        noise = (drawn / greedy for drawn, greedy in zip(self.drawn, self.greedy, strict=True))
        return tuple(seconds * share for seconds, share in zip(self.chain, noise, strict=True))


class PassMix(NamedTuple):
    """Sequences that decode a step in one pass.

    Attributes:
        drafting: How many of them bring a tree.
        plain: How many bring one row each.
    """

    drafting: int
    plain: int

    @property
    def num(self) -> int:
        """How many there are."""
        return self.drafting + self.plain


ALONE = PassMix(1, 0)


@dataclass(frozen=True, slots=True)
class StepCosts:
    """Measured seconds of a step's parts.

    Attributes:
        lengths: Committed rows of the cache that steps were measured behind, ascending.
        rows: Rows of the measured steps, ascending, from 1.
        seconds: Of every length, the seconds of a step (verification and acceptance) of each
            number of rows.
        source_costs: What asking takes, of every source of drafts that serves the model.
        max_rows: Largest number of rows of a step; 0 for the largest measured one. What isn't
            measured is extrapolated: it is unknown, not forbidden.
        is_complete: Nothing is left to be measured.
    """

    lengths: tuple[int, ...]
    rows: tuple[int, ...]
    seconds: tuple[tuple[float, ...], ...]
    source_costs: Mapping[str, SourceCost] = field(default_factory=dict)
    max_rows: int = 0
    is_complete: bool = True

    @property
    def most_rows(self) -> int:
        """Largest number of rows of a step."""
        return self.max_rows or self.rows[-1]

    def step_s(self, num_rows: float, length: int) -> float:
        """Seconds of a step with so many rows behind a cache of some length.

        Linear between measured points, and beyond the largest number of rows.
        """
        costs = [_of_rows(num_rows, self.rows, seconds) for seconds in self.seconds]
        return max(interpolate(length, self.lengths, costs), min(costs) / 2)

    def plain_s(self, length: int) -> float:
        """Seconds of a step of plain decoding."""
        return self.step_s(1, length)

    def source_s(
        self, sources: Sequence[str], draws: bool = False, is_chain: bool = False
    ) -> tuple[float, ...]:
        """Seconds of asking some sources for no level, one, two, ...; beyond, as for the last.

        Args:
            sources: Names; what wasn't measured of one counts as nothing.
            draws: Whether chance chooses.
            is_chain: Behind one path of each level.
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
        """Seconds of a step with a drafted tree, the draft included; arguments as `best_rows`."""
        return self.step_s(num_rows, length) + source_s[min(levels, len(source_s) - 1)]

    def best_rows(
        self,
        depths: Sequence[int],
        values: Sequence[float],
        length: int,
        source_s: Sequence[float] = (0.0,),
        mix: PassMix = ALONE,
    ) -> int:
        """The row count with the most tokens per second: the largest τ(n) / step time.

        Of counts that are as fast as the fastest, the smallest: rows are what takes longer when
        others use the machine, and in an answer they take longer than in a loop.

        Args:
            depths: Depth of every draft node, the most valuable node first.
            values: The chance that the whole path to each node is right.
            length: Committed rows of the cache.
            source_s: What drafting one level takes, two, ..., behind 0.0 for none.
            mix: Which sequences are in the pass; each that drafts has such a tree.

        Returns:
            Rows of one tree, root included; 1 where no tree pays.
        """
        drafting, plain = mix
        speeds, expected, deepest = [mix.num / self.step_s(mix.num, length)], 1.0, 0
        for num_rows, (depth, value) in enumerate(zip(depths, values, strict=True), start=2):
            rows_of_all = num_rows * drafting + plain
            if rows_of_all > self.most_rows:
                break
            expected, deepest = expected + value, max(deepest, depth)
            pass_s = self.step_s(rows_of_all, length)
            drafting_s = source_s[min(deepest, len(source_s) - 1)]
            brings = expected * drafting + plain
            speeds.append(brings / (pass_s + drafting * drafting_s))
        enough = _AS_FAST * max(speeds)
        return next(rows for rows, speed in enumerate(speeds, start=1) if speed >= enough)

    def budget(self, most: int, length: int, tokens_per_s: float) -> RowBudget:
        """What rows cost where decoding brings so many tokens per second.

        Tokens per second are the most where every tree takes the rows that bring more tokens than
        their time does on average (Dinkelbach 1967, on fractional programming).

        Args:
            most: Rows at most.
            length: Committed rows of the cache.
            tokens_per_s: What decoding brings on average.
        """
        seconds = self.steps_s(most, length)
        prices = [tokens_per_s * (longer - seconds[0]) for longer in seconds]
        return RowBudget(len(prices), array("f", prices))

    def steps_s(self, most: int, length: int) -> list[float]:
        """Seconds of a step of 1, 2, ... rows, `most` at most; rising."""
        curves = [_curve(self.rows, row, min(most, self.most_rows)) for row in self.seconds]
        left, share = _neighbours(length, self.lengths)
        right = min(left + 1, len(curves) - 1)
        pairs = zip(curves[left], curves[right], strict=True)
        return list(accumulate((short + share * (long - short) for short, long in pairs), max))

    def to_json(self) -> dict[str, Any]:
        """As it is kept on disk."""
        return asdict(self)

    @classmethod
    def from_json(cls, raw: Any) -> StepCosts:
        """What was kept on disk.

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
                name: _source_costs(of) for name, of in dict(raw["source_costs"]).items()
            },
            max_rows=int(raw["max_rows"]),
            is_complete=bool(raw["is_complete"]),
        )
        shaped = (
            all(
                len(of.greedy) == len(of.drawn) > 0 and len(of.chain) in (0, len(of.greedy))
                for of in costs.source_costs.values()
            )
            and len(costs.seconds) == len(costs.lengths) > 0
            and all(len(row) == len(costs.rows) for row in costs.seconds)
        )
        rising = list(costs.rows) == sorted(set(costs.rows)) and costs.rows[:1] == (1,)
        asked = [s for of in costs.source_costs.values() for seconds in of for s in seconds]
        numbers = [*asked, *(s for row in costs.seconds for s in row)]
        if not shaped or not rising or not all(0 < number < 3600 for number in numbers):
            raise ValueError("the costs make no sense")
        # Rows one by one never take twice as long as together; a disturbed measurement says so.
        is_dear = any(
            s > _DEAREST * n * row[0]
            for row in costs.seconds
            for n, s in zip(costs.rows, row, strict=True)
        )
        if is_dear or (costs.is_complete and len(costs.rows) == 1 < costs.most_rows):
            raise ValueError("the costs were disturbed, or not measured to the end")
        return costs


def _source_costs(raw: Any) -> SourceCost:
    greedy, drawn, chain = (tuple(map(float, seconds)) for seconds in raw)
    return SourceCost(greedy, drawn, chain)


def usual_s(measured: Sequence[float]) -> float:
    """The lower quartile: other programs make steps longer, never shorter."""
    return statistics.quantiles(measured, n=4)[0] if len(measured) > 1 else measured[0]


def rising(seconds: Sequence[float]) -> tuple[float, ...]:
    """More never takes less; what says so is noise in what is less."""
    return tuple(accumulate(reversed(seconds), min))[::-1]


@lru_cache(maxsize=64)
def _curve(rows: tuple[int, ...], seconds: tuple[float, ...], most: int) -> tuple[float, ...]:
    """Seconds of 1, 2, ... rows behind one length."""
    return tuple(_of_rows(num_rows, rows, seconds) for num_rows in range(1, most + 1))


def _of_rows(num_rows: float, rows: Sequence[int], seconds: Sequence[float]) -> float:
    """Seconds of a step of so many rows; beyond what was measured, each takes no less than before.

    Two neighbours that seem to take the same, by chance, don't make all further rows free.
    """
    if num_rows <= rows[-1]:
        return interpolate(num_rows, rows, seconds)
    slopes = [seconds[0] * _LEAST_SLOPE]
    if len(rows) > 1:
        slopes.append((seconds[-1] - seconds[0]) / (rows[-1] - rows[0]))
        slopes.append((seconds[-1] - seconds[-2]) / (rows[-1] - rows[-2]))
    return seconds[-1] + (num_rows - rows[-1]) * max(slopes)


def interpolate(at: float, places: Sequence[int], values: Sequence[float]) -> float:
    """The line through the neighbours of a place; the last two, beyond the end."""
    left, share = _neighbours(at, places)
    return values[left] + share * (values[left + 1] - values[left]) if share else values[left]


def _neighbours(at: float, places: Sequence[int]) -> tuple[int, float]:
    """Which place comes before, and how far it is from there to the next; 1 is all the way."""
    if len(places) == 1 or at <= places[0]:
        return 0, 0.0
    left = min(bisect_left(places, at), len(places) - 1) - 1
    return left, (at - places[left]) / (places[left + 1] - places[left])
