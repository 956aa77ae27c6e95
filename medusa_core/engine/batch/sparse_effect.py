"""What attention to few rows changes: the log-probability of answers, against all rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from medusa_core.engine.likelihood import log_probability
from medusa_core.loading.target import Target
from medusa_core.runtime.runner.resident import ResidentRunner


class AnsweredPrompt(NamedTuple):
    """An answer's tokens and those of its prompt."""

    prompt_ids: tuple[int, ...]
    answer_ids: tuple[int, ...]

    def log_probability(self, target: Target) -> float:
        """Of the answer, by a target's scores."""
        token_ids = [*self.prompt_ids, *self.answer_ids]
        return log_probability(target, token_ids, len(self.prompt_ids))


class SparseEffect(NamedTuple):
    """Mean log-probabilities of answers' tokens.

    Attributes:
        attended: Rows whose values attention took.
        sparse: Under it.
        full: Under attention to all rows.
        num_tokens: Of how many tokens.
    """

    attended: int
    sparse: float
    full: float
    num_tokens: int

    @property
    def text(self) -> str:
        """For people."""
        return (
            f"attention to {self.attended} rows: log-probability {self.sparse:.4f} a token, with "
            f"all rows {self.full:.4f} ({self.sparse - self.full:+.4f}), over {self.num_tokens} "
            "tokens of answers"
        )


def sparse_effect(target: Target, answered: Sequence[AnsweredPrompt]) -> SparseEffect | None:
    """Score answers both ways; None where nothing was said, or attention takes all rows.

    Args:
        target: What wrote them; it attends as before afterwards.
        answered: They.
    """
    runner, attended = target.runner, target.precision.attended
    num_tokens = sum(len(one.answer_ids) for one in answered)
    if not attended or not num_tokens or not isinstance(runner, ResidentRunner):
        return None
    try:
        runner.attend_to(0)
        full = sum(one.log_probability(target) for one in answered)
    finally:
        runner.attend_to(attended)
    sparse = sum(one.log_probability(target) for one in answered)
    return SparseEffect(attended, sparse / num_tokens, full / num_tokens, num_tokens)
