"""What a step costs on this machine: T(n), by rows and by the length of the cache."""

from __future__ import annotations

import statistics
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any

from medusa_core.types import RowBudget

MOST_ROWS = 64  # of a tree whose size the engine chooses
_AS_FAST = 0.97  # closer than this, measurements don't tell speeds apart


@dataclass(frozen=True, slots=True)
class StepCosts:
    """Measured seconds of a step's parts.

    Attributes:
        lengths: Committed rows of the cache that steps were measured behind, ascending.
        rows: Rows of the measured steps, ascending, from 1.
        seconds: Of every length, the seconds of a step (verification and acceptance) of each
            number of rows.
        draft_s: Seconds to ask the first head, the first two, ...; empty without heads.
        drawn_draft_s: As `draft_s`, where chance chooses: its noise is told to the heads.
    """

    lengths: tuple[int, ...]
    rows: tuple[int, ...]
    seconds: tuple[tuple[float, ...], ...]
    draft_s: tuple[float, ...] = ()
    drawn_draft_s: tuple[float, ...] = ()

    @property
    def most_rows(self) -> int:
        """Largest number of rows that was measured."""
        return self.rows[-1]

    def step_s(self, num_rows: int, length: int) -> float:
        """Seconds of a step with so many rows behind a cache of some length.

        Linear between measured points, and beyond the largest number of rows.
        """
        costs = [_between(num_rows, self.rows, seconds) for seconds in self.seconds]
        return max(_between(length, self.lengths, costs), min(costs) / 2)

    def plain_s(self, length: int) -> float:
        """Seconds of a step of plain decoding."""
        return self.step_s(1, length)

    def drafting_s(self, num_heads: int, draws: bool = False) -> float:
        """Seconds to ask so many heads, where chance chooses or where it doesn't."""
        seconds = (self.drawn_draft_s if draws else self.draft_s)[:num_heads]
        return seconds[-1] if seconds else 0.0

    def tree_s(self, num_rows: int, num_heads: int, length: int, draws: bool = False) -> float:
        """Seconds of a step with a drafted tree, the draft included."""
        return self.step_s(num_rows, length) + self.drafting_s(num_heads, draws)

    def best_rows(
        self,
        depths: Sequence[int],
        values: Sequence[float],
        length: int,
        draws: bool = False,
        sharers: int = 1,
    ) -> int:
        """The row count with the most tokens per second: the largest τ(n) / step time.

        Of counts that are as fast as the fastest, the smallest: rows are what takes longer when
        others use the machine, and in an answer they take longer than in a loop.

        Args:
            depths: Depth of every draft node, the most valuable node first.
            values: The chance that the whole path to each node is right.
            length: Committed rows of the cache.
            draws: Whether chance chooses.
            sharers: How many sequences have such a tree in the pass.

        Returns:
            Rows of one tree, root included; 1 where no tree pays.
        """
        speeds, expected, deepest = [1 / self.step_s(sharers, length)], 1.0, 0
        for num_rows, (depth, value) in enumerate(zip(depths, values, strict=True), start=2):
            if num_rows * sharers > self.most_rows:
                break
            expected, deepest = expected + value, max(deepest, depth)
            pass_s = self.step_s(num_rows * sharers, length)
            speeds.append(expected / (pass_s + sharers * self.drafting_s(deepest, draws)))
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
            draft_s=tuple(float(s) for s in raw["draft_s"]),
            drawn_draft_s=tuple(float(s) for s in raw["drawn_draft_s"]),
        )
        paired = len(costs.draft_s) == len(costs.drawn_draft_s)
        shaped = (
            paired
            and len(costs.seconds) == len(costs.lengths) > 0
            and all(len(row) == len(costs.rows) for row in costs.seconds)
        )
        rising = list(costs.rows) == sorted(set(costs.rows)) and costs.rows[:1] == (1,)
        numbers = [*costs.draft_s, *costs.drawn_draft_s, *(s for row in costs.seconds for s in row)]
        if not shaped or not rising or not all(0 < number < 3600 for number in numbers):
            raise ValueError("the costs make no sense")
        return costs


def usual_s(measured: Sequence[float]) -> float:
    """The lower quartile: other programs make steps longer, never shorter."""
    return statistics.quantiles(measured, n=4)[0] if len(measured) > 1 else measured[0]


@lru_cache(maxsize=64)
def _curve(rows: tuple[int, ...], seconds: tuple[float, ...], most: int) -> tuple[float, ...]:
    """Seconds of 1, 2, ... rows behind one length."""
    return tuple(_between(num_rows, rows, seconds) for num_rows in range(1, most + 1))


def _between(at: float, places: Sequence[int], values: Sequence[float]) -> float:
    """The line through the neighbours of a place; the last two, beyond the end."""
    left, share = _neighbours(at, places)
    return values[left] + share * (values[left + 1] - values[left]) if share else values[left]


def _neighbours(at: float, places: Sequence[int]) -> tuple[int, float]:
    """Which place comes before, and how far it is from there to the next; 1 is all the way."""
    if len(places) == 1 or at <= places[0]:
        return 0, 0.0
    left = min(bisect_left(places, at), len(places) - 1) - 1
    return left, (at - places[left]) / (places[left + 1] - places[left])
