"""Optimizers with learning rate schedules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import nn

LearningRate = Callable[[int], float]


class Optimizers:
    """Several optimizers as one; the schedule scales their initial learning rates."""

    def __init__(self, parts: Sequence[torch.optim.Optimizer], rate: LearningRate) -> None:
        """Take the optimizers.

        Args:
            parts: Optimizers of disjoint parameters.
            rate: Factor of the learning rates at a step, from 0.
        """
        self._parts, self._rate = parts, rate
        self._top_blocks = [[group["lr"] for group in part.param_groups] for part in parts]

    def step(self, step: int) -> None:
        """Apply step number `step` (from 0) and clear the gradients."""
        factor = self._rate(step)
        for part, rates in zip(self._parts, self._top_blocks, strict=True):
            for group, rate in zip(part.param_groups, rates, strict=True):
                group["lr"] = rate * factor
            part.step()
            part.zero_grad(set_to_none=True)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of all optimizers."""
        return {str(place): part.state_dict() for place, part in enumerate(self._parts)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the result of `state_dict`."""
        for place, part in enumerate(self._parts):
            part.load_state_dict(state[str(place)])


def adam_w_groups(groups: Sequence[dict[str, Any]]) -> torch.optim.AdamW:
    """Return `adam_w` for parameter groups with their own learning rates."""
    return torch.optim.AdamW(groups, betas=(0.9, 0.95), weight_decay=0.0, fused=True)


def adam_w(parameters: Iterable[nn.Parameter], lr: float) -> torch.optim.AdamW:
    """Return AdamW without weight decay."""
    return torch.optim.AdamW(parameters, lr=lr, betas=(0.9, 0.95), weight_decay=0.0, fused=True)


def cosine_rate(num_steps: int) -> LearningRate:
    """Return a schedule: warm-up over a tenth of the steps, then cosine decay to 0."""
    warm_up = max(1, num_steps // 10)

    def rate(step: int) -> float:
        """Return the factor of the initial learning rate."""
        if step < warm_up:
            return (step + 1) / warm_up
        return 0.5 + 0.5 * math.cos(math.pi * (step - warm_up) / max(1, num_steps - warm_up))

    return rate
