"""Whose turn it is: answers under way take their steps in forward passes that they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from medusa_core.engine.generation import Generation
from medusa_core.engine.loop import Catch, decode_step
from medusa_core.messages import Event
from medusa_core.speculation.tuning.costs import Sharers

MOST_TOGETHER = 16

Errors = dict[Generation, BaseException]


class Turn(NamedTuple):
    """What a step did for one answer.

    Attributes:
        generation: The answer.
        events: What it brought.
        error: Why the answer failed, if it did.
    """

    generation: Generation
    events: tuple[Event, ...] = ()
    error: BaseException | None = None


class Scheduler:
    """Lets answers take their steps: one answer, or many."""

    def __init__(self, most: int = MOST_TOGETHER, prompt_rows: int = 0) -> None:
        """Schedule.

        Args:
            most: How many answers share a pass at most.
            prompt_rows: Rows of prompts in a shared pass; 0 for as many as are read soon enough
                for a Cancel to be heard.
        """
        self._most = most
        self._prompt_rows = prompt_rows

    def step(self, running: list[Generation]) -> list[Turn]:
        """Let those whose turn it is take a step, in one forward pass.

        Args:
            running: Answers of one target, of which the first has waited for longest. Who takes
                part goes to the end; who ends or fails is taken out.

        Returns:
            What became of those who took part.
        """
        errors: Errors = {}
        batch = self._schedule(running, errors)
        _run(batch, errors)
        turns = [_report(generation, errors) for generation in batch]
        took_part = set(batch)
        running[:] = [generation for generation in running if generation not in took_part]
        running += [one for one, _, error in turns if error is None and not one.is_done]
        return turns

    def _schedule(self, running: Sequence[Generation], errors: Errors) -> list[Generation]:
        """Whose turn it is: the first, and who shares its pass; those that read, if rows are left.

        All of them have room in their caches, or end by the lack of it.
        """
        chosen = list(running[:1])
        if chosen[0].request.joins:
            chosen = [one for one in running if one.request.joins][: self._most]
        for generation in chosen:
            with Catch(errors, generation):
                generation.make_room()
        reading = [one for one in chosen if one.is_reading and one not in errors]
        waiting = self._begin_chunks(reading, is_shared=len(chosen) > 1)
        return [one for one in chosen if one not in waiting]

    def _begin_chunks(self, reading: Sequence[Generation], is_shared: bool) -> set[Generation]:
        """Divide the rows for prompts among those that read; returns who gets none."""
        rows = self._prompt_rows if is_shared else 0
        waiting = set()
        for place, generation in enumerate(reading):
            prefill = generation.prefill
            if place == 0:
                rows = rows or prefill.usual_rows
            if rows > 0:
                prefill.begin(rows)
                rows -= len(prefill.chunk.token_ids)
            else:
                waiting.add(generation)
        return waiting


def _run(batch: Sequence[Generation], errors: Errors) -> None:
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


def _report(generation: Generation, errors: Errors) -> Turn:
    """What the step brought an answer; who fails to say so has failed, too."""
    events: tuple[Event, ...] = ()
    if generation not in errors:
        with Catch(errors, generation):
            events = generation.events()
    return Turn(generation, events, errors.get(generation))
