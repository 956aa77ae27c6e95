"""Cross-entropy over a large vocabulary without keeping the scores of all positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

CHUNK_ROWS = 768


class _ChunkedCrossEntropy(torch.autograd.Function):
    """Weighted cross-entropy whose gradient is made in the forward pass, chunk by chunk."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, matrix: Tensor, targets: Tensor, weights: Tensor, dtype: Any
    ) -> Tensor:
        narrow_hidden, narrow_matrix = hidden.to(dtype), matrix.to(dtype)
        weights = weights / weights.sum()
        grad_hidden = torch.empty_like(narrow_hidden)
        trained = ctx.needs_input_grad[1]
        grad_matrix = torch.zeros_like(matrix) if trained else None
        total = torch.zeros((), dtype=torch.float32, device=hidden.device)
        for start in range(0, len(hidden), CHUNK_ROWS):
            part = slice(start, start + CHUNK_ROWS)
            scores = (narrow_hidden[part] @ narrow_matrix.T).float()
            at_target = scores.log_softmax(-1).gather(1, targets[part, None])
            total -= (at_target[:, 0] * weights[part]).sum()
            # Not by exponentials of what is there: PyTorch's take five times as long on processors.
            grad = scores.softmax(-1)
            grad.scatter_add_(1, targets[part, None], torch.full_like(at_target, -1.0))
            grad.mul_(weights[part, None])
            narrow_grad = grad.to(dtype)
            grad_hidden[part] = narrow_grad @ narrow_matrix
            if grad_matrix is not None:
                grad_matrix += narrow_grad.T @ narrow_hidden[part]
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
