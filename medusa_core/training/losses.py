"""Losses over a large vocabulary without storing the logits of all positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

CHUNK_ROWS = 384
_LEAST_CHANCE = 1e-37  # clamp before the logarithm; the gradient doesn't use it


class _ChunkedCrossEntropy(torch.autograd.Function):
    """Weighted cross-entropy whose gradient is computed in the forward pass, chunk by chunk."""

    @staticmethod
    def forward(
        ctx: Any, targets: Tensor, weights: Tensor, dtype: torch.dtype, *factors: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Compute losses and gradients; logits exist for one chunk at a time."""
        rows, matrices = factors[::2], factors[1::2]
        narrow_rows = [x.to(dtype) for x in rows]
        narrow_matrices = [matrix.to(dtype) for matrix in matrices]
        weights = weights / weights.sum()
        weighted_rows = [(x * weights[:, None]).to(dtype) for x in rows]
        row_grads = [torch.empty_like(x) for x in narrow_rows]
        trained = ctx.needs_input_grad[4::2]
        matrix_grads = [
            torch.zeros_like(m) if learns else None
            for m, learns in zip(matrices, trained, strict=True)
        ]
        total = torch.zeros((), dtype=torch.float32, device=targets.device)
        is_best = torch.empty(len(targets), dtype=torch.bool, device=targets.device)
        for start in range(0, len(targets), CHUNK_ROWS):
            part = slice(start, start + CHUNK_ROWS)
            target = targets[part, None]
            scores = narrow_rows[0][part] @ narrow_matrices[0].T
            for x, matrix in zip(narrow_rows[1:], narrow_matrices[1:], strict=True):
                scores += x[part] @ matrix.T
            is_best[part] = scores.argmax(-1) == targets[part]
            # One softmax gives loss and gradient: PyTorch's logarithm of it and its exponentials
            # take several times as long on processors.
            chances = torch.softmax(scores, -1, torch.float32)
            at_target = chances.gather(1, target)
            total -= (at_target[:, 0].clamp_min(_LEAST_CHANCE).log() * weights[part]).sum()
            grad = chances.scatter_(1, target, at_target - 1).to(dtype)
            for place, matrix in enumerate(narrow_matrices):
                row_grads[place][part] = (grad @ matrix) * weights[part, None]
                if (matrix_grad := matrix_grads[place]) is not None:
                    matrix_grad += grad.T @ weighted_rows[place][part]
        ctx.save_for_backward(*row_grads, *matrix_grads)
        ctx.mark_non_differentiable(is_best)
        return total, is_best

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Return the stored gradients, scaled."""
        scale, number = grads[0], len(ctx.saved_tensors) // 2
        scaled = [None if grad is None else grad * scale for grad in ctx.saved_tensors]
        pairs = zip(scaled[:number], scaled[number:], strict=True)
        return None, None, None, *(grad for pair in pairs for grad in pair)


def summed_cross_entropy(
    factors: Sequence[tuple[Tensor, Tensor]], targets: Tensor, weights: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Return the weighted mean cross-entropy of summed products, in nats.

    Args:
        factors: Rows and matrices; the logits are the sum of `rows @ matrix.T`. [N, K], [V, K]
        targets: int64 [N]
        weights: float32 [N], not all zero
        dtype: Dtype of the matrix products.

    Returns:
        Scalar float32 with gradients for rows and matrices; and for each row whether its target has
        the highest logit, bool [N].
    """
    apply: Callable[..., tuple[Tensor, Tensor]] = _ChunkedCrossEntropy.apply
    return apply(targets, weights, dtype, *(tensor for pair in factors for tensor in pair))


def chunked_cross_entropy(
    hidden: Tensor, matrix: Tensor, targets: Tensor, weights: Tensor, dtype: torch.dtype
) -> Tensor:
    """Return the weighted mean cross-entropy of `hidden @ matrix.T`, in nats.

    Args:
        hidden: [N, H]
        matrix: [V, H]
        targets: int64 [N]
        weights: float32 [N], not all zero
        dtype: Dtype of the matrix products.

    Returns:
        Scalar float32 with gradients for `hidden` and `matrix`.
    """
    return summed_cross_entropy(((hidden, matrix),), targets, weights, dtype)[0]


class _ChunkedOverlap(torch.autograd.Function):
    """Overlap loss whose gradient is computed in the forward pass, chunk by chunk."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, matrix: Tensor, columns: Tensor, chances: Tensor
    ) -> Tensor:
        """Compute loss and gradient; logits exist for one chunk at a time."""
        total = torch.zeros((), dtype=torch.float32, device=hidden.device)
        grads = torch.empty_like(hidden)
        for start in range(0, len(hidden), CHUNK_ROWS):
            part = slice(start, start + CHUNK_ROWS)
            drafted = torch.softmax(hidden[part] @ matrix.T, -1, torch.float32)
            own, wanted = drafted.gather(1, columns[part]), chances[part]
            overlap = torch.minimum(own, wanted).sum(1, keepdim=True).clamp_min(_LEAST_CHANCE)
            total -= overlap.log().sum()
            # The overlap depends on the heads only where they give less than the target.
            growing = own * (own < wanted) / overlap
            grad = drafted.mul_(growing.sum(1, keepdim=True))
            grad.scatter_add_(1, columns[part], -growing)
            grads[part] = grad.to(matrix.dtype) @ matrix
        ctx.save_for_backward(grads / len(hidden))
        return total / len(hidden)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Return the stored gradient, scaled."""
        return ctx.saved_tensors[0] * grads[0], None, None, None


def chunked_overlap(
    hidden: Tensor, matrix: Tensor, columns: Tensor, chances: Tensor, dtype: torch.dtype
) -> Tensor:
    """Return the mean of −log Σ min(p, q), in nats; q = softmax(hidden @ matrix.T).

    The sum is the probability that speculative sampling accepts a token drawn from q. With one
    token of probability 1 the loss is the cross-entropy.

    Args:
        hidden: [N, H]
        matrix: Frozen. [V, H]
        columns: The target's most likely columns. int64 [N, K]
        chances: Their probabilities p. float32 [N, K]
        dtype: Dtype of the matrix products.

    Returns:
        Scalar float32 with gradients for `hidden`.

    Source: "LK losses" (arXiv 2602.23881).
    """
    apply: Callable[..., Tensor] = _ChunkedOverlap.apply
    return apply(hidden.to(dtype), matrix.to(dtype), columns, chances)
