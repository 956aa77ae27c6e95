"""Muon for the matrices of the blocks, AdamW for the embedding and the norms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from medusa_core.training.network import PebbleNetwork
from medusa_core.training.precision import trains_in_bf16
from medusa_core.training.recipe import Schedule

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)


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


class Optimizers:
    """Both optimizers as one, with the schedule's learning rates."""

    def __init__(self, network: PebbleNetwork, schedule: Schedule) -> None:
        matrices: list[nn.Parameter] = []
        others: list[nn.Parameter] = []
        for name, parameter in network.named_parameters():
            in_block = ".layers." in name and parameter.dim() == 2
            (matrices if in_block else others).append(parameter)
        self.schedule = schedule
        self.muon = Muon(matrices, schedule.matrix_lr, momentum=0.95)
        self.adam = torch.optim.AdamW(
            others, lr=schedule.vector_lr, betas=(0.9, 0.95), weight_decay=0.0, fused=True
        )

    def step(self, step: int) -> None:
        """Take step number `step` (from 0) and clear the gradients."""
        factor = rate_factor(self.schedule, step)
        for optimizer, rate in (
            (self.muon, self.schedule.matrix_lr),
            (self.adam, self.schedule.vector_lr),
        ):
            for group in optimizer.param_groups:
                group["lr"] = rate * factor
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    def state_dict(self) -> dict[str, Any]:
        """State of both."""
        return {"muon": self.muon.state_dict(), "adam": self.adam.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from `state_dict`'s result."""
        self.muon.load_state_dict(state["muon"])
        self.adam.load_state_dict(state["adam"])


def rate_factor(schedule: Schedule, step: int) -> float:
    """Learning rate at a step as a share of the schedule's highest: warm-up, then a line."""
    warm = min(1.0, (step + 1) / schedule.warmup_steps) if schedule.warmup_steps else 1.0
    done = min(1.0, step / schedule.num_steps)
    return warm * (schedule.first_rate + done * (schedule.last_rate - schedule.first_rate))
