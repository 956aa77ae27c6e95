"""A drafter with given acceptance rates at depth 1, 2, …, to measure the engine alone.

It knows the target's text and states true probabilities; drafting takes almost no time.
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
_RANKS = 4  # candidates of each path; each is right equally often if those before it are wrong
_MAX_RATES = 32

Texts = Mapping[tuple[int, ...], Sequence[int]]


class SyntheticSource:
    """Candidates from texts that are known in advance; see `Source`."""

    def __init__(self, rates: Sequence[float], texts: Texts, vocab_size: int) -> None:
        """Set rates and texts.

        Args:
            rates: Acceptance rate of the first candidate at depth 1, 2, ….
            texts: Tokens of the answer by those of the prompt.
            vocab_size: Size of the target's vocabulary.
        """
        self.top_tokens: Sequence[Sequence[int]] = ()
        self._rates, self._texts, self._vocab_size = rates, texts, vocab_size
        self._text: Sequence[int] = ()
        self._length = 0

    def begin(self, token_ids: Sequence[int]) -> None:
        """Start an answer whose text is known in advance."""
        self._text = (*token_ids, *self._texts.get(tuple(token_ids), ()))
        self._length = len(token_ids)

    def start(self, root_id: int, most_rows: int) -> None:
        """Do nothing: candidates depend on the position alone."""

    def candidates(self, paths: Paths) -> Candidates | None:
        """Candidates of which one is right, as often as the rates demand."""
        if paths.level >= len(self._rates):
            return None
        place, rate = self._length + paths.level, self._rates[paths.level]
        right = self._text[place] if place < len(self._text) else 0
        dice = random.Random(place * _MAX_RATES + paths.level)
        rank = next((rank for rank in range(_RANKS) if dice.random() < rate), _RANKS)
        wrong = [(right + 1 + other) % self._vocab_size for other in range(_RANKS)]
        guesses = [*wrong[:rank], right, *wrong[rank:]][:_RANKS]
        accepted = tuple(self._text[self._length : place])
        every = [guesses if paths.path(index) == accepted else wrong for index in range(paths.num)]
        return Candidates(
            array("i", [token_id for guessed in every for token_id in guessed]),
            array("f", list(_shares(rate)) * paths.num),
            array("i", [_RANKS] * paths.num),
        )

    def observe(self, observation: Observation) -> None:
        """Advance by the decided tokens."""
        self._length += len(observation.token_ids)

    def truncate(self, length: int) -> None:
        """Return to a shorter text."""
        self._length = min(self._length, length)


def synthetic_spec(rates: Sequence[float], texts: Texts) -> DrafterSpec:
    """Return the drafter of a synthetic source.

    Args:
        rates: Acceptance rate of the first candidate at depth 1, 2, ….
        texts: Tokens of the answer by those of the prompt; may be filled later.
    """
    info = SourceInfo(NAME, NAME, "=", "accepted at given rates", ("blue",), "solid")

    def build(target: Target, budget: RowBudget) -> GrownDrafter:
        """Make the drafter of the source."""
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
    """Parse rates such as 0.8,0.7,0.6.

    Raises:
        RequestError: They aren't numbers from 0 to 1.
    """
    try:
        rates = tuple(float(part) for part in text.split(","))
    except ValueError:
        rates = ()
    if not 1 <= len(rates) <= _MAX_RATES or not all(0 <= rate <= 1 for rate in rates):
        raise RequestError(
            f"{text!r} are no rates of acceptance.",
            f"Write 1 to {_MAX_RATES} numbers from 0 to 1 as 0.8,0.7,0.6.",
        )
    return rates


def expected_tau(rates: Sequence[float], growth: str, num_rows: int) -> float:
    """Return the expected tokens per step: 1 + the probabilities of all paths of the best tree.

    Args:
        rates: Acceptance rate of the first candidate at depth 1, 2, ….
        growth: One of `GROWTHS`; 1 + Σ ∏ rates for a chain.
        num_rows: Rows of a step, root included.
    """
    if growth == CHAIN:
        shares: list[float] = list(accumulate(rates, mul))
        return 1 + sum(shares[: num_rows - 1])
    accuracies = tuple(_shares(rate) for rate in rates)
    return 1 + sum(value for _, value in grow(accuracies, num_rows - 1))


def _shares(rate: float) -> tuple[float, ...]:
    """Return the probability of each candidate."""
    return tuple(rate * (1 - rate) ** rank for rank in range(_RANKS))
