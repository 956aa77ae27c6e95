"""Whose turn it is: answers under way take their steps in forward passes that they share."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from medusa_core.engine.catch import Catch
from medusa_core.engine.generation import Generation
from medusa_core.engine.loop import decode_step
from medusa_core.messages import Event
from medusa_core.speculation.tuning.costs import Sharers

log = logging.getLogger(__name__)

MOST_TOGETHER = 16
_SOON_S = 0.01  # most grammars are compiled by then; an answer alone needn't read without one
_CANCEL_S = 0.05  # in which a Cancel is to be heard

GenerationErrors = dict[Generation, BaseException]


class StepResult(NamedTuple):
    """What a step did for one answer.

    Attributes:
        generation: The answer.
        events: What it brought.
        error: Why the answer failed, if it did.
    """

    generation: Generation
    events: tuple[Event, ...] = ()
    error: BaseException | None = None

    @property
    def has_ended(self) -> bool:
        """Nothing comes behind it."""
        return self.error is not None or self.generation.is_done


class Scheduler:
    """Lets answers take their steps: one answer, or many."""

    def __init__(
        self, most: int = MOST_TOGETHER, prompt_rows: int = 0, chunk_rows: int = 0
    ) -> None:
        """Schedule.

        Args:
            most: How many answers share a pass at most.
            prompt_rows: Rows of prompts in a shared pass; 0 for as many as are read soon enough
                for a Cancel to be heard.
            chunk_rows: Of one prompt at most; 0 for no other limit.
        """
        self._most = most
        self._prompt_rows = prompt_rows
        self._chunk_rows = chunk_rows

    def step(self, running: list[Generation]) -> list[StepResult]:
        """Let those whose turn it is take a step, in one forward pass.

        Args:
            running: Answers of one target, of which the first has waited for longest. Who takes
                part goes to the end; who ends or fails is taken out.

        Returns:
            What became of those who took part; nobody does where all wait for their grammars.
        """
        errors: GenerationErrors = {}
        first = running[0]
        with Catch(errors, first):
            if len(running) == 1:
                first.wait_for_grammar(_SOON_S)
            if all(generation.is_held for generation in running):
                first.wait_for_grammar(_CANCEL_S)
                return []
        able = [generation for generation in running if not generation.is_held]
        batch = [first] if first in errors else self._schedule(able, errors)
        _run(batch, errors)
        results = [_report(generation, errors) for generation in batch]
        took_part = set(batch)
        running[:] = [generation for generation in running if generation not in took_part]
        running += [result.generation for result in results if not result.has_ended]
        return results

    def _schedule(
        self, running: Sequence[Generation], errors: GenerationErrors
    ) -> list[Generation]:
        """Whose turn it is; all of them have room in their caches, or end by the lack of it.

        Where nobody has room, the answer that began last gives its rows to the others, and is read
        again when these have ended.

        Source: Kwon et al., "Efficient Memory Management for Large Language Model Serving with
        PagedAttention" (2023), section 4.5: preemption by recomputation.
        """
        holding = sorted(running, key=lambda one: one.started)
        while True:
            batch = self._fill(running, errors)
            if batch:
                return batch
            last = holding.pop()
            if not holding:
                with Catch(errors, last):
                    last.end_for_want_of_room()
                return [last]
            log.info("an answer gives its rows to others, and goes on later")
            with Catch(errors, last):
                last.preempt()
            if last in errors:
                return [last]

    def _fill(self, running: Sequence[Generation], errors: GenerationErrors) -> list[Generation]:
        """The first, and who shares its pass; those that read, if rows are left."""
        sharing = list(running[:1])
        if sharing[0].request.joins:
            sharing = [one for one in running if one.request.joins]
        rows = self._prompt_rows if len(sharing) > 1 and self._prompt_rows else None
        batch: list[Generation] = []
        for generation in sharing:
            if len(batch) == self._most:
                break
            takes_part = True
            with Catch(errors, generation):
                takes_part = generation.make_room()
                if takes_part and generation.is_reading:
                    rows = generation.prefill.usual_rows if rows is None else rows
                    takes_part = rows > 0
                    rows -= generation.begin_reading(min(rows, self._chunk_rows or rows))
            if takes_part:
                batch.append(generation)
        return batch


def _run(batch: Sequence[Generation], errors: GenerationErrors) -> None:
    """The step itself, of those that still have something to do."""
    ready = [one for one in batch if not one.is_done and one not in errors]
    decoding = [one for one in ready if not one.is_reading]
    drafting = sum(one.decoding.tuning.drafts for one in decoding)
    sharers = Sharers(drafting, len(decoding) - drafting)
    for generation in decoding:
        with Catch(errors, generation):
            generation.decoding.begin(sharers, is_shared=len(ready) > 1)
    sequences = [one.decoding for one in decoding if one not in errors]
    prompts = [one.prefill for one in ready if one.is_reading]
    if ready:
        failed = decode_step(ready[0].target.runner, sequences, prompts)
        for one in ready:
            error = failed.get(one.decoding, failed.get(one.prefill))
            errors.update({} if error is None else {one: error})


def _report(generation: Generation, errors: GenerationErrors) -> StepResult:
    """What the step brought an answer; who fails to say so has failed, too."""
    events: tuple[Event, ...] = ()
    if generation not in errors:
        with Catch(errors, generation):
            events = generation.events()
    return StepResult(generation, events, errors.get(generation))
