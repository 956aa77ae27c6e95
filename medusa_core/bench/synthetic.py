"""A drafter that is right so often at depth 1, 2, ...: what the engine makes of given rates.

It knows what the target will say, and gives chances that are true; drafting costs next to nothing.
So a speed-up says how good the machinery is, whatever drafters there are.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Mapping, Sequence
from itertools import accumulate
from operator import mul

from medusa_core.errors import RequestError
from medusa_core.loading.target import Target
from medusa_core.messages import CHAIN, DrafterChoice, SourceInfo
from medusa_core.runtime.tree.search import grow
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.drafters.grown import GrownDrafter
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.source import Candidates, Paths, SourceSpec

NAME = "synthetic"
_RANKS = 4  # guesses behind each path; each is right as often among what those before it leave
_MOST_RATES = 32

Texts = Mapping[tuple[int, ...], Sequence[int]]


class SyntheticSource:
    """Knows every text that will be written; see `Source`."""

    def __init__(self, rates: Sequence[float], texts: Texts, vocab_size: int) -> None:
        """Take what is to come.

        Args:
            rates: How often the first guess at depth 1, 2, ... is right.
            texts: By prompt, the tokens behind it.
            vocab_size: Of the target.
        """
        self.guesses: Sequence[Sequence[int]] = ()
        self._rates, self._texts, self._vocab_size = rates, texts, vocab_size
        self._text: Sequence[int] = ()
        self._length = 0

    def begin(self, token_ids: Sequence[int]) -> None:
        self._text = (*token_ids, *self._texts.get(tuple(token_ids), ()))
        self._length = len(token_ids)

    def start(self, root_id: int, most_rows: int) -> None:
        pass

    def candidates(self, paths: Paths) -> Candidates | None:
        if paths.level >= len(self._rates):
            return None
        place, rate = self._length + paths.level, self._rates[paths.level]
        right = self._text[place] if place < len(self._text) else 0
        dice = random.Random(place * _MOST_RATES + paths.level)
        rank = next((rank for rank in range(_RANKS) if dice.random() < rate), _RANKS)
        wrong = [(right + 1 + other) % self._vocab_size for other in range(_RANKS)]
        guesses = [*wrong[:rank], right, *wrong[rank:]][:_RANKS]
        behind = tuple(self._text[self._length : place])
        every = [guesses if paths.path(index) == behind else wrong for index in range(paths.num)]
        return Candidates(
            array("i", [token_id for guessed in every for token_id in guessed]),
            array("f", list(_shares(rate)) * paths.num),
            array("i", [_RANKS] * paths.num),
        )

    def observe(self, observation: Observation) -> None:
        self._length += len(observation.token_ids)

    def truncate(self, length: int) -> None:
        self._length = min(self._length, length)


def synthetic_spec(rates: Sequence[float], texts: Texts) -> DrafterSpec:
    """The drafter of such a source.

    Args:
        rates: How often the first guess at depth 1, 2, ... is right.
        texts: By prompt, the tokens behind it; they may come later.
    """
    info = SourceInfo(NAME, NAME, "=", "right as often as was said", ("blue",), "solid")

    def build(target: Target, budget: RowBudget) -> GrownDrafter:
        source = SourceSpec(
            info,
            serves=lambda _: True,
            make=lambda target, _: SyntheticSource(rates, texts, target.config.vocab_size),
        )
        return GrownDrafter(budget, target, [source])

    choice = DrafterChoice(NAME, "Synthetic", info.explanation)
    return DrafterSpec(
        choice, lambda _: True, build, 99, (NAME,), weighs_rows=True, is_offered=False
    )


def read_rates(text: str) -> tuple[float, ...]:
    """Rates as they are typed, such as 0.8,0.7,0.6.

    Raises:
        RequestError: They are none.
    """
    try:
        rates = tuple(float(part) for part in text.split(","))
    except ValueError:
        rates = ()
    if not 1 <= len(rates) <= _MOST_RATES or not all(0 <= rate <= 1 for rate in rates):
        raise RequestError(
            f"{text!r} are no rates of acceptance.",
            f"Write 1 to {_MOST_RATES} numbers from 0 to 1 as 0.8,0.7,0.6.",
        )
    return rates


def promised_tau(rates: Sequence[float], growth: str, num_rows: int) -> float:
    """Tokens per step that the rates promise: 1 + the chances of all paths of the best tree.

    Args:
        rates: How often the first guess at depth 1, 2, ... is right.
        growth: One of `GROWTHS`; of a chain 1 + Σ ∏ rates.
        num_rows: Of a step, root included.
    """
    if growth == CHAIN:
        shares: list[float] = list(accumulate(rates, mul))
        return 1 + sum(shares[: num_rows - 1])
    accuracies = tuple(_shares(rate) for rate in rates)
    return 1 + sum(value for _, value in grow(accuracies, num_rows - 1))


def _shares(rate: float) -> tuple[float, ...]:
    """How often the first guess is right, the second, ..."""
    return tuple(rate * (1 - rate) ** rank for rank in range(_RANKS))
