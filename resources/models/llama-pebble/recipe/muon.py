"""Muon for the matrices of the blocks, AdamW for the rest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from medusa_core.training.heads import HeadsModule
from medusa_core.training.optimizer import LearningRate, Optimizers, adam_w
from medusa_core.training.precision import trains_in_bf16
from recipe.network import PebbleNetwork
from recipe.recipe import HeadRecipe, Schedule

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
MOMENTUM = 0.95


def orthogonalise(matrices: Tensor, dtype: torch.dtype, num_steps: int = 5) -> Tensor:
    """Replace the singular values of each matrix by about 1.

    Args:
        matrices: [N, rows, columns] with rows <= columns.
        dtype: of the products.
        num_steps: Newton-Schulz steps.

    Returns:
        [N, rows, columns] of that dtype.

    Source: Jordan et al., "Muon: An optimizer for hidden layers in neural networks" (2024).
    """
    a, b, c = NEWTON_SCHULZ
    x = matrices.to(dtype)
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(num_steps):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x


class Muon(torch.optim.Optimizer):
    """Momentum whose step is orthogonalised, matrix by matrix.

    Matrices of one shape (or its transpose) are handled in one batched product.
    """

    def __init__(self, parameters: Sequence[nn.Parameter], lr: float, momentum: float) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update all matrices once; a closure is not called."""
        for group in self.param_groups:
            by_shape: dict[tuple[int, int], list[nn.Parameter]] = {}
            for parameter in group["params"]:
                short, long = sorted(parameter.shape)
                by_shape.setdefault((short, long), []).append(parameter)
            for parameters in by_shape.values():
                self._step_group(parameters, group["lr"], group["momentum"])

    def _step_group(self, parameters: list[nn.Parameter], lr: float, momentum: float) -> None:
        updates = []
        for parameter in parameters:
            state = self.state[parameter]
            if "momentum" not in state:
                state["momentum"] = torch.zeros_like(parameter)
            assert parameter.grad is not None, "Muon stepped without gradients"
            average = state["momentum"].lerp_(parameter.grad, 1 - momentum)
            update = parameter.grad.lerp(average, momentum)
            updates.append(update.mT if _is_tall(parameter) else update)
        stacked = torch.stack(updates)
        dtype = torch.bfloat16 if trains_in_bf16(stacked.device.type) else torch.float32
        for parameter, update in zip(parameters, orthogonalise(stacked, dtype), strict=True):
            rows, columns = parameter.shape
            scale = math.sqrt(max(1.0, rows / columns))
            change = update.mT if _is_tall(parameter) else update
            parameter.add_(change.to(parameter.dtype), alpha=-lr * scale)


def _is_tall(parameter: Tensor) -> bool:
    return parameter.shape[0] > parameter.shape[1]


def network_optimizers(network: PebbleNetwork, schedule: Schedule) -> Optimizers:
    """Those of a stage of the network."""
    matrices: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for name, parameter in network.named_parameters():
        in_block = ".layers." in name and parameter.dim() == 2
        (matrices if in_block else others).append(parameter)
    parts = [Muon(matrices, schedule.matrix_lr, MOMENTUM), adam_w(others, schedule.vector_lr)]
    return Optimizers(parts, partial(rate_factor, schedule))


def heads_optimizers(heads: HeadsModule, numbers: HeadRecipe, rate: LearningRate) -> Optimizers:
    """Those of the heads."""
    matrices = [p for p in heads.blocks.parameters() if p.dim() > 1]
    biases = [p for p in heads.blocks.parameters() if p.dim() == 1]
    vectors = [*biases, *heads.projections.parameters()]
    parts = [Muon(matrices, numbers.matrix_lr, MOMENTUM), adam_w(vectors, numbers.vector_lr)]
    return Optimizers(parts, rate)


def rate_factor(schedule: Schedule, step: int) -> float:
    """Learning rate at a step as a share of the schedule's highest: warm-up, then a line."""
    warm = min(1.0, (step + 1) / schedule.warmup_steps) if schedule.warmup_steps else 1.0
    done = min(1.0, step / schedule.num_steps)
    return warm * (schedule.first_rate + done * (schedule.last_rate - schedule.first_rate))
