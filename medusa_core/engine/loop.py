"""Medusa decoding on one page, and this page is what runs: for one sequence and for many.

A step decides one or more tokens of every sequence with one forward pass of the target:

1. Each drafter proposes a token tree: its root is the last decided token, the others are drafts.
2. The target verifies the nodes of all trees. Prompt chunks share the pass (chunked prefill).
3. Each rule follows the target's choices down its tree. The first choice that is no child's token
   is the bonus token, so every step yields at least one.
4. The cache commits the rows of the accepted path and drops the others.
5. The tokens are appended to the answer, and the drafter observes them with their hidden states.

Plain decoding is the same loop with trees of one node. Every decided token has a row in the cache,
except the last one, which is the next root.

Source: Cai et al., "Medusa: Simple LLM Inference Acceleration Framework with Multiple Decoding
Heads" (2024), section 2.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch

from medusa_core.engine.catch import Catch
from medusa_core.engine.forward import Output, forward
from medusa_core.engine.sequence import DecodingSequence, PrefillSequence, Step
from medusa_core.messages import TARGET, StepTimes
from medusa_core.runtime.runner.runner import PlacedTree, Runner
from medusa_core.runtime.tree.shape import TokenTree, TreeShape
from medusa_core.runtime.tree.step import Proposal
from medusa_core.speculation.drafters.observation import Observation

SequenceErrors = dict[DecodingSequence | PrefillSequence, BaseException]


@torch.inference_mode()
def decode_step(
    runner: Runner, sequences: Sequence[DecodingSequence], prompts: Sequence[PrefillSequence] = ()
) -> SequenceErrors:
    """Decode one step of each sequence, and prefill the next chunk of each prompt.

    Args:
        runner: The target's runner.
        sequences: Sequences that are decoding.
        prompts: Sequences whose prompts are prefilled.

    Returns:
        Errors by sequence: of one while drafting or accepting, of all if the pass fails.
    """
    errors: SequenceErrors = {}
    proposals: dict[DecodingSequence, Proposal] = {}
    for sequence in sequences:
        with Catch(errors, sequence):
            proposals[sequence] = propose(sequence)  # 1
    verified: list[Output] = []
    prefilled: list[Output] = []
    with Catch(errors, *proposals, *prompts):
        trees = [PlacedTree(draft.rows, sequence.kv) for sequence, draft in proposals.items()]
        chunks = [prompt.chunk for prompt in prompts]
        traces = any(sequence.context.traces for sequence in proposals)
        verified, prefilled = forward(runner, trees, chunks, traces)  # 2
    for (sequence, proposal), output in zip(proposals.items(), verified, strict=False):
        with Catch(errors, sequence):
            step = accept(sequence, proposal, output)  # 3, 4
            observe(sequence, step)  # 5
    for prompt, output in zip(prompts, prefilled, strict=False):
        with Catch(errors, prompt):
            prompt.append(output)
            if prompt.chunk.is_last:
                prompt.chunk.kv.checkpoint()
                observe(prompt.decoding, first_token(prompt.decoding, output))
    return errors


def propose(sequence: DecodingSequence) -> Proposal:
    """Draft a token tree whose root is the last decided token."""
    started = time.perf_counter()
    context = sequence.context
    proposal = sequence.drafter.propose(context.history[-1], sequence.max_rows, context.grammar)
    return proposal._replace(draft_s=time.perf_counter() - started)


def accept(sequence: DecodingSequence, proposal: Proposal, output: Output) -> Step:
    """Let the rule choose a path of the verified tree, and commit its rows.

    The rule gets the tree's logits only, so that riders, rows that a drafter adds for itself
    (lookahead's window), are never accepted.
    """
    started = time.perf_counter()
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
        StepTimes(proposal.draft_s, output.seconds, accept_s, commit_s, *output.waited),
        ridden,
    )


def first_token(sequence: DecodingSequence, output: Output) -> Step:
    """Decide the first token after a prompt: the rule walks a tree of one node.

    Args:
        sequence: A sequence whose tokens are the prompt's, all with rows in the cache.
        output: Results of the prompt's last chunk.
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
    """Append a step's tokens to the answer, and show them to the drafter.

    At the answer's end the rows of tokens after it are truncated.
    """
    is_unfinished = sequence.append(step)
    num_tokens = len(sequence.context.history)
    if not is_unfinished:
        sequence.kv.truncate(num_tokens - 1)
        sequence.drafter.truncate(sequence.kv.length)
        return
    rows, chance = (0, *step.acceptance.nodes), sequence.rule.chance(num_tokens)
    sequence.drafter.observe(
        Observation(step.token_ids, step.states, rows, chance, step.deep, step.ridden)
    )
