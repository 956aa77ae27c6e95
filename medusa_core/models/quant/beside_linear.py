"""A layer and a product of two thin matrices beside it: y = W x + b + B (A x)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from medusa_core.models.quant.layout import LinearLayout, QuantLinear
from medusa_core.models.quant.linear import make_linear
from medusa_core.models.quant.native_adapter import Up, native_adapter
from medusa_core.models.quant.native_linear import DTYPES, NativeLinear
from medusa_core.system.native.lanes import fits_lanes


class UpLinear(NamedTuple):
    """What brings a few numbers up to some of a layer's outputs.

    Attributes:
        linear: B, its scale in it.
        inner: Which of the numbers that A makes it takes.
        first: The first of the outputs.
        rows: How many they are.
    """

    linear: QuantLinear
    inner: slice
    first: int
    rows: int


class BesideLinear:
    """A layer whose weights stay as they are, and what is added to its outputs.

    Attributes:
        nbytes: Bytes of all.
        layers: All layers that it is made of.
    """

    def __init__(self, base: QuantLinear, down: QuantLinear, ups: Sequence[UpLinear]) -> None:
        """Take them.

        Args:
            base: The layer.
            down: A of all pieces, one below the other. [inner, in]
            ups: Of each piece its B.
        """
        self._base, self._down, self._ups = base, down, tuple(ups)
        self.layers: tuple[QuantLinear, ...] = (base, down, *(up.linear for up in ups))
        self.nbytes = sum(layer.nbytes for layer in self.layers)

    def __call__(self, x: Tensor) -> Tensor:
        return self._add(x, self._base(x))

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        return residual + self(x)  # which may be wider, where a layer is trained

    def layout(self) -> LinearLayout:
        parts = [layer.layout() for layer in self.layers]
        makers = [(part.again, len(part.tensors)) for part in parts]
        places = [(up.inner, up.first, up.rows) for up in self._ups]

        def again(tensors: Sequence[Tensor]) -> BesideLinear:
            layers, start = [], 0
            for make, count in makers:
                layers.append(make(tensors[start : start + count]))
                start += count
            base, down, *ups = layers
            pairs = zip(ups, places, strict=True)
            return BesideLinear(base, down, [UpLinear(linear, *place) for linear, place in pairs])

        kind = f"beside {[part.kind for part in parts]} {places}"
        return LinearLayout(kind, tuple(tensor for part in parts for tensor in part.tensors), again)

    def _add(self, x: Tensor, y: Tensor) -> Tensor:
        inner = self._down(x)
        for up in self._ups:
            outputs = y[:, up.first : up.first + up.rows]
            outputs.add_(up.linear(inner[:, up.inner].contiguous()))
        return y


def adapted_linear(base: QuantLinear, down: Tensor, ups: Sequence[Up]) -> QuantLinear:
    """A layer and what is added to its outputs; compiled where the layer is.

    Args:
        base: The layer.
        down: A of all pieces, one below the other. [inner, in]
        ups: Of each piece its B, of the same dtype.
    """
    is_known = down.dtype in DTYPES and fits_lanes(down.shape[1])
    if isinstance(base, NativeLinear) and is_known:
        return base.with_adapter(native_adapter(down, ups))
    linears = [
        UpLinear(
            make_linear(up.matrix),
            slice(up.start, up.start + up.matrix.shape[1]),
            up.first,
            len(up.matrix),
        )
        for up in ups
    ]
    return BesideLinear(base, make_linear(down), linears)
