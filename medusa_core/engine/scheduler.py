"""Schedule the steps of running answers, which share forward passes (continuous batching)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from medusa_core.engine.catch import Catch
from medusa_core.engine.generation import Generation
from medusa_core.engine.loop import decode_step
from medusa_core.messages import Event
from medusa_core.speculation.tuning.step_costs import PassMix

log = logging.getLogger(__name__)

MAX_BATCH = 16
_GRAMMAR_S = 0.01  # most grammars are compiled by then
_CANCEL_S = 0.05  # a Cancel takes effect within this time

GenerationErrors = dict[Generation, BaseException]


class StepResult(NamedTuple):
    """Result of a step for one answer.

    Attributes:
        generation: The answer.
        events: Its events.
        error: The error that ended it, if any.
    """

    generation: Generation
    events: tuple[Event, ...] = ()
    error: BaseException | None = None

    @property
    def has_ended(self) -> bool:
        """Whether it was the answer's last step."""
        return self.error is not None or self.generation.is_done


class Scheduler:
    """Runs the steps of one or more answers."""

    def __init__(
        self, max_batch: int = MAX_BATCH, prompt_rows: int = 0, chunk_rows: int = 0
    ) -> None:
        """Set the limits of a pass.

        Args:
            max_batch: Maximum number of answers that share a pass.
            prompt_rows: Rows of prompts in a shared pass; 0 for as many as delay a Cancel little
                enough.
            chunk_rows: Maximum rows of one prompt; 0 for no limit of its own.
        """
        self._max_batch = max_batch
        self._prompt_rows = prompt_rows
        self._chunk_rows = chunk_rows

    def step(self, running: list[Generation]) -> list[StepResult]:
        """Run a step of the next answers, in one forward pass.

        Args:
            running: Answers of one target, the one that has waited longest first. Those that take
                part move to the end; those that end or fail are removed.

        Returns:
            The results of those that took part; empty if all wait for their grammars.
        """
        errors: GenerationErrors = {}
        first = running[0]
        with Catch(errors, first):
            if len(running) == 1:
                first.wait_for_grammar(_GRAMMAR_S)
            if all(generation.awaits_grammar for generation in running):
                first.wait_for_grammar(_CANCEL_S)
                return []
        ready = [generation for generation in running if not generation.awaits_grammar]
        batch = [first] if first in errors else self._schedule(ready, errors)
        _run(batch, errors)
        results = [_report(generation, errors) for generation in batch]
        scheduled = set(batch)
        running[:] = [generation for generation in running if generation not in scheduled]
        running += [result.generation for result in results if not result.has_ended]
        return results

    def _schedule(
        self, running: Sequence[Generation], errors: GenerationErrors
    ) -> list[Generation]:
        """Choose the answers of the next pass, and make room in their caches.

        If no answer has room, the one that started last releases its cache, and is prefilled again
        once others have ended. If it is the only one left, it ends.

        Source: Kwon et al., "Efficient Memory Management for Large Language Model Serving with
        PagedAttention" (2023), section 4.5: preemption by recomputation.
        """
        by_age = sorted(running, key=lambda one: one.started)
        while True:
            batch = self._fill(running, errors)
            if batch:
                return batch
            last = by_age.pop()
            if not by_age:
                with Catch(errors, last):
                    last.end_without_room()
                return [last]
            log.info("an answer is preempted, and continues once others have ended")
            with Catch(errors, last):
                last.preempt()
            if last in errors:
                return [last]

    def _fill(self, running: Sequence[Generation], errors: GenerationErrors) -> list[Generation]:
        """The first answer and those that share its pass; prefill only while rows are left."""
        sharing = list(running[:1])
        if sharing[0].request.joins:
            sharing = [one for one in running if one.request.joins]
        rows = self._prompt_rows if len(sharing) > 1 and self._prompt_rows else None
        batch: list[Generation] = []
        for generation in sharing:
            if len(batch) == self._max_batch:
                break
            takes_part = True
            with Catch(errors, generation):
                takes_part = generation.make_room()
                if takes_part and generation.is_prefilling:
                    rows = generation.prefill.chunk_rows if rows is None else rows
                    takes_part = rows > 0
                    rows -= generation.begin_chunk(min(rows, self._chunk_rows or rows))
            if takes_part:
                batch.append(generation)
        return batch


def _run(batch: Sequence[Generation], errors: GenerationErrors) -> None:
    """Run the step of the answers that have neither ended nor failed."""
    ready = [one for one in batch if not one.is_done and one not in errors]
    decoding = [one for one in ready if not one.is_prefilling]
    num_drafting = sum(one.decoding.tuning.drafts for one in decoding)
    mix = PassMix(num_drafting, len(decoding) - num_drafting)
    for generation in decoding:
        with Catch(errors, generation):
            generation.decoding.begin(mix, is_shared=len(ready) > 1)
    sequences = [one.decoding for one in decoding if one not in errors]
    prompts = [one.prefill for one in ready if one.is_prefilling]
    if ready:
        failed = decode_step(ready[0].target.runner, sequences, prompts)
        for one in ready:
            error = failed.get(one.decoding, failed.get(one.prefill))
            errors.update({} if error is None else {one: error})


def _report(generation: Generation, errors: GenerationErrors) -> StepResult:
    """Collect an answer's events; an error in it fails the answer."""
    events: tuple[Event, ...] = ()
    if generation not in errors:
        with Catch(errors, generation):
            events = generation.events()
    return StepResult(generation, events, errors.get(generation))
