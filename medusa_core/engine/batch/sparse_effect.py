"""What attention to few rows changes: the log-probability of answers, against all rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from medusa_core.loading.target import Target
from medusa_core.runtime.runner.resident import ResidentRunner


class AnsweredPrompt(NamedTuple):
    """An answer's tokens and those of its prompt."""

    prompt_ids: tuple[int, ...]
    answer_ids: tuple[int, ...]


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
        full = sum(_log_probability(target, one) for one in answered)
    finally:
        runner.attend_to(attended)
    sparse = sum(_log_probability(target, one) for one in answered)
    return SparseEffect(attended, sparse / num_tokens, full / num_tokens, num_tokens)


@torch.inference_mode()
def _log_probability(target: Target, answered: AnsweredPrompt) -> float:
    """The sum over an answer's tokens."""
    token_ids = [*answered.prompt_ids, *answered.answer_ids]
    kv, first = target.allocate_cache(len(token_ids) + 1), len(answered.prompt_ids)
    rows, total = target.chunk_rows, 0.0
    for start in range(0, len(token_ids) - 1, rows):
        chunk = token_ids[start : min(start + rows, len(token_ids) - 1)]
        states = target.runner.extend(chunk, kv)
        followers = torch.tensor(token_ids[start + 1 : start + 1 + len(chunk)])
        wanted = torch.arange(start + 1, start + 1 + len(chunk)) >= first
        if wanted.any():
            scores = target.runner.logits(states)[wanted.to(states.device)].float().log_softmax(-1)
            chosen = followers[wanted].to(scores.device).unsqueeze(1)
            total += float(scores.gather(1, chosen).sum())
    target.caches.release(kv)
    return total
