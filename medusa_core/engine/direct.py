"""Answering without a worker: what the command line and the benchmark use."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext

from medusa_core.engine.generation import Generation
from medusa_core.engine.scheduler import Scheduler
from medusa_core.engine.session import Session
from medusa_core.engine.start import start_generation
from medusa_core.loading.target import Target
from medusa_core.messages import (
    ChatMessage,
    Event,
    Generate,
    GenerateSettings,
    GenerationDone,
    LayersMoved,
    StepDone,
    StepTrace,
)
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.tuning.row_policy import RowPolicy

log = logging.getLogger(__name__)

OnStep = Callable[[StepDone], None]
OnTrace = Callable[[StepTrace], None]


def generate(
    target: Target,
    messages: Sequence[ChatMessage],
    settings: GenerateSettings,
    on_step: OnStep | None = None,
    session: Session | None = None,
    on_trace: OnTrace | None = None,
    row_policy: RowPolicy | None = None,
    drafter: DrafterSpec | None = None,
) -> GenerationDone:
    """Answer a conversation in the calling thread.

    Args:
        target: A loaded target.
        messages: The turns, oldest first, the last one the user's.
        settings: How to decode.
        on_step: Called with every step, prefill included.
        session: Where to look for cached rows; a new one if None.
        on_trace: Called with the trace of every step; None records nothing.
        row_policy: Chooses trees and learns; None for what is usual of the heads.
        drafter: The drafter to use; None for the registered one that the settings name.

    Raises:
        MedusaError: The request can't be served, or the engine failed.
    """
    records = on_trace is not None
    request = Generate("direct", "direct", tuple(messages), settings, records=records)
    with nullcontext(session) if session else closing(Session(target)) as lasting:
        generation = start_generation(
            request, target, lasting, row_policy or RowPolicy(target), drafter
        )
        for event in events_of(generation):
            if isinstance(event, LayersMoved):
                log.warning("%s", event.move.text)
            if isinstance(event, StepDone) and on_step is not None:
                on_step(event)
            if isinstance(event, StepTrace) and on_trace is not None:
                on_trace(event)
    assert isinstance(event, GenerationDone)  # the last event of an answer
    return event


def events_of(generation: Generation) -> Iterator[Event]:
    """The events of an answer that nothing runs beside, while it is decoded.

    Raises:
        MedusaError: The engine failed; the session holds what was decided before.
    """
    scheduler, running = Scheduler(), [generation]
    while running:
        for turn in scheduler.step(running):
            if turn.error is not None:
                raise turn.error
            yield from turn.events
