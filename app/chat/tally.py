"""What the steps of an answer add up to, counted from `StepDone` and from nothing else."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from app.markdown.tokens import LOOKUP, mark_of
from medusa_core.messages import StepDone

# As many bars as the strip can ever draw.
MAX_BARS = 240
MEDUSA = "medusa"


@dataclass(frozen=True, slots=True)
class StepBar:
    """One decoding step in the strip.

    Attributes:
        marks: How each accepted token is marked, in order.
        num_own: Tokens that the target chose itself in this step.
    """

    marks: tuple[int, ...]
    num_own: int

    @property
    def num_tokens(self) -> int:
        """Tokens that the step gave."""
        return len(self.marks) + self.num_own


@dataclass(frozen=True, slots=True)
class HeadTally:
    """Acceptance of one head.

    Attributes:
        head: Its number, 1-based.
        num_accepted: Accepted tokens that it drafted.
        num_offered: Steps whose tree reached its depth.
    """

    head: int
    num_accepted: int
    num_offered: int

    @property
    def rate(self) -> float:
        """Accepted tokens of the head ÷ steps that offered its depth; 0 before the first."""
        return self.num_accepted / self.num_offered if self.num_offered else 0.0


class StepTally:
    """Sums over the decoding steps of one answer.

    Attributes:
        bars: The last steps, oldest first.
        num_steps: Decoding steps; prefill is none.
        num_tokens: Tokens that they gave.
        num_looked_up: Accepted tokens that a lookup found.
        has_others: Others than Medusa heads drafted, too: then depths are counted, not heads.
    """

    def __init__(self) -> None:
        self.bars: deque[StepBar] = deque(maxlen=MAX_BARS)
        self.num_steps = 0
        self.num_tokens = 0
        self.num_looked_up = 0
        self.has_others = False
        self._accepted: dict[int, int] = {}
        self._offered: dict[int, int] = {}

    def add(self, step: StepDone) -> None:
        """Count a step; prefill (step 0) counts nothing."""
        if step.step == 0:
            return
        accepted = [source for source in step.sources if mark_of(source)]
        drafters = {source.drafter for source in accepted}
        self.has_others = self.has_others or not drafters <= {MEDUSA}
        marks = tuple(map(mark_of, accepted))
        self.num_looked_up += marks.count(LOOKUP)
        self.bars.append(StepBar(marks, len(step.sources) - len(marks)))
        self.num_steps += 1
        self.num_tokens += len(step.sources)
        for source in accepted:
            self._accepted[source.head] = self._accepted.get(source.head, 0) + 1
        for depth, num_nodes in enumerate(step.proposed_per_depth, start=1):
            if num_nodes:
                self._offered[depth] = self._offered.get(depth, 0) + 1

    @property
    def mean_acceptance_length(self) -> float:
        """Tokens from decode steps ÷ decode steps; 0 before the first."""
        return self.num_tokens / self.num_steps if self.num_steps else 0.0

    def lookup(self) -> HeadTally | None:
        """What lookup gave; None where it gave nothing."""
        found = self.num_looked_up
        return HeadTally(LOOKUP, found, self.num_steps) if found else None

    def heads(self) -> tuple[HeadTally, ...]:
        """Acceptance of every head whose depth was offered, first head first."""
        return tuple(
            HeadTally(head, self._accepted.get(head, 0), self._offered[head])
            for head in sorted(self._offered)
        )
