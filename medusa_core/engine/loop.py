"""One decoding step: propose, verify, walk, commit. Every method is this loop."""

from __future__ import annotations

import time
from typing import NamedTuple

from torch import Tensor

from medusa_core.drafters.drafter import Drafter
from medusa_core.kv.cache import KvCache
from medusa_core.messages import StepTimes
from medusa_core.rules.rule import Rule
from medusa_core.runner.runner import Runner
from medusa_core.types import Acceptance, Proposal, WalkContext


class Step(NamedTuple):
    """What one step decided.

    Attributes:
        proposal: What was verified.
        acceptance: What the rule made of it.
        token_ids: The accepted tokens, then the bonus token.
        logits: The target's scores at every node. [n, vocabulary]
        states: The target's state at every node. [n, hidden]
        last: The last accepted node, on whose state the next drafts build.
        times: Where the time went.
    """

    proposal: Proposal
    acceptance: Acceptance
    token_ids: tuple[int, ...]
    logits: Tensor
    states: Tensor
    last: int
    times: StepTimes


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
    started = time.perf_counter()
    proposal = drafter.propose(context.history[-1], max_rows)
    drafted = time.perf_counter()
    states = runner.verify(proposal.tree, kv)
    logits = runner.logits(states)
    if context.reads:  # a trace reads them again, and a card is waited for once
        logits = logits.cpu()
    verified = time.perf_counter()
    acceptance = rule.walk(proposal.tree, logits, context)
    accepted = time.perf_counter()
    kv.commit((0, *acceptance.nodes))
    token_ids = tuple(map(proposal.tree.token_ids.__getitem__, acceptance.nodes))
    last = acceptance.nodes[-1] if acceptance.nodes else 0
    committed = time.perf_counter()
    times = StepTimes(
        drafted - started, verified - drafted, accepted - verified, committed - accepted
    )
    run = (*token_ids, acceptance.bonus_id)
    return Step(proposal, acceptance, run, logits, states, last, times)
