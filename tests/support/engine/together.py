"""Requests that are decoded in one batch."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from medusa_core.engine.scheduler import Scheduler
from medusa_core.engine.session import Session
from medusa_core.engine.start import start_generation
from medusa_core.loading.target import Target
from medusa_core.messages import Generate, GenerationDone, StepDone
from medusa_core.runtime.runner.native import NativeRunner
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.rules.rule import RuleSpec
from medusa_core.speculation.tuning.row_policy import RowPolicy
from tests.support.engine.law_settings import TOLERANCE, prompts_of, settings_for
from tests.support.engine.laws import check_cache


def requests_of(
    name: str, methods: Iterable[tuple[DrafterSpec, RuleSpec]], num_tokens: int
) -> list[Generate]:
    """Return a request for every drafter and rule, each with its own prompt and settings."""
    prompts = prompts_of(name)
    found = []
    for number, (drafter, rule) in enumerate(methods):
        settings = settings_for(rule, num_tokens)
        own_settings = replace(settings[number % len(settings)], drafter=drafter.name, tree_rows=12)
        found.append(Generate(str(number), "", prompts[number % len(prompts)], own_settings))
    return found


def decode_together(
    target: Target,
    requests: Sequence[Generate],
    honest: Target | None = None,
    drafters: Mapping[str, DrafterSpec] | None = None,
) -> tuple[list[GenerationDone], int]:
    """Decode all answers together; return them and the most answers in a pass.

    Args:
        target: Decodes.
        requests: For what.
        honest: Where given, the caches are compared with its own after every step.
        drafters: By session, where they are others than the settings name.
    """
    row_policy, scheduler = RowPolicy(target), Scheduler()
    sessions = {request.session_id: Session(target) for request in requests}
    running = [
        start_generation(
            r, target, sessions[r.session_id], row_policy, (drafters or {}).get(r.session_id)
        )
        for r in requests
    ]
    done: dict[str, GenerationDone] = {}
    largest = 0
    while running:
        turns = scheduler.step(running)
        largest = max(largest, len(turns))
        for generation, events, error in turns:
            if error is not None:
                raise error
            done.update({e.session_id: e for e in events if isinstance(e, GenerationDone)})
            if honest is not None and any(isinstance(event, StepDone) for event in events):
                tolerance = 0.0 if isinstance(honest.runner, NativeRunner) else TOLERANCE["float64"]
                check_cache(sessions[generation.request.session_id], honest, tolerance)
    for session in sessions.values():
        session.close()
    return [done[request.session_id] for request in requests], largest
