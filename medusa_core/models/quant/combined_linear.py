"""Layers that consist of others: fused projections of several formats, and unmerged LoRAs."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from medusa_core.models.quant.layout import LinearLayout, QuantLinear, combined_layout
from medusa_core.models.quant.linear import make_linear
from medusa_core.models.quant.native_adapter import Up, native_adapter
from medusa_core.models.quant.native_linear import DTYPES, NativeLinear, join_native
from medusa_core.system.native.constants import fits_lanes


class CombinedLinear:
    """Base class of layers that consist of others; subclasses add `__call__` and `layout`.

    Attributes:
        bias: What is added to all outputs, or None. [out]
        nbytes: Bytes of all of them.
    """

    def __init__(self, layers: Sequence[QuantLinear], bias: Tensor | None = None) -> None:
        self.layers = tuple(layers)
        self.bias = bias
        self.nbytes = sum(layer.nbytes for layer in layers) + (0 if bias is None else bias.nbytes)

    def __call__(self, x: Tensor) -> Tensor:
        """[n, in] → [n, out]"""
        raise NotImplementedError

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        """Add the output to a residual. [n, in], [n, out] → [n, out]"""
        return self(x).add_(residual)


class JoinedLinear(CombinedLinear):
    """Layers of the same inputs, their outputs concatenated; the bias is that of all outputs."""

    def __call__(self, x: Tensor) -> Tensor:
        y = torch.cat([layer(x) for layer in self.layers], dim=-1)
        return y if self.bias is None else y.add_(self.bias)

    def layout(self) -> LinearLayout:
        """Return the tensors of all layers and a recipe to rebuild the joined layer."""
        return combined_layout(
            lambda kinds: f"joined {' + '.join(kinds)}", self.layers, JoinedLinear, self.bias
        )


def join_linears(layers: Sequence[QuantLinear], bias: Tensor | None) -> QuantLinear:
    """Join layers of the same inputs and without biases; compiled if all of them are."""
    compiled = [layer for layer in layers if isinstance(layer, NativeLinear)]
    if len(compiled) == len(layers):
        return join_native(compiled, bias)
    return JoinedLinear(layers, bias)


class AdaptedLinear(CombinedLinear):
    """A layer with an unmerged LoRA: y = x Wᵀ + b + B (A x)."""

    def __init__(
        self, layers: Sequence[QuantLinear], targets: Sequence[tuple[slice, int, int]]
    ) -> None:
        """Combine layers.

        Args:
            layers: The base layer, A of all pieces (concatenated), and each piece's B, scaled.
            targets: For each B, the range of A's outputs that it reads, and the first and the
                number of the layer's outputs that it adds to.
        """
        super().__init__(layers)
        self._targets = list(targets)

    def __call__(self, x: Tensor) -> Tensor:
        base, down, *ups = self.layers
        y, inner = base(x), down(x)
        for up, (read, first, count) in zip(ups, self._targets, strict=True):
            y[:, first : first + count].add_(up(inner[:, read].contiguous()))
        return y

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        """Add the output to a residual. [n, in], [n, out] → [n, out]"""
        return residual + self(x)  # not in place: in training the sum may have a wider dtype

    def layout(self) -> LinearLayout:
        """Return the tensors of layer and LoRA and a recipe to rebuild the adapted layer."""
        targets = self._targets
        return combined_layout(
            lambda kinds: f"beside {kinds} {targets}",
            self.layers,
            lambda layers: AdaptedLinear(layers, targets),
        )


def adapted_linear(base: QuantLinear, down: Tensor, ups: Sequence[Up]) -> QuantLinear:
    """Add a LoRA to a layer; compiled if the layer is.

    Args:
        down: A of all pieces, concatenated. [inner, in]
        ups: B of each piece, in the dtype of `down`.
    """
    if isinstance(base, NativeLinear) and down.dtype in DTYPES and fits_lanes(down.shape[1]):
        return base.with_adapter(native_adapter(down, ups))
    targets = [
        (slice(up.start, up.start + up.matrix.shape[1]), up.first, len(up.matrix)) for up in ups
    ]
    return AdaptedLinear(
        [base, make_linear(down), *(make_linear(up.matrix) for up in ups)], targets
    )
