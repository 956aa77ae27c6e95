"""Records what a step verified and how it decided, as `StepTrace`.

A step's trace keeps probabilities packed, and tokens as the step had them: most traces are never
looked at, so that they are taken apart only where they are read.
"""

from __future__ import annotations

from collections.abc import Sequence

from medusa_core.engine.sequence import Step
from medusa_core.messages import StepDone, StepTrace
from medusa_core.models.text.tokenizer import Tokenizer
from medusa_core.speculation.rules.rule import RuleNumbers
from medusa_core.system.native.score_reader import (
    ScoreReader,
    reader_of,
)


class Recorder:
    """Turns steps into traces."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._pieces = tokenizer.pieces
        self._reader: ScoreReader | None = None

    def trace(
        self, done: StepDone, step: Step, numbers: tuple[RuleNumbers, ...], num_kept: int
    ) -> StepTrace:
        """A step's trace.

        Args:
            done: What was told of it.
            step: What was decided.
            numbers: What the rule decided by.
            num_kept: How many tokens of the run the answer kept.
        """
        proposal = step.proposal
        tree, path = proposal.tree, (0, *step.acceptance.nodes)
        judged = step.acceptance.judged or self._judged(step, path)
        return StepTrace(
            done.session_id,
            done.request_id,
            done.step,
            done.num_context_tokens - num_kept - 1,
            tree.token_ids,
            tree.shape.parents,
            tree.shape.ranks,
            proposal.sources,
            path,
            step.token_ids,
            self._pieces,
            proposal.odds(),
            judged,
            numbers,
            num_kept,
            step.times,
            done.step_s,
            len(step.ridden),
        )

    def _judged(self, step: Step, path: Sequence[int]) -> bytes:
        if self._reader is None:
            self._reader = reader_of(step.logits)
        return self._reader.choices(step.logits, path, step.token_ids)
