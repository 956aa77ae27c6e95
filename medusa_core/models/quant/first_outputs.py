"""The first outputs of a linear layer as a layer of their own, over the same memory."""

from __future__ import annotations

from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.linear import DenseLinear
from medusa_core.models.quant.native_linear import NativeLinear


def first_outputs(linear: QuantLinear, count: int) -> QuantLinear | None:
    """A layer of the first outputs alone; None where layers of this kind can't be cut.

    Args:
        linear: The whole, which must live as long.
        count: How many outputs; a multiple of 32.
    """
    if isinstance(linear, NativeLinear | DenseLinear):
        return linear.first(count)
    return None


def beginning_of(linear: QuantLinear, count: int, cuts: dict[int, QuantLinear]) -> QuantLinear:
    """A layer of the first outputs, or the whole where it can't be cut.

    Args:
        linear: The whole, which must live as long.
        count: How many outputs; a multiple of 32. 0 for all.
        cuts: What was cut of it before.
    """
    if not count:
        return linear
    if count not in cuts:
        cuts[count] = first_outputs(linear, count) or linear
    return cuts[count]
