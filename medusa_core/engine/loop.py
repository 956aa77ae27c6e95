"""Medusa decoding on one page, and this page is what runs: for one sequence and for many.

A step decides one or more tokens of every sequence with one forward pass of the target:

1. Each drafter proposes a token tree: its root is the last decided token, the others are guesses.
2. The target computes the nodes of all trees. Prompts that are read ride in the same pass.
3. Each rule follows the target's choices down its tree. The first choice that no child holds is the
   bonus token, so that every step brings at least one.
4. The cache keeps the rows of the accepted path and forgets the others.
5. The answer takes the tokens, and the drafter observes what its next tree will grow from.

Plain decoding is the same with trees that are nothing but a root. All decided tokens but the last,
which is the next root, have rows in the cache.

Source: Cai et al., "Medusa: Simple LLM Inference Acceleration Framework with Multiple Decoding
Heads" (2024), section 2.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch

from medusa_core.engine.catch import Catch
from medusa_core.engine.forward import Draft, Output, forward
from medusa_core.engine.sequence import DecodingSequence, PrefillSequence, Step
from medusa_core.messages import TARGET, StepTimes
from medusa_core.runtime.runner.runner import Runner
from medusa_core.runtime.tree.shape import TokenTree, TreeShape
from medusa_core.runtime.tree.step import Proposal
from medusa_core.speculation.drafters.observation import Observation

SequenceErrors = dict[DecodingSequence | PrefillSequence, BaseException]


@torch.inference_mode()
def decode_step(
    runner: Runner, sequences: Sequence[DecodingSequence], prompts: Sequence[PrefillSequence] = ()
) -> SequenceErrors:
    """Decide one or more tokens of each sequence, and read the next chunk of each prompt.

    Args:
        runner: Runs the target.
        sequences: Those that are decoded.
        prompts: Those that are read.

    Returns:
        Who failed, and how: alone while drafting or choosing, all together where the pass failed.
    """
    errors: SequenceErrors = {}
    drafts: dict[DecodingSequence, Draft] = {}
    for sequence in sequences:
        with Catch(errors, sequence):
            drafts[sequence] = propose(sequence)  # 1
    verified: list[Output] = []
    read: list[Output] = []
    with Catch(errors, *drafts, *prompts):
        traces = any(sequence.context.reads for sequence in drafts)
        chunks = [prompt.chunk for prompt in prompts]
        verified, read = forward(runner, list(drafts.values()), chunks, traces)  # 2
    for (sequence, draft), output in zip(drafts.items(), verified, strict=False):
        with Catch(errors, sequence):
            step = accept(sequence, draft, output)  # 3, 4
            observe(sequence, step)  # 5
    for prompt, output in zip(prompts, read, strict=False):
        with Catch(errors, prompt):
            prompt.append(output)
            if prompt.chunk.is_last:
                prompt.chunk.kv.checkpoint()
                observe(prompt.decoding, first_token(prompt.decoding, output))
    return errors


def propose(sequence: DecodingSequence) -> Draft:
    """A tree under the last decided token."""
    started = time.perf_counter()
    context = sequence.context
    proposal = sequence.drafter.propose(context.history[-1], sequence.max_rows, context.grammar)
    return Draft(proposal, sequence.kv, time.perf_counter() - started)


def accept(sequence: DecodingSequence, draft: Draft, output: Output) -> Step:
    """The path that the rule picks, whose rows are kept.

    The rule sees the tree alone: riders beside it can't be accepted, whatever they hold.
    """
    started = time.perf_counter()
    proposal = draft.proposal
    num_nodes = proposal.tree.shape.num_nodes
    logits, riders = output.logits[:num_nodes], output.logits[num_nodes:]
    acceptance = sequence.rule.walk(proposal.tree, logits, sequence.context)
    ridden = riders.argmax(dim=-1).tolist() if len(riders) else ()
    accepted = time.perf_counter()
    sequence.kv.commit((0, *acceptance.nodes))
    committed = time.perf_counter()
    accepted_ids = map(proposal.tree.token_ids.__getitem__, acceptance.nodes)
    accept_s, commit_s = accepted - started, committed - accepted
    return Step(
        proposal,
        acceptance,
        (*accepted_ids, acceptance.bonus_id),
        logits,
        output.states[:num_nodes],
        None if output.deep is None else output.deep[:num_nodes],
        StepTimes(draft.seconds, output.seconds, accept_s, commit_s, *output.waited),
        ridden,
    )


def first_token(sequence: DecodingSequence, output: Output) -> Step:
    """The token behind a prompt: the rule walks a tree that is nothing but its root.

    Args:
        sequence: Its tokens are those of the prompt, which all have rows.
        output: Of the prompt's last chunk.
    """
    started = time.perf_counter()
    tree = TokenTree(TreeShape.root_only(), (sequence.context.history[-1],))
    acceptance = sequence.rule.walk(tree, output.logits, sequence.context)
    accept_s = time.perf_counter() - started
    deep = None if output.deep is None else output.deep[-1:]
    times = StepTimes(0.0, output.seconds, accept_s, 0.0)
    run = (acceptance.bonus_id,)
    proposal = Proposal(tree, (TARGET,))
    return Step(proposal, acceptance, run, output.logits, output.states[-1:], deep, times)


def observe(sequence: DecodingSequence, step: Step) -> None:
    """Add what was decided to the answer; the next tree grows from it.

    What lies beyond the answer's end leaves no rows behind.
    """
    goes_on = sequence.append(step)
    num_tokens = len(sequence.context.history)
    if not goes_on:
        sequence.kv.truncate(num_tokens - 1)
        sequence.drafter.truncate(sequence.kv.length)
        return
    rows, chance = (0, *step.acceptance.nodes), sequence.rule.chance(num_tokens)
    sequence.drafter.observe(
        Observation(step.token_ids, step.states, rows, chance, step.deep, step.ridden)
    )
