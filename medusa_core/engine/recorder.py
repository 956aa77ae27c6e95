"""Recording: what a step looked at and how it decided, for those who want to watch.

While a step runs, the recorder keeps the few rows of scores that the decision was read from.
Probabilities are computed for several steps at once: for one step at a time, starting the kernels
would cost more than their work.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.engine.loop import Step, StepTimes
from medusa_core.engine.rule import Rule
from medusa_core.messages import Alternative, Message, StepTrace, TraceNode, Verdict
from medusa_core.text.tokenizer import Tokenizer
from medusa_core.types import Proposal, WalkContext

_NUM_ALTERNATIVES = 5
_MOST_STEPS = 8  # as many kernel starts fewer, and not late enough for an eye to see
_LONGEST_WAIT_S = 0.1  # a large model's steps are shown as they come


@dataclass(frozen=True, slots=True)
class _Seen:
    """A step that waits for its probabilities.

    Attributes:
        number: Number of the step.
        proposal: What was verified.
        choices: The token put behind every node of the path.
        times: Where the time went.
        nodes: The path: the root and the accepted nodes.
        rows: The target's scores behind them. [nodes, vocabulary]
        context: What the rule knew.
        num_kept: How many tokens of the run the answer kept.
    """

    number: int
    proposal: Proposal
    choices: tuple[int, ...]
    times: StepTimes
    nodes: tuple[int, ...]
    rows: Tensor
    context: WalkContext
    num_kept: int


class _Rankings(NamedTuple):
    """The target's probabilities at all nodes of several paths, one entry each.

    Attributes:
        choice: Probability of the token chosen there.
        token_ids: The most probable tokens, best first.
        probabilities: Theirs.
    """

    choice: list[float]
    token_ids: list[list[int]]
    probabilities: list[list[float]]


class Recorder:
    """Turns steps into traces."""

    def __init__(self, request: Message, tokenizer: Tokenizer, rule: Rule) -> None:
        self._request = request
        self._tokenizer = tokenizer
        self._rule = rule
        self._seen: list[_Seen] = []
        self._waits_since = 0.0

    def add(self, number: int, step: Step, context: WalkContext, num_kept: int) -> None:
        """Remember a step.

        Args:
            number: Its number; 0 for prefill.
            step: What was decided.
            context: What is decided, this step's tokens included.
            num_kept: How many tokens of the run the answer kept.
        """
        if not self._seen:
            self._waits_since = time.perf_counter()
        nodes = (0, *step.acceptance.nodes)
        rows = step.logits.index_select(0, torch.tensor(nodes, device=step.logits.device))
        # As the rule knew it: the history has grown by what was kept, and will grow further.
        history = tuple(context.history[: len(context.history) - num_kept])
        known = WalkContext(history, context.num_prompt_tokens)
        # Not the step itself: its scores of all nodes would stay, and each step take new memory.
        self._seen.append(
            _Seen(number, step.proposal, step.token_ids, step.times, nodes, rows, known, num_kept)
        )

    def take(self, is_end: bool) -> tuple[StepTrace, ...]:
        """Traces that are ready: those of several steps at once, or none yet.

        Args:
            is_end: No step will follow.
        """
        if not self._seen:
            return ()
        waited_s = time.perf_counter() - self._waits_since
        if not is_end and len(self._seen) < _MOST_STEPS and waited_s < _LONGEST_WAIT_S:
            return ()
        seen, self._seen = self._seen, []
        rankings = _rankings(seen)
        drafted = _draft_probabilities([one.proposal for one in seen])
        traces, start = [], 0
        for one, given in zip(seen, drafted, strict=True):
            traces.append(self._trace(one, rankings, start, given))
            start += len(one.nodes)
        return tuple(traces)

    def _trace(
        self, seen: _Seen, rankings: _Rankings, start: int, given: Sequence[float | None]
    ) -> StepTrace:
        """The trace of a step whose first node is entry `start` of the rankings."""
        times = seen.times
        return StepTrace(
            session_id=self._request.session_id,
            request_id=self._request.request_id,
            step=seen.number,
            root_place=len(seen.context.history) - 1,
            nodes=self._nodes(seen.proposal, given),
            verdicts=tuple(
                self._verdict(seen, place, rankings, start + place)
                for place in range(len(seen.nodes))
            ),
            num_kept=seen.num_kept,
            draft_s=times.draft_s,
            verify_s=times.verify_s,
            accept_s=times.accept_s,
            commit_s=times.commit_s,
        )

    def _nodes(self, proposal: Proposal, given: Sequence[float | None]) -> tuple[TraceNode, ...]:
        tree, bytes_of = proposal.tree, self._tokenizer.bytes_of
        texts = map(bytes_of, tree.token_ids)
        shape = tree.shape
        columns = (tree.token_ids, texts, shape.parents, shape.ranks, proposal.sources, given)
        return tuple(map(TraceNode, *columns))

    def _verdict(self, seen: _Seen, place: int, rankings: _Rankings, entry: int) -> Verdict:
        bytes_of = self._tokenizer.bytes_of
        choice = seen.choices[place]
        ids, chances = rankings.token_ids[entry], rankings.probabilities[entry]
        # Without the choice, which is among them or far down.
        left_out = ids.index(choice) if choice in ids else _NUM_ALTERNATIVES
        del ids[left_out : left_out + 1], chances[left_out : left_out + 1]
        return Verdict(
            node=seen.nodes[place],
            choice=Alternative(choice, bytes_of(choice), rankings.choice[entry]),
            alternatives=tuple(map(Alternative, ids, map(bytes_of, ids), chances)),
            numbers=self._rule.numbers(
                seen.rows[place], seen.context, seen.choices[:place], choice
            ),
        )


def _rankings(seen: Sequence[_Seen]) -> _Rankings:
    """The target's probabilities at every node of every path, in one piece of work."""
    rows = torch.cat([one.rows for one in seen])
    wanted = torch.tensor([token for one in seen for token in one.choices], device=rows.device)
    probabilities = torch.softmax(rows, dim=-1, dtype=torch.float32)
    best = probabilities.topk(min(_NUM_ALTERNATIVES + 1, rows.shape[-1]), dim=-1)
    chosen = probabilities.gather(1, wanted.unsqueeze(1)).squeeze(1)
    return _Rankings(chosen.tolist(), best.indices.tolist(), best.values.tolist())


def _draft_probabilities(proposals: Sequence[Proposal]) -> list[list[float | None]]:
    """Per proposal what its drafter gave every node; None for the root and where it doesn't say."""
    scored = [p.scores for p in proposals if p.scores is not None]
    if not scored:
        return [[None] * p.tree.shape.num_nodes for p in proposals]
    probabilities = torch.softmax(torch.cat(scored), dim=-1, dtype=torch.float32)
    rows: list[int] = []
    columns: list[int] = []
    start = 0
    for proposal in proposals:
        if proposal.scores is not None:
            rows += [start + depth - 1 for depth in proposal.tree.shape.depths[1:]]
            columns += proposal.columns
            start += len(proposal.scores)
    values: list[float] = probabilities[rows, columns].tolist()
    given: list[list[float | None]] = []
    for proposal in proposals:
        if proposal.scores is None:
            given.append([None] * proposal.tree.shape.num_nodes)
        else:
            count = len(proposal.columns)
            given.append([None, *values[:count]])
            del values[:count]
    return given
