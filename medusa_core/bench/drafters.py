"""Race all drafters of a model: `bench --drafters all`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from medusa_core.engine.drafter_race import DrafterRace, default_race
from medusa_core.errors import RequestError
from medusa_core.loading.target import Target
from medusa_core.messages import DrafterSpeed
from medusa_core.speculation.drafters.lineup import drafters_for
from medusa_core.speculation.tuning.measurements import ModelMeasurements
from medusa_core.system.prompts import BenchPrompt


def race_drafters(
    target: Target,
    measurements: ModelMeasurements,
    prompts: Sequence[BenchPrompt],
    max_new_tokens: int,
    on_prompt: Callable[[int, int], None],
) -> tuple[DrafterSpeed, ...]:
    """Let all drafters answer greedily, and save their speeds for this computer.

    Args:
        target: The loaded target.
        measurements: Saved measurements, with the step costs that drafters choose their trees by.
        prompts: Prompts, of which the first turns are used.
        max_new_tokens: Length of the answers.
        on_prompt: Called with the number of prompts that are done, and of all.

    Returns:
        Speed of each drafter, the new default first.

    Raises:
        RequestError: No prompt fits the context.
    """
    questions = [prompt.turns[0] for prompt in prompts]
    race = DrafterRace(target, measurements.costs(), questions, max_new_tokens)
    reported = 0
    while not race.is_done:
        race.advance()
        if race.num_answered > reported:
            reported = race.num_answered
            on_prompt(reported, len(prompts))
    if not race.speeds:
        raise RequestError("No prompt fits the model's context.", "Name shorter ones.")
    measurements.save_speeds(race.speeds)
    by_name = {speed.name: speed for speed in race.speeds}
    order = (spec.name for spec in drafters_for(target, race.speeds))
    return tuple(by_name[name] for name in order if name in by_name)


def drafter_of_window(target: Target, measurements: ModelMeasurements, shows_drafts: bool) -> str:
    """Return the window's default drafter: the fastest of its race, which is run if none is saved.

    Args:
        target: The loaded target.
        measurements: Saved measurements; those of the race are added.
        shows_drafts: Whether the default must be able to draft.
    """
    speeds = measurements.speeds()
    if not speeds:
        race = default_race(target, measurements.costs())
        while not race.is_done:
            race.advance()
        speeds = race.speeds
        measurements.save_speeds(speeds)
    return drafters_for(target, speeds, shows_drafts=shows_drafts)[0].name


def drafters_json(speeds: Sequence[DrafterSpeed]) -> dict[str, Any]:
    """Return the fields of `bench --drafters all --json`."""
    reported = (speed._asdict() for speed in speeds)
    return {"drafters": {each.pop("name"): each for each in reported}}


def drafters_table(speeds: Sequence[DrafterSpeed]) -> str:
    """Format the speeds for a terminal."""
    lines = [f"{'':22}{'tau':>7}{'tokens/s':>10}{'x plain':>9}{'draft ms':>10}"]
    lines += [
        f"{speed.name:22}{speed.tau:7.2f}{speed.tokens_per_s:10.1f}{speed.x_plain:9.2f}"
        f"{speed.draft_ms:10.2f}"
        for speed in speeds
    ]
    lines.append(f"The default for this model on this computer: {speeds[0].name}.")
    return "\n".join(lines)
