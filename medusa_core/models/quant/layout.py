"""The interface of linear layers, and how a layer's tensors are moved to another memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from itertools import islice
from typing import NamedTuple, Protocol, runtime_checkable

from torch import Tensor

Rebuild = Callable[..., "QuantLinear"]


class LinearLayout(NamedTuple):
    """A layer as its tensors and a recipe.

    Attributes:
        kind: Everything but the numbers: layers of one kind differ in their tensors alone. Files
            with offloaded layers contain it, so the wording mustn't change.
        tensors: All tensors of the layer, its bias included.
        rebuild: Makes an equal layer of copies of `tensors`, given as positional arguments. It must
            not refer to the original layer, whose memory is freed.
    """

    kind: str
    tensors: tuple[Tensor, ...]
    rebuild: Rebuild


@runtime_checkable
class QuantLinear(Protocol):
    """y = x Wᵀ + b.

    Attributes:
        nbytes: Bytes of weights and bias.
    """

    @property
    def nbytes(self) -> int: ...

    def __call__(self, x: Tensor) -> Tensor:
        """[n, in] → [n, out]"""

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        """Add the product to a residual, maybe in place. [n, in], [n, out] → [n, out]"""

    def layout(self) -> LinearLayout:
        """Return the tensors, and how to make an equal layer of copies of them."""


class TensorLinear:
    """Base class of layers that their tensors describe; subclasses add `__call__`.

    Attributes:
        nbytes: Bytes of weights and bias.
    """

    def __init__(self, kind: str, rebuild: Rebuild, *tensors: Tensor | None) -> None:
        """Remember the layout.

        Args:
            kind: As in `LinearLayout`.
            rebuild: As in `LinearLayout`.
            tensors: The arguments of `rebuild`; the last one, a bias, may be None.
        """
        self._layout = LinearLayout(kind, tuple(t for t in tensors if t is not None), rebuild)
        self.nbytes = sum(int(tensor.nbytes) for tensor in self._layout.tensors)

    def __call__(self, x: Tensor) -> Tensor:
        """[n, in] → [n, out]"""
        raise NotImplementedError

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        """Add the product to a residual. [n, in], [n, out] → [n, out]"""
        return self(x).add_(residual)

    def layout(self) -> LinearLayout:
        """Return the layout that was given when the layer was made."""
        return self._layout


def combined_layout(
    name: Callable[[list[str]], str],
    layers: Sequence[QuantLinear],
    combine: Callable[..., QuantLinear],
    bias: Tensor | None = None,
) -> LinearLayout:
    """Return the layout of a layer that consists of others.

    Args:
        name: Makes the combination's kind from those of its layers.
        combine: Makes the combination of a list of layers and, if there is one, the bias.
        bias: Of the combination, [out], or None.
    """
    layouts = [layer.layout() for layer in layers]
    recipes = [(one.rebuild, len(one.tensors)) for one in layouts]
    tensors = [tensor for one in layouts for tensor in one.tensors]

    def rebuild(*copies: Tensor) -> QuantLinear:
        """Rebuild every layer from its share of the copied tensors, then combine them."""
        left = iter(copies)
        return combine([make(*islice(left, count)) for make, count in recipes], *left)

    bias_tensors = [] if bias is None else [bias]
    return LinearLayout(name([one.kind for one in layouts]), (*tensors, *bias_tensors), rebuild)


def linears_of(part: object) -> Iterator[QuantLinear]:
    """Yield the linear layers of a record, or of several, in the order of their fields."""
    if isinstance(part, list | tuple):
        for one in part:
            yield from linears_of(one)
    elif is_dataclass(part):
        for field in fields(part):
            if field.name != "spec":
                yield from linears_of(getattr(part, field.name))
    elif isinstance(part, QuantLinear):
        yield part
