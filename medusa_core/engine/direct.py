"""Generation in the calling thread, for the command line and benchmarks."""

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
        messages: The conversation, ending with a user's message.
        settings: Settings of the answer.
        on_step: Called with every step, prefill included.
        session: The conversation's session, with cached rows; None for a new one.
        on_trace: Called with the trace of every step; None records none.
        row_policy: Decides how to draft, and learns; None for default trees.
        drafter: The drafter; None for the registered one that the settings name.

    Raises:
        MedusaError: The request can't be served, or the engine failed.
    """
    records = on_trace is not None
    request = Generate("direct", "direct", tuple(messages), settings, records=records)
    with nullcontext(session) if session else closing(Session(target)) as opened:
        generation = start_generation(
            request, target, opened, row_policy or RowPolicy(target), drafter
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
    """Decode an answer that runs alone, and yield its events.

    Raises:
        MedusaError: The engine failed; the session keeps the tokens decided before.
    """
    scheduler, running = Scheduler(), [generation]
    while running:
        for result in scheduler.step(running):
            if result.error is not None:
                raise result.error
            yield from result.events
