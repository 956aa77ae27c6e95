"""Stages of training: heads alone, or heads and their target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor, nn

from medusa_core.training.heads_config import HeadsConfig

_ROUNDS = 2  # epochs of heads alone
_JOINT_ROUNDS = 1
_JOINT_SHARE = 0.6  # share of joint training in all steps and training time
ASKED = 0.05  # share of a run's time at the end of writing prompts, if there are any
ANSWERED = 0.35  # share of a run's time at the end of writing answers
_SLICES, _SLICE = 4, 0.15  # number of slices, and the share of the time of each
_ANSWERS = 0.67  # share of a slice in which the model writes
_TRAINED = 0.92  # share of a run's time at the end of training


@dataclass(frozen=True, slots=True)
class TrainingStage:
    """A stage of training: its loss, order of samples, checkpoint and length.

    Attributes:
        name: Name in progress reports.
        kept_as: Name under which its number of steps is stored.
        module: Trained module.
        groups: Parameter groups with learning rates.
        loss_at: Returns the loss of a step, given the finished share of the training.
        accuracy: Measures the top-1 accuracy of each head.
        tokens_per_step: Answer tokens per step, about.
        checkpoint: Checkpoint file.
        num_steps: Configured steps; 0 for what time allows.
        first_step: Steps of earlier stages.
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
    """A slice of a run, in shares of its time.

    Attributes:
        answered: End of writing answers.
        trained: End of training on all answers so far.
    """

    answered: float
    trained: float


@dataclass(frozen=True, slots=True)
class StageShare:
    """Share of a run's time, or number of steps, that a stage takes.

    Attributes:
        steps: Number of steps; 0 for what time allows.
        ends: Share of the run's time at which it ends.
    """

    steps: int
    ends: float


def slices_of(config: HeadsConfig) -> tuple[Slice, ...]:
    """Return the slices in which the model writes and heads are trained."""
    if config.answers_of:  # all answers exist
        return (Slice(0.0, 0.0),)
    if not config.minutes or config.joint:
        return (Slice(ANSWERED, ANSWERED),)
    starts = [number * _SLICE for number in range(_SLICES)]
    return tuple(Slice(start + _ANSWERS * _SLICE, start + _SLICE) for start in starts)


def answering_share(config: HeadsConfig) -> float:
    """Return the share of a run's time in which the model writes."""
    slices = slices_of(config)
    starts = [0.0, *(part.trained for part in slices)]
    return sum(part.answered - start for part, start in zip(slices, starts, strict=False))


def training_share(config: HeadsConfig, now: float = 0.0) -> float:
    """Return the share of a run's time for the training of heads alone.

    Args:
        config: Configuration of the run.
        now: Elapsed share of the time.
    """
    slices = slices_of(config)
    spans = [(part.answered, part.trained) for part in slices[:-1]]
    spans.append((slices[-1].answered, heads_end(config)))
    return sum(max(0.0, stop - max(start, now)) for start, stop in spans)


def heads_end(config: HeadsConfig) -> float:
    """Return the share of a run's time at which the training of heads alone ends."""
    return _TRAINED - _JOINT_SHARE * (_TRAINED - ANSWERED) * config.joint


def heads_share(config: HeadsConfig, steps_per_epoch: int) -> StageShare:
    """Return the length of the stage of heads alone."""
    ends = heads_end(config)
    steps = max(1, config.steps - joint_steps(config)) if config.steps else 0
    return StageShare(0 if config.minutes else steps or _ROUNDS * steps_per_epoch, ends)


def joint_share(config: HeadsConfig, steps_per_epoch: int) -> StageShare:
    """Return the length of joint training."""
    steps = joint_steps(config) or _JOINT_ROUNDS * steps_per_epoch
    return StageShare(0 if config.minutes else steps, _TRAINED)


def joint_steps(config: HeadsConfig) -> int:
    """Return the configured steps of joint training; 0 if none are configured."""
    return max(1, round(_JOINT_SHARE * config.steps)) if config.joint and config.steps else 0
