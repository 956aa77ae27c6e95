"""Recording: what a step looked at and how it decided, for those who want to watch.

A step's trace keeps probabilities packed, and tokens as the step had them: most traces are never
looked at, so that they are taken apart only where they are read.
"""

from __future__ import annotations

import math
from array import array
from typing import NamedTuple

from medusa_core.engine.loop import Step
from medusa_core.engine.rule import Numbers, Rule
from medusa_core.messages import Message, StepTrace
from medusa_core.native.summary import ScoreReader, reader_of
from medusa_core.text.tokenizer import Tokenizer
from medusa_core.types import Proposal, WalkContext

_UNKNOWN = array("f", [math.nan]).tobytes()


class Seen(NamedTuple):
    """What is kept of a step's scores.

    Attributes:
        root_place: Place of its root in the session.
        path: The root and the accepted nodes.
        probabilities: As in `StepTrace`.
        numbers: As in `StepTrace`.
    """

    root_place: int
    path: tuple[int, ...]
    probabilities: bytes
    numbers: tuple[Numbers, ...]


class Recorder:
    """Turns steps into traces."""

    def __init__(self, request: Message, tokenizer: Tokenizer, rule: Rule) -> None:
        self._session_id = request.session_id
        self._request_id = request.request_id
        self._pieces = tokenizer.pieces
        self._rule = rule
        self._of_target: ScoreReader | None = None
        self._of_drafter: ScoreReader | None = None
        # What the drafter gave the nodes of the step under way; prefill's tree is its root alone.
        self._drafted = _UNKNOWN

    def expect(self, proposal: Proposal) -> None:
        """Read what a step's drafter gave its nodes."""
        scores = proposal.scores
        if scores is None:
            self._drafted = _UNKNOWN * proposal.tree.shape.num_nodes
            return
        if self._of_drafter is None:
            self._of_drafter = reader_of(scores)
        heads, columns = proposal.tree.shape.head_array, proposal.columns
        self._drafted = _UNKNOWN + self._of_drafter.probabilities(scores, heads, columns)

    def look(self, step: Step, context: WalkContext) -> Seen:
        """Read a step's scores.

        Args:
            step: What was decided.
            context: As the rule had it, nothing of the step in it yet.
        """
        path = (0, *step.acceptance.nodes)
        if self._of_target is None:
            self._of_target = reader_of(step.logits)
        judged = self._of_target.choices(step.logits, path, step.token_ids)
        numbers = self._rule.numbers(step.logits, path, context, step.token_ids)
        return Seen(len(context.history) - 1, path, self._drafted + judged, numbers)

    def trace(self, number: int, step: Step, seen: Seen, num_kept: int, step_s: float) -> StepTrace:
        """A step's trace.

        Args:
            number: Its number; 0 for prefill.
            step: What was decided.
            seen: What its scores were.
            num_kept: How many tokens of the run the answer kept.
            step_s: Seconds of the whole step.
        """
        tree, times = step.proposal.tree, step.times
        return StepTrace(
            self._session_id,
            self._request_id,
            number,
            seen.root_place,
            tree.token_ids,
            tree.shape.parents,
            tree.shape.ranks,
            step.proposal.sources,
            seen.path,
            step.token_ids,
            self._pieces,
            seen.probabilities,
            seen.numbers,
            num_kept,
            times.draft_s,
            times.verify_s,
            times.accept_s,
            times.commit_s,
            step_s,
        )
