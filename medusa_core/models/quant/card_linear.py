"""Layers of weights in blocks on a card, as files store them, multiplied by our own kernels."""

from __future__ import annotations

from functools import cache, partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from medusa_core.models.quant.block_types import BlockType, block_type
from medusa_core.models.quant.layout import TensorLinear
from medusa_core.models.quant.random_blocks import random_blocks
from medusa_core.system import cuda
from medusa_core.system.native.cuda import BLOCK_TYPES
from medusa_core.system.native.cuda.kernels import (
    DTYPES,
    PREPARED,
    QUANTIZED,
    Kernels,
    load_kernels,
    report_wrong,
)

MMA_ROWS = (8, 16, 32, 64)  # rows that a kernel of rows.cu is compiled for
_DOT_ROWS = (1, 4, 8)
_MOST_DOT_ROWS = 32  # beyond, unpacking the weights once is cheaper than four products
_UNPACKED = 1 << 24  # weights that prefill unpacks at a time
_MOST_ERROR = 0.02  # relative; activations in int8 lose 0.6 %
_QUANTIZED_OUTPUTS = 32  # that a block of rows_dot quantizes together


class LaunchConfig(NamedTuple):
    """Launch configuration of a quantized matmul kernel; it determines the order of summation.

    Attributes:
        warps: Warps per thread block, at most 8.
        split: Warps that share an output, on cards without tensor cores.
    """

    warps: int = 4
    split: int = 1


# Launches among which tuning chooses; the first are the defaults.
MMA_LAUNCHES = (LaunchConfig(4), LaunchConfig(2), LaunchConfig(8))
DOT_LAUNCHES = (LaunchConfig(4), LaunchConfig(8), LaunchConfig(4, 2), LaunchConfig(8, 4))


class PreparedRows(NamedTuple):
    """Activations as the kernels multiply them.

    Attributes:
        numbers: float16 in the order of device.cuh, or int8 on a card without tensor cores.
            [n, in]
        scales: Of each row, or of each 32 numbers of it. float32 [n] or [n, in / 32]
    """

    numbers: Tensor
    scales: Tensor

    @classmethod
    def empty(cls, like: Tensor, has_tensor_cores: bool) -> PreparedRows:
        """Allocate room for rows. [n, in]"""
        if has_tensor_cores:
            scales = like.new_empty(len(like), dtype=torch.float32)
            return cls(torch.empty_like(like, dtype=torch.float16), scales)
        scales = like.new_empty(len(like), like.shape[1] // 32, dtype=torch.float32)
        return cls(torch.empty_like(like, dtype=torch.int8), scales)

    @classmethod
    def poisoned(cls, like: Tensor) -> PreparedRows:
        """Like `empty`, with numbers that no kernel writes, so that a check notices omissions."""
        rows = cls.empty(like, cuda.has_tensor_cores(like.device))
        rows.numbers.fill_(torch.nan if rows.numbers.is_floating_point() else 119)
        rows.scales.fill_(torch.nan)
        return rows


class CardLinear(TensorLinear):
    """y = x Wᵀ + b with block-quantized W; up to 64 rows in one pass over the weights.

    The order of summation is the same for every number of rows, so that verifying drafts gives a
    row the bits that it has alone. More rows (prefill) unpack the weights and use cuBLAS.

    Attributes:
        nbytes: Bytes that the layer holds, its bias included.
        outputs: Number of outputs.
        columns: Number of inputs.
        launch: How its kernels are launched, for every number of rows.
    """

    def __init__(
        self, kernels: Kernels, kind: BlockType, stored: Tensor, bias: Tensor | None = None
    ) -> None:
        """Take stored rows.

        Args:
            kernels: Kernels of the GPU.
            kind: Block type.
            stored: uint8 [out, bytes of a row], on the card.
            bias: [out], or None.
        """
        self._kernels = kernels
        self._kind = kind
        self._stored = stored.contiguous()
        self._bias = None if bias is None else bias.float().contiguous()
        rebuild = partial(CardLinear, kernels, kind)
        super().__init__(f"blocks {kind.name} on a card", rebuild, self._stored, self._bias)
        self.outputs, self.columns = len(stored), kind.columns(stored)
        self._has_tensor_cores = cuda.has_tensor_cores(stored.device)
        self.launch = self.launches[0]

    @property
    def launches(self) -> tuple[LaunchConfig, ...]:
        """Configurations that its kernels can be launched with; the first is the default."""
        return MMA_LAUNCHES if self._has_tensor_cores else DOT_LAUNCHES

    @property
    def measured_rows(self) -> tuple[int, int]:
        """Numbers of rows by which launches are chosen: plain decoding, and a tree."""
        return (1, MMA_ROWS[1]) if self._has_tensor_cores else (1, _DOT_ROWS[-1])

    def is_correct_with(self, launch: LaunchConfig) -> bool:
        """Whether the kernels of its type are correct for its columns, launched like this."""
        return _works(self._kind.name, self.columns, self._stored.device, launch)

    @property
    def shape(self) -> str:
        """Block type, outputs and inputs, for people and as a key."""
        return f"{self._kind.name} {self.outputs} x {self.columns}"

    def __call__(self, x: Tensor) -> Tensor:
        return self._product(x, None)

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        """Add the product to a residual. [n, in], [n, out] → [n, out]"""
        return self._product(x, residual.contiguous())

    def _product(self, x: Tensor, residual: Tensor | None) -> Tensor:
        """Multiply rows. [n, in] → [n, out]"""
        if len(x) <= (MMA_ROWS[-1] if self._has_tensor_cores else _MOST_DOT_ROWS):
            y = x.new_empty(len(x), self.outputs)
            self.multiply(self.prepare(x.contiguous()), y, residual)
            return y
        y = self._unpacked_product(x)
        return y if residual is None else y.add_(residual)

    def prepare(self, x: Tensor, rows: PreparedRows | None = None) -> PreparedRows:
        """Convert rows to what the kernels multiply, by default in new memory. [n, in]"""
        rows = PreparedRows.empty(x, self._has_tensor_cores) if rows is None else rows
        dtype = DTYPES[x.dtype]
        if self._has_tensor_cores:
            self._kernels.launch(
                "prepare_rows", len(x), 256, x, dtype, rows.numbers, rows.scales, self.columns
            )
        else:
            num_blocks = x.numel() // 32
            self._kernels.launch(
                "quantize_rows", -(-num_blocks // 4), 128,
                x, dtype, rows.numbers, rows.scales, num_blocks,
            )  # fmt: skip
        return rows

    def multiply(
        self,
        rows: PreparedRows,
        y: Tensor | PreparedRows,
        residual: Tensor | None = None,
        *,
        bias: Tensor | None = None,
        activation: int = 0,
    ) -> None:
        """Multiply prepared rows.

        Args:
            rows: Up to 64 rows.
            y: Receives the products; it may be `residual`. As prepared rows of another product it
                receives an activation, on cards with tensor cores by given scales. [n, out], or
                with an activation half of that
            residual: What is added to the products, with the strides of `y`.
            bias: [out], float32; None for the layer's own.
            activation: `ACTIVATIONS` of gate and up, which are this layer's outputs; 0 for none.
        """
        outputs, count = self.outputs // 2 if activation else self.outputs, len(rows.numbers)
        sizes = MMA_ROWS if self._has_tensor_cores else _DOT_ROWS
        compiled = next((size for size in sizes if size >= count), sizes[-1])
        name = f"{self._kind.name}_{compiled}"
        warps, split = self.launch
        if isinstance(y, PreparedRows):
            (numbers, scales), dtype = y, PREPARED if self._has_tensor_cores else QUANTIZED
        else:
            numbers, scales, dtype = y, None, DTYPES[y.dtype]
        arguments = (
            *(self._stored, *rows, numbers, dtype, self._bias if bias is None else bias, residual),
            *(scales, activation, outputs, numbers.stride(0), self.columns, count),
        )
        if self._has_tensor_cores:
            grid = -(-outputs // (8 if activation else 16))
            self._kernels.launch(f"rows_mma_{name}", grid, 32 * warps, *arguments)
        else:
            per_block = _QUANTIZED_OUTPUTS if dtype == QUANTIZED else warps // split
            grid = -(-outputs // per_block) * -(-count // compiled)
            self._kernels.launch(f"rows_dot_{name}", grid, 32 * warps, *arguments, split)

    def row_norms(self) -> Tensor:
        """Return the Euclidean norm of every weight row. [out], float32"""
        step = max(1, _UNPACKED // self.columns)
        parts = [
            torch.linalg.vector_norm(self.numbers(rows, torch.float32), dim=1)
            for rows in torch.split(self._stored, step)
        ]
        return torch.cat(parts)

    def largest_bias(self, bias: Tensor | None = None) -> Tensor:
        """Return the largest absolute value of a bias, by default the layer's own. [], float32"""
        bias = self._bias if bias is None else bias
        return self._stored.new_zeros((), dtype=torch.float32) if bias is None else bias.abs().max()

    def _unpacked_product(self, x: Tensor) -> Tensor:
        """Dequantize a part of the weights at a time and multiply by cuBLAS, for many rows."""
        step = max(1, _UNPACKED // self.columns)
        parts = [
            F.linear(x, self.numbers(rows, x.dtype)) for rows in torch.split(self._stored, step)
        ]
        y = parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)
        return y if self._bias is None else y.add_(self._bias)

    def numbers(self, stored: Tensor, dtype: torch.dtype) -> Tensor:
        """Unpack stored rows. uint8 [rows, bytes of a row] → [rows, in]"""
        weights = torch.empty(len(stored), self.columns, dtype=dtype, device=stored.device)
        self.unpack(stored, weights)
        return weights

    def unpack(self, stored: Tensor, weights: Tensor) -> None:
        """Unpack stored rows into a tensor. uint8 [rows, bytes of a row], [rows, in]"""
        self._kernels.launch(
            f"dequantize_{self._kind.name}", -(-weights.numel() // (8 * 128)), 128,
            stored, weights, DTYPES[weights.dtype], len(stored), self.columns,
        )  # fmt: skip


def card_linear(kind: BlockType, stored: Tensor, bias: Tensor | None) -> CardLinear | None:
    """Return a layer of our kernels; None where the weights aren't on a card that has them."""
    if stored.device.type != "cuda" or kind.name not in working_types(stored.device):
        return None
    kernels = load_kernels(stored.device)
    if kernels is None or not _works(kind.name, kind.columns(stored), stored.device):
        return None
    return CardLinear(kernels, kind, stored, bias)


@cache
def working_types(device: torch.device) -> frozenset[str]:
    """Return the types of blocks that a card's kernels multiply correctly.

    Every kernel multiplies random blocks once; its results are compared with the CPU's. Types whose
    kernels are wrong, because of a driver or a compiler, are left to torch and bitsandbytes.
    """
    if load_kernels(device) is None:
        return frozenset()
    # Neither whole groups of columns for all warps, nor whole groups at all.
    columns = 1280
    return frozenset(name for name in sorted(BLOCK_TYPES) if _works(name, columns, device))


@cache
def _works(
    name: str, columns: int, device: torch.device, launch: LaunchConfig | None = None
) -> bool:
    """Whether a type's kernels are correct for rows of `columns` columns."""
    kernels = load_kernels(device)
    if kernels is None:
        return False
    works = _is_correct(kernels, block_type(name), columns, device, launch)
    if not works:
        how = f", {launch.warps} warps" if launch else ""
        report_wrong(device, f"products with {name} weights of {columns:,} columns{how}")
    return works


def _is_correct(
    kernels: Kernels,
    kind: BlockType,
    columns: int,
    device: torch.device,
    launch: LaunchConfig | None = None,
) -> bool:
    """Compare the kernels' results for random weights with those in torch."""
    outputs = 20  # not whole blocks of rows
    blocks = random_blocks(kind.name, outputs, columns)
    weights = kind.dequantize(blocks)
    layer = CardLinear(kernels, kind, blocks.to(device), None)
    layer.launch = layer.launch if launch is None else launch
    unpacked = torch.full((outputs, columns), torch.nan, device=device)
    layer.unpack(blocks.to(device), unpacked)
    if not torch.equal(unpacked.cpu(), weights):
        return False
    has_tensor_cores = cuda.has_tensor_cores(device)
    most = MMA_ROWS[-1] if has_tensor_cores else _MOST_DOT_ROWS
    x = torch.randn(most, columns, generator=torch.Generator().manual_seed(1))
    expected = x @ weights.t()
    gate, up = expected.chunk(2, dim=1)
    active = F.silu(gate) * up
    first: Tensor | None = None
    for count in sorted({*_DOT_ROWS, *MMA_ROWS}):
        if count > most:
            break
        rows = layer.prepare(x[:count].to(device), PreparedRows.poisoned(x[:count].to(device)))
        products = torch.full((count, outputs), torch.nan, device=device)
        layer.multiply(rows, products)
        product = products.cpu()
        activated = torch.full((count, outputs // 2), torch.nan, device=device)
        layer.multiply(rows, activated, activation=1)
        first = product[0] if first is None else first
        # A row's bits must not depend on the rows beside it.
        if not _is_near(product, expected[:count]) or not torch.equal(product[0], first):
            return False
        if not _is_near(activated.cpu(), active[:count]):
            return False
    return True


def _is_near(found: Tensor, expected: Tensor) -> bool:
    return bool((found - expected).norm() / expected.norm() < _MOST_ERROR)
