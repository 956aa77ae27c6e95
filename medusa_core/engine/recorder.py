"""Recorder: makes `StepTrace` events of steps.

A trace keeps probabilities packed and tokens as the step has them. Most traces are never read, so
they are unpacked by their readers.
"""

from __future__ import annotations

from collections.abc import Sequence

from medusa_core.engine.sequence import Step
from medusa_core.messages import DroppedToken, StepDone, StepTrace
from medusa_core.models.text.tokenizer import Tokenizer
from medusa_core.runtime.tree.shape import TokenTree
from medusa_core.runtime.tree.step import Proposal
from medusa_core.system.native.score_reader import (
    ScoreReader,
    reader_of,
)

_MOST_FORBIDDEN = 8
_MIN_FORBIDDEN = 0.01  # path probability of a forbidden token that is recorded


class Recorder:
    """Turns steps into traces."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._pieces = tokenizer.pieces
        self._reader: ScoreReader | None = None

    def trace(self, done: StepDone, step: Step) -> StepTrace:
        """Return the trace of a step.

        Args:
            done: The step's event.
            step: The step, after its tokens were appended to the answer.
        """
        proposal, num_appended = step.proposal, step.num_appended
        tree, path = proposal.tree, (0, *step.acceptance.nodes)
        judged = step.acceptance.judged or self._judged(step, path)
        return StepTrace(
            done.session_id,
            done.request_id,
            done.step,
            done.num_context_tokens - num_appended - 1,
            tree.token_ids,
            tree.shape.parents,
            tree.shape.ranks,
            proposal.sources,
            path,
            step.token_ids,
            self._pieces,
            proposal.odds(),
            judged,
            step.numbers,
            num_appended,
            step.times,
            done.step_s,
            len(step.ridden),
            _forbidden(proposal),
            proposal.offers,
        )

    def _judged(self, step: Step, path: Sequence[int]) -> bytes:
        """Packed probabilities of a step's choices; see `StepTrace.judged`."""
        if self._reader is None:
            self._reader = reader_of(step.logits)
        return self._reader.choices(step.logits, path, step.token_ids)


def _forbidden(proposal: Proposal) -> tuple[DroppedToken, ...]:
    """The most probable tokens that the grammar kept out of the tree."""
    if not proposal.forbidden:
        return ()
    probabilities = _path_probabilities(proposal)
    found: dict[tuple[int, int], float] = {}
    for path, token_id, chance in proposal.forbidden:
        node = _node_of(proposal.tree, path)
        if node is not None and probabilities[node] * chance >= _MIN_FORBIDDEN:
            found[node, token_id] = max(chance, found.get((node, token_id), 0.0))
    best = sorted(found.items(), key=lambda entry: -probabilities[entry[0][0]] * entry[1])
    return tuple(DroppedToken(*place, chance) for place, chance in sorted(best[:_MOST_FORBIDDEN]))


def _path_probabilities(proposal: Proposal) -> list[float]:
    """The drafter's probability of each node's whole path."""
    parents = proposal.tree.shape.parents
    probabilities = [1.0]
    for parent, chance in zip(
        parents[1:], proposal.odds().of_drafts(len(parents) - 1), strict=True
    ):
        probabilities.append(probabilities[parent] * (1.0 if chance is None else chance))
    return probabilities


def _node_of(tree: TokenTree, path: Sequence[int]) -> int | None:
    """The node at the end of a path of tokens; None if the tree doesn't have it."""
    node: int | None = 0
    for token_id in path:
        node = None if node is None else tree.child_with(node, token_id)
    return node
