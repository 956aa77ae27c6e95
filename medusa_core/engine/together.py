"""One decoding step of several answers in one forward pass: the layers are read once for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from medusa_core.engine.generation import Generation
from medusa_core.engine.loop import Verified, verify
from medusa_core.messages import Event
from medusa_core.pace.costs import Sharers
from medusa_core.runner.runner import PlacedTree, Runner

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
    runner: Runner, generations: Sequence[Generation], tell: OnEvents, fail: OnError
) -> None:
    """Let answers decide one or more tokens each; who fails while drafting or choosing fails alone.

    Args:
        runner: Runs their target.
        generations: Answers that decode.
        tell: Told the events of each.
        fail: Told who failed, and how.
    """
    placed: dict[Generation, PlacedTree] = {}
    drafting = sum(generation.drafts for generation in generations)
    sharers = Sharers(drafting, len(generations) - drafting)
    for generation in generations:
        try:
            placed[generation] = generation.draft(sharers)
        except BaseException as error:  # noqa: BLE001 - the others' answers must go on
            fail(generation, error)
    for generation, verified in _verify(runner, placed, fail):
        try:
            tell(generation, generation.conclude(verified))
        except BaseException as error:  # noqa: BLE001 - as above
            fail(generation, error)


def _verify(
    runner: Runner, placed: dict[Generation, PlacedTree], fail: OnError
) -> list[tuple[Generation, Verified]]:
    """What the target says of each tree; nothing where the pass itself failed."""
    if not placed:
        return []
    reads = any(generation.request.records for generation in placed)
    try:
        pruners = [generation.pruner for generation in placed]
        verified = verify(runner, list(placed.values()), pruners, reads)
        return list(zip(placed, verified, strict=True))
    except BaseException as error:  # noqa: BLE001 - told to all who were in it
        for generation in placed:
            fail(generation, error)
        return []
