"""One decoding step: propose, verify, walk, commit. Every method is this loop."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.messages import StepTimes
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.runner.runner import (
    PlacedTree,
    PrunesTrees,
    Runner,
    Waited,
    waited_by,
)
from medusa_core.runtime.tree.step import (
    Acceptance,
    Proposal,
    Pruner,
    WalkContext,
)
from medusa_core.speculation.drafters.drafter import Drafter
from medusa_core.speculation.rules.rule import Rule


class Step(NamedTuple):
    """What one step decided.

    Attributes:
        proposal: What was verified.
        acceptance: What the rule made of it.
        token_ids: The accepted tokens, then the bonus token.
        logits: The target's scores at every node. [n, vocabulary]
        states: The target's state at every node. [n, hidden]
        times: Where the time went.
        ridden: The target's best token behind every rider.
    """

    proposal: Proposal
    acceptance: Acceptance
    token_ids: tuple[int, ...]
    logits: Tensor
    states: Tensor
    times: StepTimes
    ridden: Sequence[int] = ()


class Drafted(NamedTuple):
    """Rows to be verified, and how long drafting them took."""

    proposal: Proposal
    draft_s: float


class Begun(NamedTuple):
    """When a pass began, and how long the runner had waited by then."""

    at_s: float
    waited: Waited


class Verified(NamedTuple):
    """What a forward pass says of the rows of one proposal, and how long the pass took.

    Attributes:
        states: The target's state at every row that wasn't pruned: the nodes of the tree, then
            riders. [n, hidden]
        logits: Its scores there. [n, vocabulary]
        verify_s: Seconds of the pass, in which other trees may have been verified, too.
        waited: Seconds of it in which layers, rows or other machines were waited for.
    """

    states: Tensor
    logits: Tensor
    verify_s: float
    waited: Waited


def decode_step(
    runner: Runner,
    kv: KvCache,
    drafter: Drafter,
    rule: Rule,
    context: WalkContext,
    max_rows: int,
) -> Step:
    """Decide one or more tokens with one forward pass of the target.

    Args:
        runner: Runs the target.
        kv: Holds the rows of everything decided but the root; grows by the accepted rows.
        drafter: Proposes the tree.
        rule: Picks the path.
        context: What is decided; its last token has no row yet and becomes the root.
        max_rows: Most rows to verify, root included.

    Returns:
        The step; the caller tells the drafter by `observe` once it knows what is kept.
    """
    drafted = draft(drafter, context, max_rows)
    placed, pruner = PlacedTree(drafted.proposal.rows, kv), drafted.proposal.pruner
    (verified,) = verify(runner, [placed], [pruner], context.reads)
    return settle(drafted, verified, rule, kv, context)


def draft(drafter: Drafter, context: WalkContext, max_rows: int) -> Drafted:
    """The first part of a step: a tree under the last decided token."""
    started = time.perf_counter()
    proposal = drafter.propose(context.history[-1], max_rows)
    return Drafted(proposal, time.perf_counter() - started)


def verify(
    runner: Runner, placed: Sequence[PlacedTree], pruners: Sequence[Pruner | None], reads: bool
) -> list[Verified]:
    """The second part, of any number of sequences at once: one forward pass over all their trees.

    Args:
        runner: Runs the target.
        placed: Their rows, each with its cache.
        pruners: Of each who drops unlikely nodes on the way, if anybody does.
        reads: A trace will be made of one of them.
    """
    begun = begin(runner)
    states = passed(runner, placed, pruners)
    return scored(runner, placed, pruners, states, reads, begun)


def begin(runner: Runner) -> Begun:
    """A pass begins."""
    return Begun(time.perf_counter(), waited_by(runner))


def passed(
    runner: Runner, placed: Sequence[PlacedTree], pruners: Sequence[Pruner | None]
) -> Tensor:
    """The pass itself: states of all rows that come to its end. [n, (1 + taps) · hidden]"""
    if any(pruners) and isinstance(runner, PrunesTrees):
        return runner.verify_pruned(placed, pruners)
    return runner.verify(*placed)


def scored(
    runner: Runner,
    placed: Sequence[PlacedTree],
    pruners: Sequence[Pruner | None],
    states: Tensor,
    reads: bool,
    begun: Begun,
) -> list[Verified]:
    """What a pass says of each tree.

    Args:
        runner: As in `verify`, and so are the next two.
        placed: Trees.
        pruners: Who has dropped nodes of them.
        states: Of their nodes, in order. [n, (1 + taps) · hidden]
        reads: A trace will be made of one of them.
        begun: The pass.
    """
    if not placed:
        return []
    logits = runner.logits(states)
    if reads:  # a trace reads them again, and a card is waited for once
        logits = logits.cpu()
    verify_s = time.perf_counter() - begun.at_s
    waited = waited_by(runner).since(begun.waited)
    counts = [
        tree.shape.num_nodes if pruner is None or pruner.kept is None else len(pruner.kept)
        for (tree, _), pruner in zip(placed, pruners, strict=True)
    ]
    pairs = zip(torch.split(states, counts), torch.split(logits, counts), strict=True)
    return [Verified(*pair, verify_s, waited) for pair in pairs]


def settle(
    drafted: Drafted, verified: Verified, rule: Rule, kv: KvCache, context: WalkContext
) -> Step:
    """The last part: what is accepted, and its rows kept; arguments as in `decode_step`.

    The rule sees the tree alone: whoever rides beside it can't be accepted, whatever it holds.
    """
    proposal, (states, logits, verify_s, waited) = drafted.proposal.pruned, verified
    started = time.perf_counter()
    num_nodes = proposal.tree.shape.num_nodes
    states, logits, beside = states[:num_nodes], logits[:num_nodes], logits[num_nodes:]
    acceptance = rule.walk(proposal.tree, logits, context)
    ridden = beside.argmax(dim=-1).tolist() if len(beside) else ()
    accepted = time.perf_counter()
    kv.commit((0, *acceptance.nodes))
    token_ids = tuple(map(proposal.tree.token_ids.__getitem__, acceptance.nodes))
    committed = time.perf_counter()
    accept_s, commit_s = accepted - started, committed - accepted
    times = StepTimes(drafted.draft_s, verify_s, accept_s, commit_s, *waited)
    run = (*token_ids, acceptance.bonus_id)
    return Step(proposal, acceptance, run, logits, states, times, ridden)
