"""Layers of the same inputs as one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from medusa_core.models.quant.layout import (
    Again,
    LinearLayout,
    QuantLinear,
    bias_of,
    with_bias,
)
from medusa_core.models.quant.native_linear import (
    NativeLinear,
    joined,
)


class JoinedLinear:
    """The outputs of some layers, one behind the other."""

    def __init__(self, layers: Sequence[QuantLinear], bias: Tensor | None) -> None:
        """Take layers without biases, and the bias of all. [out]"""
        self._layers = layers
        self._bias = bias
        self.nbytes = sum(layer.nbytes for layer in layers) + (0 if bias is None else bias.nbytes)

    def __call__(self, x: Tensor) -> Tensor:
        y = torch.cat([layer(x) for layer in self._layers], dim=-1)
        return y if self._bias is None else y.add_(self._bias)

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        return self(x).add_(residual)

    def layout(self) -> LinearLayout:
        pieces = [layer.layout() for layer in self._layers]
        tensors = [tensor for piece in pieces for tensor in piece.tensors]
        made = [(piece.again, len(piece.tensors)) for piece in pieces]
        kind = "joined " + " + ".join(piece.kind for piece in pieces)
        return LinearLayout(kind, with_bias(tensors, self._bias), partial(_again, made))


def _again(made: Sequence[tuple[Again, int]], tensors: Sequence[Tensor]) -> JoinedLinear:
    layers, first = [], 0
    for again, count in made:
        layers.append(again(tensors[first : first + count]))
        first += count
    return JoinedLinear(layers, bias_of(tensors, first))


def join(layers: Sequence[QuantLinear], bias: Tensor | None) -> QuantLinear:
    """Layers of the same inputs and without biases as one, compiled where all of them are."""
    compiled = [layer for layer in layers if isinstance(layer, NativeLinear)]
    return joined(compiled, bias) if len(compiled) == len(layers) else JoinedLinear(layers, bias)
