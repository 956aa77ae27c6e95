"""bitsandbytes' own functions for CUDA, on kernels that compute in the computer's memory.

The installed module for CUDA is loaded as it is, with its checks of dtypes and shapes and its
choice of kernels. Only the library of kernels below it is another: it takes addresses, too.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import c_char
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from medusa_core.models.quant.quiet_bitsandbytes import bitsandbytes

RunKernel = Callable[[str, Callable[[], Any]], Any]

_DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
_LARGEST = 127
_NESTED_BLOCK = 256


def kernels_for_cuda(run: RunKernel) -> dict[str, Callable[..., Any]]:
    """bitsandbytes' functions for CUDA by the names of their operators.

    Args:
        run: Given each kernel's name and work, to run it.
    """
    registered: dict[str, Callable[..., Any]] = {}

    def register(name: str, device: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def keep(function: Callable[..., Any]) -> Callable[..., Any]:
            registered[name] = function
            return function

        return keep

    ops, extension = bitsandbytes._ops, bitsandbytes.cextension
    with (
        patch.object(ops, "register_kernel", register),
        patch.object(extension, "lib", _Library(run)),
        patch.object(torch._C, "_cuda_getCurrentRawStream", _no_stream, create=True),
    ):
        # Those that every device shares come first, as they give way to a device's own.
        for name in ("default", "cuda"):
            _execute(f"bitsandbytes.backends.{name}.ops")
    return registered


def _execute(name: str) -> None:
    """Execute a private copy of a module."""
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))


def _no_stream(device_index: int) -> None:
    """Emulated kernels run at once, so there is no stream."""


class _Library:
    """The library of kernels.

    Of a kernel only its addresses and sizes are known here, so numbers are read where those say.
    """

    def __init__(self, run: RunKernel) -> None:
        self._run = run
        self._kernels: dict[str, Callable[..., Any]] = {
            "cint8_vector_quant": _round_rows,
            "cigemmlt_32": _multiply_bytes,
            "cdequant_mm_int32_fp16": _scale_products,
        }
        for name, dtype in _DTYPES.items():
            for stem, make in _BY_DTYPE.items():
                self._kernels[stem.format(name)] = make(dtype)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        kernel = self._kernels.get(name)

        def run(*args: Any) -> Any:
            if kernel is None:
                raise NotImplementedError(f"The fake card has no kernel {name}.")
            return self._run(name, lambda: kernel(*args))

        return run


def _numbers(address: int, count: int, dtype: torch.dtype) -> Tensor:
    memory = (c_char * (count * dtype.itemsize)).from_address(address)
    return torch.frombuffer(memory, dtype=dtype, count=count)


def _round_rows(a: int, out: int, stats: int, _: float, rows: int, columns: int, *__: Any) -> None:
    numbers = _numbers(a, rows * columns, torch.float16).view(rows, columns).float()
    largest = numbers.abs().amax(dim=1)
    scaled = numbers * (_LARGEST / largest.clamp(min=1e-20)).unsqueeze(1)
    _numbers(stats, rows, torch.float32).copy_(largest)
    _numbers(out, rows * columns, torch.int8).copy_(scaled.round().to(torch.int8).flatten())


def _multiply_bytes(
    _: Any, inner: int, rows: int, outer: int, weights: int, inputs: int, out: int, *__: Any
) -> int:
    w = _numbers(weights, outer * inner, torch.int8).view(outer, inner)
    x = _numbers(inputs, rows * inner, torch.int8).view(rows, inner)
    _numbers(out, rows * outer, torch.int32).copy_(torch.mm(x.int(), w.int().t()).flatten())
    return 0


def _scale_products(
    a: int, row_stats: int, column_stats: int, out: int, bias: int | None, rows: int, columns: int,
    *_: Any,
) -> None:  # fmt: skip
    products = _numbers(a, rows * columns, torch.int32).view(rows, columns).float()
    by_row = _numbers(row_stats, rows, torch.float32).unsqueeze(1)
    by_column = _numbers(column_stats, columns, torch.float32)
    scaled = products * by_row * by_column / _LARGEST**2
    if bias is not None:
        scaled += _numbers(bias, columns, torch.float16).float()
    _numbers(out, rows * columns, torch.float16).copy_(scaled.flatten())


def _levels() -> Tensor:
    levels: Tensor = bitsandbytes.functional.get_4bit_type("nf4", device="cpu")
    return levels


def _rounder_to_4_bits(dtype: torch.dtype) -> Callable[..., None]:
    def run(_: Any, a: int, largest: int, out: int, blocksize: int, count: int) -> None:
        numbers = _numbers(a, count, dtype).float().view(-1, blocksize)
        tops = numbers.abs().amax(dim=1)
        shares = numbers / torch.where(tops > 0, tops, 1.0).unsqueeze(1)
        levels = _levels()
        nearest = torch.bucketize(shares, (levels[1:] + levels[:-1]) / 2).view(-1, 2)
        _numbers(largest, len(tops), torch.float32).copy_(tops)
        _numbers(out, count // 2, torch.uint8).copy_((nearest[:, 0] << 4 | nearest[:, 1]).byte())

    return run


def _from_4_bits(packed: Tensor, largest: Tensor, blocksize: int) -> Tensor:
    pairs = torch.stack([packed >> 4, packed & 15], dim=1).flatten().long()
    return (_levels()[pairs].view(-1, blocksize) * largest.unsqueeze(1)).flatten()


def _reader_of_4_bits(dtype: torch.dtype) -> Callable[..., None]:
    def run(_: Any, a: int, largest: int, out: int, blocksize: int, count: int, *__: Any) -> None:
        packed = _numbers(a, count // 2, torch.uint8)
        tops = _numbers(largest, count // blocksize, torch.float32)
        _numbers(out, count, dtype).copy_(_from_4_bits(packed, tops, blocksize))

    return run


def _rounder_to_8_bits(dtype: torch.dtype) -> Callable[..., None]:
    def run(code: int, a: int, largest: int, out: int, blocksize: int, count: int) -> None:
        levels, tops = _numbers(code, 256, torch.float32), []
        numbers, rounded = _numbers(a, count, dtype).float(), _numbers(out, count, torch.uint8)
        for start in range(0, count, blocksize):
            some = numbers[start : start + blocksize]
            top = some.abs().max()
            shares = some / top if top > 0 else some
            rounded[start : start + blocksize] = torch.bucketize(
                shares, (levels[1:] + levels[:-1]) / 2
            ).byte()
            tops.append(top)
        _numbers(largest, len(tops), torch.float32).copy_(torch.stack(tops))

    return run


def _from_8_bits(levels: Tensor, rounded: Tensor, largest: Tensor, blocksize: int) -> Tensor:
    wide = largest.repeat_interleave(blocksize)[: len(rounded)]
    return levels[rounded.long()] * wide


def _reader_of_8_bits(dtype: torch.dtype) -> Callable[..., None]:
    def run(code: int, a: int, largest: int, out: int, blocksize: int, count: int, *_: Any) -> None:
        tops = _numbers(largest, -(-count // blocksize), torch.float32)
        levels, rounded = _numbers(code, 256, torch.float32), _numbers(a, count, torch.uint8)
        _numbers(out, count, dtype).copy_(_from_8_bits(levels, rounded, tops, blocksize))

    return run


def _multiplier_of_4_bits(dtype: torch.dtype) -> Callable[..., None]:
    def run(
        a: int, b: int, largest: int, rounded: int | None, code: int | None, offset: int | None,
        out: int, bias: int | None, m: int, n: int, k: int, blocksize: int, *_: Any,
    ) -> None:  # fmt: skip
        blocks = n * k // blocksize
        tops = _numbers(largest, blocks if rounded is None else -(-blocks // 256), torch.float32)
        if rounded is not None and code is not None and offset is not None:
            levels, bytes_ = (
                _numbers(code, 256, torch.float32),
                _numbers(rounded, blocks, torch.uint8),
            )
            tops = _from_8_bits(levels, bytes_, tops, _NESTED_BLOCK)
            tops = tops + _numbers(offset, 1, torch.float32)
        weight = _from_4_bits(_numbers(b, n * k // 2, torch.uint8), tops, blocksize).view(n, k)
        product = _numbers(a, m * k, dtype).view(m, k).float() @ weight.t()
        if bias is not None:
            product += _numbers(bias, n, dtype).float()
        _numbers(out, m * n, dtype).copy_(product.flatten())

    return run


_BY_DTYPE: dict[str, Callable[[torch.dtype], Callable[..., None]]] = {
    "cquantize_blockwise_{}_nf4": _rounder_to_4_bits,
    "cdequantize_blockwise_{}_nf4": _reader_of_4_bits,
    "cquantize_blockwise_{}": _rounder_to_8_bits,
    "cdequantize_blockwise_{}": _reader_of_8_bits,
    "cgemm_4bit_{}": _multiplier_of_4_bits,
}


@contextmanager
def own_globals() -> Iterator[None]:
    """Reset bitsandbytes' cuBLAS handle and table, which must not outlive a card."""
    functional = bitsandbytes.functional
    with (
        patch.object(functional.CUBLAS_Context, "get_context", _no_handle),
        patch.dict(functional.name2qmap, clear=True),
    ):
        yield


def _no_handle(self: object, device: torch.device) -> None:
    """The kernels here need none."""
