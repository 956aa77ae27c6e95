"""Work of several answers in one forward pass: the layers are read once for all.

Where layers come from below the device, this is FlexGen's block schedule: one loaded layer serves
the rows of all answers, those of decoding steps and those of prompts.

Source: Sheng et al., "FlexGen" (2023), section 4.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from medusa_core.engine.generation import Generation
from medusa_core.engine.loop import Verified, begin, passed, scored
from medusa_core.messages import Event
from medusa_core.runtime.runner.runner import (
    PlacedTree,
    Runner,
)
from medusa_core.speculation.tuning.costs import Sharers

MOST_TOGETHER = 16

OnError = Callable[[Generation, BaseException], None]
OnEvents = Callable[[Generation, tuple[Event, ...]], None]


def those_together(running: Sequence[Generation]) -> list[Generation]:
    """Whose turn it is: the first, and if it decodes, others that do so."""
    if not _joins(running[0]):
        return [running[0]]
    return [generation for generation in running if _joins(generation)][:MOST_TOGETHER]


def _joins(generation: Generation) -> bool:
    return generation.request.joins and generation.is_decoding


@torch.inference_mode()
def step_together(
    runner: Runner,
    generations: Sequence[Generation],
    tell: OnEvents,
    fail: OnError,
    prompt_rows: int = 0,
) -> None:
    """Let answers decide one or more tokens each; who fails while drafting or choosing fails alone.

    Args:
        runner: Runs their target.
        generations: Answers that decode, or read their prompts.
        tell: Told the events of each.
        fail: Told who failed, and how.
        prompt_rows: Most rows of prompts in the pass; whose don't fit in it waits.
    """
    reading = [generation for generation in generations if generation.is_reading]
    chunks: dict[Generation, PlacedTree] = {}
    for generation in reading:
        if prompt_rows > 0:
            chunks[generation] = generation.chunk(prompt_rows)
            prompt_rows -= chunks[generation].tree.shape.num_nodes
    trees = _drafts([one for one in generations if one not in reading], fail)
    steps, states = _pass(runner, trees, chunks, fail)
    for generation, verified in steps:
        try:
            tell(generation, generation.conclude(verified))
        except BaseException as error:  # noqa: BLE001 - the others' answers must go on
            fail(generation, error)
    for generation, its_states in states:
        try:
            tell(generation, generation.heed(its_states))
        except BaseException as error:  # noqa: BLE001 - as above
            fail(generation, error)


def _drafts(generations: Sequence[Generation], fail: OnError) -> dict[Generation, PlacedTree]:
    """The trees of those that decode; none of who fails."""
    placed: dict[Generation, PlacedTree] = {}
    drafting = sum(generation.drafts for generation in generations)
    sharers = Sharers(drafting, len(generations) - drafting)
    for generation in generations:
        try:
            placed[generation] = generation.draft(sharers)
        except BaseException as error:  # noqa: BLE001 - the others' answers must go on
            fail(generation, error)
    return placed


Steps = list[tuple[Generation, Verified]]
Read = list[tuple[Generation, Tensor]]


def _pass(
    runner: Runner,
    trees: Mapping[Generation, PlacedTree],
    chunks: Mapping[Generation, PlacedTree],
    fail: OnError,
) -> tuple[Steps, Read]:
    """What the target says of trees and of chunks; nothing where the pass itself failed."""
    if not trees and not chunks:
        return [], []
    reads = any(generation.request.records for generation in trees)
    try:
        begun = begin(runner)
        pruners = [generation.pruner for generation in trees]
        placed = [*trees.values(), *chunks.values()]
        states = passed(runner, placed, [*pruners, *[None] * len(chunks)])
        counts = [tree.shape.num_nodes for tree, _ in chunks.values()]
        of_trees, of_chunks = torch.split(states, [len(states) - sum(counts), sum(counts)])
        verified = scored(runner, list(trees.values()), pruners, of_trees, reads, begun)
        read = torch.split(of_chunks, counts)
        return list(zip(trees, verified, strict=True)), list(zip(chunks, read, strict=True))
    except BaseException as error:  # noqa: BLE001 - told to all who were in it
        for generation in (*trees, *chunks):
            fail(generation, error)
        return [], []
