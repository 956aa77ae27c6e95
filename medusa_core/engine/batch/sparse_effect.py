"""Effect of sparse attention on the log-probability of answers."""

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
        """Log-probability of the answer under a target."""
        token_ids = [*self.prompt_ids, *self.answer_ids]
        return log_probability(target, token_ids, len(self.prompt_ids))


class SparseEffect(NamedTuple):
    """Mean log-probabilities of answers' tokens.

    Attributes:
        attended: Number of rows that sparse attention attends to.
        sparse: Mean with sparse attention.
        full: Mean with attention to all rows.
        num_tokens: Number of tokens.
    """

    attended: int
    sparse: float
    full: float
    num_tokens: int

    @property
    def text(self) -> str:
        """A sentence for users."""
        return (
            f"attention to {self.attended} rows: log-probability {self.sparse:.4f} a token, with "
            f"all rows {self.full:.4f} ({self.sparse - self.full:+.4f}), over {self.num_tokens} "
            "tokens of answers"
        )


def sparse_effect(target: Target, answered: Sequence[AnsweredPrompt]) -> SparseEffect | None:
    """Score answers with sparse and full attention; None without answers or sparse attention.

    Args:
        target: The target that generated them.
        answered: The answers with their prompts.
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
