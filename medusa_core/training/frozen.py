"""Frozen linear layers that pass gradients to their inputs.

Weights stay in their quantized format; each product dequantizes one layer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from medusa_core.models.blocks.tensors import LinearSpec
from medusa_core.models.checkpoints.checkpoint import Checkpoint
from medusa_core.models.config import ModelConfig
from medusa_core.models.precision import Precision
from medusa_core.models.quant.choice import PartFormats
from medusa_core.models.quant.format import QuantSpec
from medusa_core.models.quant.layout import (
    LinearLayout,
    QuantLinear,
)
from medusa_core.models.token_table import TokenTable
from medusa_core.models.weights import CheckpointWeights

# Adapter of a linear layer: [n, in] → [n, out]
Added = Callable[[Tensor], Tensor]
AddedTo = Callable[[LinearSpec], Added | None]


class _Product(torch.autograd.Function):
    """x Wᵀ with a matrix that is dequantized in each direction and never kept."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: Callable[[], Tensor]) -> Tensor:
        """Multiply rows by the dequantized matrix."""
        ctx.matrix = matrix
        weight = matrix()
        return (x.to(weight.dtype) @ weight.T).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Return the gradient of the rows; the matrix gets none."""
        (grad,) = grads
        weight = ctx.matrix()
        return (grad.to(weight.dtype) @ weight).to(grad.dtype), None


class FrozenLinear:
    """y = x Wᵀ + b + added(x); see `QuantLinear`."""

    def __init__(
        self,
        spec: QuantSpec,
        tensors: Mapping[str, Tensor],
        size: tuple[int, int],
        bias: Tensor | None,
        dtype: torch.dtype,
        added: Added | None = None,
    ) -> None:
        """Take the weights as stored.

        Args:
            spec: Weight format.
            tensors: Tensors of the format by name.
            size: Rows and columns.
            bias: [rows], or None.
            dtype: Dtype of products.
            added: Adapter, or None.
        """
        self._spec, self._tensors, self._size = spec, tensors, size
        self._bias, self._dtype, self._added = bias, dtype, added
        self.nbytes = sum(tensor.nbytes for tensor in tensors.values())
        self.nbytes += 0 if bias is None else bias.nbytes

    def matrix(self) -> Tensor:
        """Dequantize the weights. [rows, columns]"""
        return self._spec.dequantize(self._tensors, *self._size).to(self._dtype)

    def __call__(self, x: Tensor) -> Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        apply: Callable[..., Tensor] = _Product.apply
        y = apply(wide, self.matrix)
        if self._bias is not None:
            y = y + self._bias
        return y if self._added is None else y + self._added(wide)

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        """Add the product to a residual. [n, in], [n, out] → [n, out]"""
        return residual + self(x)

    def layout(self) -> LinearLayout:
        """Return the tensors and a recipe to rebuild the layer."""
        spec, size, dtype, added = self._spec, self._size, self._dtype, self._added
        names = tuple(self._tensors)

        def rebuild(*tensors: Tensor) -> FrozenLinear:
            """Rebuild the layer from copies of its tensors."""
            named = dict(zip(names, tensors, strict=False))
            bias = tensors[-1] if len(tensors) > len(names) else None
            return FrozenLinear(spec, named, size, bias, dtype, added)

        bias = () if self._bias is None else (self._bias,)
        kind = f"frozen {spec.name} {size} {names}"
        return LinearLayout(kind, (*self._tensors.values(), *bias), rebuild)


class FrozenWeights(CheckpointWeights):
    """Reads a checkpoint into frozen layers that pass gradients; see `Weights`."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        config: ModelConfig,
        precision: Precision,
        formats: PartFormats,
        dtype: torch.dtype,
        added_to: AddedTo,
    ) -> None:
        """Prepare to read.

        Args:
            config: Sizes of the target.
            precision: Dtypes and device.
            formats: Format of every part.
            dtype: Dtype of products.
            added_to: Returns the adapter of a part, or None.
        """
        super().__init__(checkpoint, config, precision, formats)
        self._tied = config.tie_embeddings
        self._kinds, self._dtype, self._added_to = formats, dtype, added_to

    def lm_head(self, part: LinearSpec, embedding: TokenTable) -> QuantLinear:
        """Read the LM head; a tied one stays unquantized."""
        if not self._kinds.shares_embedding(self._tied):
            return super().lm_head(part, embedding)
        return self._frozen(part, self._kinds.dense, {"weight": embedding.matrix()}, None)

    def _built(
        self, part: LinearSpec, spec: QuantSpec, tensors: dict[str, Tensor], bias: Tensor | None
    ) -> QuantLinear:
        """Make a frozen layer."""
        return self._frozen(part, spec, tensors, bias)

    def _frozen(
        self, part: LinearSpec, spec: QuantSpec, tensors: dict[str, Tensor], bias: Tensor | None
    ) -> FrozenLinear:
        """Make a frozen layer with the LoRA of its part."""
        size = (part.rows, part.columns)
        return FrozenLinear(spec, tensors, size, bias, self._dtype, self._added_to(part))
