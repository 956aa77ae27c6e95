"""Weight formats: their sizes, hardware requirements, and how layers are made in them.

This module and those in `formats` import torch only when there are weights: a memory plan needs no
more than sizes.
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
    """Properties of a device on which weight formats depend.

    Attributes:
        device: `cpu` or `cuda`.
        capability: Compute capability of the GPU, such as (8, 6); (0, 0) without one.
        multiplies_bfloat16: Whether torch has fast bfloat16 products on this CPU.
        packs: Names of the dtypes whose weights are reordered for fast products.
        compiles: Whether this CPU has the compiled step.
        block_types: Block types that our GPU kernels multiply.
        has_tensor_cores: False for GPUs of Turing that have none, such as the GTX 16.
    """

    device: str
    capability: tuple[int, int] = (0, 0)
    multiplies_bfloat16: bool = True
    packs: tuple[str, ...] = ()
    compiles: bool = False
    block_types: frozenset[str] = frozenset()
    has_tensor_cores: bool = True

    @property
    def multiplies_halves(self) -> bool:
        """Whether a card computes faster in 16 bits than in float32."""
        return self.capability >= (7, 0) and self.has_tensor_cores


# Name of a dtype, and a shape; -1 is a length that isn't known in advance.
TensorKind = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class QuantSpec:
    """A registered weight format.

    Attributes:
        name: Name on the command line.
        label: Name in the window.
        bits: Bits per weight, scales included.
        is_dense: Whether weights are numbers of the compute dtype.
        compiled: Whether the compiled step of a CPU can multiply them.
        nbytes: Bytes of a matrix of (rows, columns) on a type of device.
        supports: Whether a matrix of (rows, columns) can be stored there; others stay dense.
        limitation: What the hardware lacks for it, as a sentence; empty if nothing.
        compute: Names of the compute dtypes that it allows; empty for all.
        tensors: Names and kinds of the tensors of (rows, columns), for a compute dtype.
        quantize: Converts a matrix [rows, columns] to these tensors, which are also kept on disk.
        build: Makes a layer of the tensors, on their device: tensors, rows, bias, compute dtype.
        dequantize: Restores a matrix from the tensors, on their device: tensors, rows, columns.
        can_quantize: Whether `quantize` works; else such weights come from files alone.
    """

    name: str
    label: str
    bits: float
    is_dense: bool
    compiled: bool
    nbytes: Callable[[int, int, str], int]
    supports: Callable[[int, int, str], bool]
    limitation: Callable[[Hardware], str]
    compute: tuple[str, ...]
    tensors: Callable[[int, int, str], dict[str, TensorKind]]
    quantize: Callable[[Tensor], dict[str, Tensor]]
    build: Callable[[Mapping[str, Tensor], int, Tensor | None, dtype], QuantLinear]
    dequantize: Callable[[Mapping[str, Tensor], int, int], Tensor]
    can_quantize: bool = True


@cache
def quant_registry() -> Registry[QuantSpec]:
    """Return the weight formats that can be chosen for any model."""
    return Registry(formats, "weight format", QuantSpec)
