"""The recorded steps of one answer."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque

from medusa_core.messages import GenerationDone, StepTrace


class Track:
    """The steps of one answer.

    Attributes:
        request_id: Id of the answer.
        model: Name of the target.
        rule: Name of the acceptance rule.
        done: Its last event; None while it is written.
        file: Name of its file; empty if it was recorded here.
        has_failed: Whether it ended with an error.
        num_given: Tokens of the answer that were given before its first step.
        num_dropped: First steps that the ring buffer has dropped.
    """

    def __init__(self, request_id: str, model: str, rule: str, num_given: int = 0) -> None:
        """Begin a track.

        Args:
            request_id: Id of the answer.
            model: Name of the target.
            rule: Name of the acceptance rule.
            num_given: Tokens of the answer that were given before its first step.
        """
        self.request_id = request_id
        self.model = model
        self.rule = rule
        self.done: GenerationDone | None = None
        self.file = ""
        self.has_failed = False
        self.num_dropped = 0
        self.num_given = num_given
        self._steps: deque[StepTrace] = deque()
        self._ends: deque[int] = deque()
        self._num_lost = num_given  # tokens before the first step that is here

    def __len__(self) -> int:
        return len(self._steps)

    def __getitem__(self, index: int) -> StepTrace:
        return self._steps[index]

    @property
    def num_tokens(self) -> int:
        """Tokens of the answer, the given ones and those of dropped steps included."""
        return self._ends[-1] if self._ends else self._num_lost

    def add(self, step: StepTrace) -> None:
        """Add the next step."""
        self._ends.append(self.num_tokens + step.num_appended)
        self._steps.append(step)

    def drop_first(self) -> None:
        """Drop the oldest step."""
        self._num_lost = self._ends.popleft()
        self._steps.popleft()
        self.num_dropped += 1

    def first_token(self, index: int) -> int:
        """Return the index in the answer of a step's first token."""
        return self._ends[index] - self._steps[index].num_appended

    def step_of(self, token: int) -> int | None:
        """Return the index of the step that decided a token; None if unknown."""
        if not self._num_lost <= token < self.num_tokens:
            return None
        return bisect_right(self._ends, token)
