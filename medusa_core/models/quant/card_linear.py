"""Layers of weights in blocks on a card, as files store them, multiplied by our own kernels."""

from __future__ import annotations

import logging
from functools import cache, partial

import torch
import torch.nn.functional as F
from torch import Tensor

from medusa_core.models.quant.block_types import BlockType, block_type
from medusa_core.models.quant.layout import TensorLinear
from medusa_core.models.quant.random_blocks import random_blocks
from medusa_core.system import cuda
from medusa_core.system.native.cuda import BLOCK_TYPES
from medusa_core.system.native.cuda.kernels import DTYPES, Kernels, load_kernels

log = logging.getLogger(__name__)

_MMA_ROWS = (8, 16, 32, 64)  # rows that a kernel of rows.cu is compiled for
_DOT_ROWS = (1, 4, 8)
_MOST_DOT_ROWS = 32  # beyond, unpacking the weights once is cheaper than four products
_UNPACKED = 1 << 24  # weights that prefill unpacks at a time
_MOST_ERROR = 0.02  # relative; activations in int8 lose 0.6 %


class CardLinear(TensorLinear):
    """y = x Wᵀ + b with W in blocks; up to 64 rows in one pass over the stored weights.

    The order of summation is the same for every number of rows, so that verifying drafts gives a
    row the bits that it has alone. More rows (prefill) unpack the weights and use cuBLAS.

    Attributes:
        nbytes: Bytes that the layer holds, its bias included.
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
        self._columns = kind.columns(stored)
        self._has_tensor_cores = cuda.has_tensor_cores(stored.device)

    def __call__(self, x: Tensor) -> Tensor:
        return self._product(x, None)

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        """Add the product to a residual. [n, in], [n, out] → [n, out]"""
        return self._product(x, residual.contiguous())

    def _product(self, x: Tensor, residual: Tensor | None) -> Tensor:
        """Multiply rows. [n, in] → [n, out]"""
        x = x.contiguous()
        if self._has_tensor_cores and len(x) <= _MMA_ROWS[-1]:
            y = x.new_empty(len(x), len(self._stored))
            self._by_tensor_cores(x, residual, y)
            return y
        if not self._has_tensor_cores and len(x) <= _MOST_DOT_ROWS:
            y = x.new_empty(len(x), len(self._stored))
            for first in range(0, len(x), _DOT_ROWS[-1]):
                rows = slice(first, first + _DOT_ROWS[-1])
                self._by_bytes(x[rows], None if residual is None else residual[rows], y[rows])
            return y
        y = self._unpacked_product(x)
        return y if residual is None else y.add_(residual)

    def _by_tensor_cores(self, x: Tensor, residual: Tensor | None, y: Tensor) -> None:
        """Multiply rows in float16 on tensor cores; scales keep large inputs in range."""
        num_rows, outputs = y.shape
        halves = torch.empty_like(x, dtype=torch.float16)
        scales = x.new_empty(num_rows, dtype=torch.float32)
        dtype = DTYPES[x.dtype]
        self._kernels.launch("prepare_rows", num_rows, 256, x, dtype, halves, scales, self._columns)
        rows = next(count for count in _MMA_ROWS if count >= num_rows)
        self._kernels.launch(
            f"rows_mma_{self._kind.name}_{rows}", -(-outputs // 16), 128,
            self._stored, halves, scales, y, dtype, self._bias, residual, 0,
            outputs, outputs, self._columns, num_rows,
        )  # fmt: skip

    def _by_bytes(self, x: Tensor, residual: Tensor | None, y: Tensor) -> None:
        """Multiply rows quantized to int8 by integer dot products, on GPUs without tensor cores."""
        num_rows, outputs = y.shape
        num_blocks = num_rows * self._columns // 32
        codes = torch.empty_like(x, dtype=torch.int8)
        scales = x.new_empty(num_blocks, dtype=torch.float32)
        dtype = DTYPES[x.dtype]
        self._kernels.launch(
            "quantize_rows", -(-num_blocks // 4), 128, x, dtype, codes, scales, num_blocks
        )
        rows = next(count for count in _DOT_ROWS if count >= num_rows)
        self._kernels.launch(
            f"rows_dot_{self._kind.name}_{rows}", -(-outputs // 4), 128,
            self._stored, codes, scales, y, dtype, self._bias, residual, 0,
            outputs, outputs, self._columns, num_rows,
        )  # fmt: skip

    def _unpacked_product(self, x: Tensor) -> Tensor:
        """Dequantize a part of the weights at a time and multiply by cuBLAS, for many rows."""
        step = max(1, _UNPACKED // self._columns)
        parts = [
            F.linear(x, self.numbers(rows, x.dtype)) for rows in torch.split(self._stored, step)
        ]
        y = parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)
        return y if self._bias is None else y.add_(self._bias)

    def numbers(self, stored: Tensor, dtype: torch.dtype) -> Tensor:
        """Unpack stored rows. uint8 [rows, bytes of a row] → [rows, in]"""
        weights = torch.empty(len(stored), self._columns, dtype=dtype, device=stored.device)
        self._kernels.launch(
            f"dequantize_{self._kind.name}", -(-weights.numel() // (8 * 128)), 128,
            stored, weights, DTYPES[dtype], len(stored), self._columns,
        )  # fmt: skip
        return weights


def card_linear(kind: BlockType, stored: Tensor, bias: Tensor | None) -> CardLinear | None:
    """Return a layer of our kernels; None where the weights aren't on a card that has them."""
    if stored.device.type != "cuda" or kind.name not in working_types(stored.device):
        return None
    kernels = load_kernels(stored.device)
    return None if kernels is None else CardLinear(kernels, kind, stored, bias)


@cache
def working_types(device: torch.device) -> frozenset[str]:
    """Return the types of blocks that a card's kernels multiply correctly.

    Every kernel multiplies random blocks once; its results are compared with the CPU's. Types whose
    kernels are wrong, because of a driver or a compiler, are left to torch and bitsandbytes.
    """
    kernels = load_kernels(device)
    if kernels is None:
        return frozenset()
    working = {name for name in BLOCK_TYPES if _is_correct(kernels, block_type(name), device)}
    for name in sorted(BLOCK_TYPES - working):
        log.warning("the kernels for %s are wrong on %s: not used", name, cuda.name(device))
    return frozenset(working)


def _is_correct(kernels: Kernels, kind: BlockType, device: torch.device) -> bool:
    """Compare the kernels' results for random weights with those in torch."""
    outputs, columns = 20, 1280  # not whole blocks of rows, nor four groups of columns
    blocks = random_blocks(kind.name, outputs, columns)
    weights = kind.dequantize(blocks)
    layer = CardLinear(kernels, kind, blocks.to(device), None)
    unpacked = layer.numbers(blocks.to(device), torch.float32).cpu()
    if not torch.equal(unpacked, weights):
        return False
    most = _MMA_ROWS[-1] if cuda.has_tensor_cores(device) else _MOST_DOT_ROWS
    x = torch.randn(most, columns, generator=torch.Generator().manual_seed(1))
    expected = x @ weights.t()
    first: Tensor | None = None
    for count in sorted({*_DOT_ROWS, *_MMA_ROWS}):
        if count > most:
            break
        torch.full((most, outputs), torch.nan, device=device)  # what isn't written stays NaN
        product = layer(x[:count].to(device)).cpu()
        first = product[0] if first is None else first
        error = (product - expected[:count]).norm() / expected[:count].norm()
        # A row's bits must not depend on the rows beside it.
        if not error < _MOST_ERROR or not torch.equal(product[0], first):
            return False
    return True
