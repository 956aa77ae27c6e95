"""Sums over the steps of an answer, counted from `StepDone` events only."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from app.chat.strip.acceptance import (
    AcceptanceRate,
    AcceptanceTally,
)
from app.theme.legend import (
    Legend,
    Mark,
    mark_of,
)
from medusa_core.messages import StepDone

# As many bars as the strip can ever draw.
MAX_BARS = 240


@dataclass(frozen=True, slots=True)
class StepBar:
    """One decoding step in the strip.

    Attributes:
        marks: How each accepted token is marked, in order.
        num_own: Tokens that the target sampled itself.
    """

    marks: tuple[Mark, ...]
    num_own: int

    @property
    def num_tokens(self) -> int:
        """Number of tokens of the step."""
        return len(self.marks) + self.num_own


class StepTally:
    """Sums over the decoding steps of one answer.

    Args:
        legend: Names and order of draft sources.

    Attributes:
        bars: The last steps, oldest first.
        num_steps: Decoding steps; prefill is none.
        num_tokens: Tokens of these steps.
        seconds: Duration of these steps.
    """

    def __init__(self, legend: Legend) -> None:
        self.bars: deque[StepBar] = deque(maxlen=MAX_BARS)
        self.num_steps = 0
        self.num_tokens = 0
        self.seconds = 0.0
        self._acceptance = AcceptanceTally(legend)

    def add(self, step: StepDone) -> None:
        """Count a step; prefill (step 0) counts nothing."""
        if step.step == 0:
            return
        accepted = tuple(source for source in step.sources if mark_of(source) is not None)
        marks = tuple(mark for mark in map(mark_of, accepted) if mark is not None)
        self.bars.append(StepBar(marks, len(step.sources) - len(accepted)))
        self.num_steps += 1
        self.num_tokens += len(step.sources)
        self.seconds += step.step_s
        self._acceptance.add(step.node_sources, accepted)

    @property
    def mean_acceptance_length(self) -> float:
        """Tokens from decode steps ÷ decode steps; 0 before the first."""
        return self.num_tokens / self.num_steps if self.num_steps else 0.0

    @property
    def tokens_per_s(self) -> float:
        """Tokens from decode steps ÷ their seconds; 0 before the first."""
        return self.num_tokens / self.seconds if self.seconds else 0.0

    def rates(self) -> tuple[AcceptanceRate, ...]:
        """Return the acceptance rate of each draft source."""
        return self._acceptance.rates()
