"""Cross-entropy over a large vocabulary without keeping the scores of all positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

CHUNK_ROWS = 384
_LEAST_CHANCE = 1e-38  # its logarithm is a number; the gradient doesn't need it


class _ChunkedCrossEntropy(torch.autograd.Function):
    """Weighted cross-entropy whose gradient is made in the forward pass, chunk by chunk."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, matrix: Tensor, targets: Tensor, weights: Tensor, dtype: Any
    ) -> Tensor:
        narrow_hidden, narrow_matrix = hidden.to(dtype), matrix.to(dtype)
        weights = weights / weights.sum()
        weighted_hidden = (hidden * weights[:, None]).to(dtype)
        grad_hidden = torch.empty_like(narrow_hidden)
        trained = ctx.needs_input_grad[1]
        grad_matrix = torch.zeros_like(matrix) if trained else None
        total = torch.zeros((), dtype=torch.float32, device=hidden.device)
        for start in range(0, len(hidden), CHUNK_ROWS):
            part = slice(start, start + CHUNK_ROWS)
            target = targets[part, None]
            # One softmax gives loss and gradient: PyTorch's logarithm of it and its exponentials
            # take several times as long on processors.
            chances = torch.softmax(narrow_hidden[part] @ narrow_matrix.T, -1, torch.float32)
            at_target = chances.gather(1, target)
            total -= (at_target[:, 0].clamp_min(_LEAST_CHANCE).log() * weights[part]).sum()
            grad = chances.scatter_(1, target, at_target - 1).to(dtype)
            grad_hidden[part] = (grad @ narrow_matrix) * weights[part, None]
            if grad_matrix is not None:
                grad_matrix += grad.T @ weighted_hidden[part]
        ctx.save_for_backward(grad_hidden, grad_matrix)
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        grad_hidden, grad_matrix = ctx.saved_tensors
        (scale,) = grads
        matrix_grad = None if grad_matrix is None else grad_matrix * scale
        return grad_hidden * scale, matrix_grad, None, None, None


def chunked_cross_entropy(
    hidden: Tensor, matrix: Tensor, targets: Tensor, weights: Tensor, dtype: torch.dtype
) -> Tensor:
    """Weighted mean cross-entropy of `hidden @ matrix.T` against the targets, in nats.

    Args:
        hidden: [N, H].
        matrix: [V, H].
        targets: int64 [N].
        weights: float32 [N], not all zero.
        dtype: of the matrix products.

    Returns:
        Scalar float32 with gradients for `hidden` and `matrix`.
    """
    apply: Callable[..., Tensor] = _ChunkedCrossEntropy.apply
    return apply(hidden, matrix, targets, weights, dtype)
