"""A part of a run in which something learns: heads alone, or heads and their target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from medusa_core.training.heads_config import HeadsConfig

_ROUNDS = 2  # over the answers, of heads alone
_JOINT_ROUNDS = 1
_JOINT_SHARE = 0.6  # of all steps, and of the time for training
ANSWERED = 0.35  # of a run's time, at which the model has written its answers
_TRAINED = 0.92  # at which training ends


@dataclass(frozen=True, slots=True)
class Stage:
    """What learns, and how.

    Attributes:
        name: As progress tells it.
        kept_as: Under which name its number of steps is kept.
        module: What learns.
        groups: Its parameters with their learning rates.
        loss_at: The loss of a step, given the share of the training that is done.
        accuracy: How often the best guess of each head is right now.
        batch: What a step reads.
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
    batch: int
    checkpoint: Path
    num_steps: int
    first_step: int
    ends: float


@dataclass(frozen=True, slots=True)
class Share:
    """How much of a run a stage gets.

    Attributes:
        steps: Its steps; 0 for what time allows.
        ends: Share of the run's time at which it ends.
    """

    steps: int
    ends: float


def heads_share(config: HeadsConfig, steps_of_a_round: int) -> Share:
    """Of heads alone."""
    ends = _TRAINED - _JOINT_SHARE * (_TRAINED - ANSWERED) * config.joint
    steps = max(1, config.steps - joint_steps(config)) if config.steps else 0
    return Share(0 if config.minutes else steps or _ROUNDS * steps_of_a_round, ends)


def joint_share(config: HeadsConfig, steps_of_a_round: int) -> Share:
    """Of heads and their target."""
    steps = joint_steps(config) or _JOINT_ROUNDS * steps_of_a_round
    return Share(0 if config.minutes else steps, _TRAINED)


def joint_steps(config: HeadsConfig) -> int:
    """Of the steps that were asked for, those of heads and their target; 0 if none were."""
    return max(1, round(_JOINT_SHARE * config.steps)) if config.joint and config.steps else 0
