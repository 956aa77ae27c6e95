"""A part of a run in which something learns: heads alone, or heads and their target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor, nn

from medusa_core.training.heads_config import HeadsConfig

_ROUNDS = 2  # over the answers, of heads alone
_JOINT_ROUNDS = 1
_JOINT_SHARE = 0.6  # of all steps, and of the time for training
ASKED = 0.05  # of a run's time, at which the model has written prompts, if it does
ANSWERED = 0.35  # of a run's time, at which the model has written its answers
_SLICES, _SLICE = 4, 0.15  # how many, and the share of the time that each takes
_ANSWERS = 0.67  # the part of a slice in which the model writes
_TRAINED = 0.92  # at which training ends


@dataclass(frozen=True, slots=True)
class TrainingStage:
    """What learns, and how.

    Attributes:
        name: As progress tells it.
        kept_as: Under which name its number of steps is kept.
        module: What learns.
        groups: Its parameters with their learning rates.
        loss_at: The loss of a step, given the share of the training that is done.
        accuracy: How often the best guess of each head is right now.
        tokens_per_step: Tokens of answers that a step learns from, about.
        checkpoint: Where it is kept.
        num_steps: By what was asked for; 0 for what time allows.
        first_step: Steps of what learned before.
        ends: Share of the run's time at which it ends.
    """

    name: str
    kept_as: str
    module: nn.Module
    groups: list[dict[str, Any]]
    loss_at: Callable[[int, float], Tensor]
    accuracy: Callable[[], list[float]]
    tokens_per_step: int
    checkpoint: Path
    num_steps: int
    first_step: int
    ends: float


class Slice(NamedTuple):
    """A slice of a run, by shares of its time.

    Attributes:
        answered: At which the model has written the answers of the slice.
        trained: At which heads have learned from all so far.
    """

    answered: float
    trained: float


@dataclass(frozen=True, slots=True)
class StageShare:
    """How much of a run a stage gets.

    Attributes:
        steps: Its steps; 0 for what time allows.
        ends: Share of the run's time at which it ends.
    """

    steps: int
    ends: float


def slices_of(config: HeadsConfig) -> tuple[Slice, ...]:
    """In which slices the model writes, and heads learn in between."""
    if config.answers_of:  # all are there
        return (Slice(0.0, 0.0),)
    if not config.minutes or config.joint:
        return (Slice(ANSWERED, ANSWERED),)
    starts = [number * _SLICE for number in range(_SLICES)]
    return tuple(Slice(start + _ANSWERS * _SLICE, start + _SLICE) for start in starts)


def answering_share(config: HeadsConfig) -> float:
    """Share of a run's time in which the model writes."""
    slices = slices_of(config)
    starts = [0.0, *(part.trained for part in slices)]
    return sum(part.answered - start for part, start in zip(slices, starts, strict=False))


def training_share(config: HeadsConfig, now: float = 0.0) -> float:
    """Share of a run's time in which heads alone learn.

    Args:
        config: Of the run.
        now: Share of the time that is over.
    """
    slices = slices_of(config)
    spans = [(part.answered, part.trained) for part in slices[:-1]]
    spans.append((slices[-1].answered, heads_end(config)))
    return sum(max(0.0, stop - max(start, now)) for start, stop in spans)


def heads_end(config: HeadsConfig) -> float:
    """Share of a run's time at which heads alone have learned."""
    return _TRAINED - _JOINT_SHARE * (_TRAINED - ANSWERED) * config.joint


def heads_share(config: HeadsConfig, steps_of_a_round: int) -> StageShare:
    """Of heads alone."""
    ends = heads_end(config)
    steps = max(1, config.steps - joint_steps(config)) if config.steps else 0
    return StageShare(0 if config.minutes else steps or _ROUNDS * steps_of_a_round, ends)


def joint_share(config: HeadsConfig, steps_of_a_round: int) -> StageShare:
    """Of heads and their target."""
    steps = joint_steps(config) or _JOINT_ROUNDS * steps_of_a_round
    return StageShare(0 if config.minutes else steps, _TRAINED)


def joint_steps(config: HeadsConfig) -> int:
    """Of the steps that were asked for, those of heads and their target; 0 if none were."""
    return max(1, round(_JOINT_SHARE * config.steps)) if config.joint and config.steps else 0
