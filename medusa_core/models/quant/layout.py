"""The numbers of a linear layer apart from where they lie: so that they can lie elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from torch import Tensor

Again = Callable[[Sequence[Tensor]], "QuantLinear"]


class LinearLayout(NamedTuple):
    """A layer taken apart.

    Attributes:
        kind: Names everything but the numbers: layers of one kind differ in those alone.
        tensors: All numbers that it holds, its bias included.
        again: Makes an equal layer of such tensors elsewhere; it holds none of this layer's memory.
    """

    kind: str
    tensors: tuple[Tensor, ...]
    again: Again


class QuantLinear(Protocol):
    """y = x Wᵀ + b.

    Attributes:
        nbytes: Bytes that the layer holds, its bias included.
    """

    @property
    def nbytes(self) -> int: ...

    def __call__(self, x: Tensor) -> Tensor:
        """[n, in] → [n, out]"""

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        """[n, in], [n, out] → residual + x Wᵀ + b: [n, out]"""

    def layout(self) -> LinearLayout:
        """Its numbers, and how to make an equal layer of them elsewhere."""


def with_bias(tensors: Sequence[Tensor], bias: Tensor | None) -> tuple[Tensor, ...]:
    """Tensors, and a bias behind them if there is one."""
    return (*tensors, *(() if bias is None else (bias,)))


def bias_of(tensors: Sequence[Tensor], count: int) -> Tensor | None:
    """What stands behind so many tensors: a bias, or nothing."""
    return tensors[count] if len(tensors) > count else None
