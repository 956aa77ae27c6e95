"""What the curves of an answer say, in words and figures; no Qt."""

from __future__ import annotations

from typing import NamedTuple

from app.chat.figures import LEAST_STEP_S, speed_up
from app.insight.steps_figures import PARTS, StepFigures
from app.insight.words import micro
from medusa_core.messages import Calibrated, GenerationDone, ModelLoaded

MIB = 2**20


class Memory(NamedTuple):
    """What a model takes, in MiB.

    Attributes:
        per_token: A token's keys and values.
        room: Set aside for all of them.
        weights: Of the model and its heads.
    """

    per_token: float
    room: float
    weights: float


def memory_of(loaded: ModelLoaded | None) -> Memory | None:
    """What a model takes; None where it isn't loaded."""
    if loaded is None:
        return None
    plan = loaded.plan
    per_token = plan.kv_bytes / max(1, plan.context_tokens) / MIB
    return Memory(per_token, plan.kv_bytes / MIB, (plan.weights_bytes + plan.heads_bytes) / MIB)


def say_answer(
    figures: StepFigures,
    done: GenerationDone | None,
    calibrated: Calibrated | None,
    loaded: ModelLoaded | None,
) -> str:
    """The figures of a whole answer.

    Args:
        figures: At least one step of it.
        done: How it ended; None while it is written.
        calibrated: What steps cost; None where that isn't known of its model.
        loaded: Its model; None where another one is loaded.
    """
    tau, seconds = float(figures.tokens.mean()), float(figures.seconds.mean())
    around = max(0.0, seconds - float(figures.times.sum(axis=0).mean()))
    times = f"{micro(seconds)}, {micro(around)} of it besides the four parts"
    told = [f"τ {tau:.2f} tokens/step over {len(figures):,} steps; a step takes {times}."]
    if calibrated is not None and calibrated.plain_step_s >= LEAST_STEP_S:
        known = None if done is None else speed_up(done)  # as under the answer
        factor = known or tau * calibrated.plain_step_s / seconds
        plain = micro(calibrated.plain_step_s)
        told.append(f"{factor:.2f}× plain decoding, whose steps take {plain}.")
    memory = memory_of(loaded)
    if memory is not None and loaded is not None:
        used = int(figures.context[-1])
        told.append(
            f"Cache: {used:,} of {loaded.context_tokens:,} tokens, "
            f"{used * memory.per_token:,.1f} of {memory.room:,.1f} MiB. "
            f"Weights and heads: {memory.weights:,.0f} MiB."
        )
    return " ".join(told)


def say_step(figures: StepFigures, at: int, memory: Memory | None) -> tuple[str, str, str, str]:
    """A step's tokens, times, speed and memory.

    Args:
        figures: Of the answer.
        at: Index of the step in them.
        memory: What the model takes; None where that isn't known.
    """
    step = f"step {int(figures.numbers[at]):,}"
    parts = zip(PARTS, figures.times[:, at], strict=True)
    used = "not known" if memory is None else f"{figures.context[at] * memory.per_token:.2f}"
    return (
        f"{step}: {int(figures.tokens[at])}, {int(figures.accepted[at])} of them accepted",
        f"{step}: " + ", ".join(f"{name} {micro(seconds)}" for name, seconds in parts),
        f"{step}: {figures.speeds()[at]:,.0f}",
        f"{step}: {used}",
    )
