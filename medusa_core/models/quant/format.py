"""What a weight format is: its size, what it asks for, and how layers are made of it.

This file and those in `formats` import torch only when weights are at hand: a plan needs sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from medusa_core.models.quant import formats
from medusa_core.system.registry import Registry

if TYPE_CHECKING:
    from torch import Tensor, dtype

    from medusa_core.models.quant.layout import QuantLinear


@dataclass(frozen=True, slots=True)
class Hardware:
    """What a format asks of the machine.

    Attributes:
        device: `cpu` or `cuda`.
        capability: Compute capability of the card, such as (8, 6); (0, 0) without one.
        multiplies_bfloat16: A CPU for which torch has fast products of bfloat16.
        packs: Names of the dtypes whose weights it keeps in an order of its own, and is fast with.
        compiles: A CPU that has the compiled step.
        block_types: Types of blocks that the kernels of a card multiply as they are stored.
    """

    device: str
    capability: tuple[int, int] = (0, 0)
    multiplies_bfloat16: bool = True
    packs: tuple[str, ...] = ()
    compiles: bool = False
    block_types: frozenset[str] = frozenset()


def dense_bytes(bits: int) -> Callable[[int, int, str], int]:
    """Bytes of a matrix whose numbers have so many bits."""

    def nbytes(rows: int, columns: int, device: str) -> int:
        return rows * columns * bits // 8

    return nbytes


# Name of a dtype, and a shape; -1 for a length that nobody knows before.
TensorKind = tuple[str, tuple[int, ...]]


def any_shape(rows: int, columns: int, device: str) -> bool:
    """For formats that take matrices of every shape."""
    return True


@dataclass(frozen=True, slots=True)
class QuantSpec:
    """A registered weight format.

    Attributes:
        name: Its name on the command line.
        label: Its name for people.
        bits: Bits of a weight, with its share of the scales.
        is_dense: Weights stay numbers of the compute dtype, and nothing is lost.
        compiled: A CPU's compiled step multiplies them, where there is one.
        nbytes: Bytes of a matrix of (rows, columns) on a type of device.
        takes: Can it hold a matrix of (rows, columns) there? Others stay dense.
        lack: What the hardware lacks for it, for people; empty if nothing.
        compute: Names of the dtypes that may be computed in with it; empty for all.
        tensors: What `quantize` makes of (rows, columns) in a compute dtype, by name.
        quantize: A matrix as the tensors that are kept on disk. [rows, columns] →
        build: A layer of these tensors, where they are: tensors, rows, bias, compute dtype.
        numbers: The matrix that these tensors stand for, where they are: tensors, rows, columns.
        is_made: `quantize` makes it; else such weights come from files alone.
    """

    name: str
    label: str
    bits: float
    is_dense: bool
    compiled: bool
    nbytes: Callable[[int, int, str], int]
    takes: Callable[[int, int, str], bool]
    lack: Callable[[Hardware], str]
    compute: tuple[str, ...]
    tensors: Callable[[int, int, str], dict[str, TensorKind]]
    quantize: Callable[[Tensor], dict[str, Tensor]]
    build: Callable[[Mapping[str, Tensor], int, Tensor | None, dtype], QuantLinear]
    numbers: Callable[[Mapping[str, Tensor], int, int], Tensor]
    is_made: bool = True


@cache
def quant_registry() -> Registry[QuantSpec]:
    """All weight formats."""
    return Registry(formats, "weight format", QuantSpec)
