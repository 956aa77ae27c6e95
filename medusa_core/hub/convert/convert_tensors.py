"""Write safetensors files piece by piece. Runs in the converter's process only."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor

DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
_PIECE_BYTES = 16 << 20


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], written: int, report: Callable[[int, int], None]
) -> int:
    """Write a safetensors file; tensors that share memory are written separately.

    Args:
        path: File to write.
        tensors: Tensors by name.
        written: Bytes of tensors written before.
        report: Called with bytes written and bytes to write, with those before; may end the
            process.

    Returns:
        Bytes of tensors written so far.
    """
    # Wide dtypes first, which aligns every tensor.
    order = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name))
    total = written + sum(tensor.nbytes for tensor in tensors.values())
    with path.open("xb") as file:
        file.write(_header(order, tensors))
        for name in order:
            data = _bytes(tensors[name])
            for start in range(0, len(data), _PIECE_BYTES):
                written += file.write(data[start : start + _PIECE_BYTES])
                report(written, total)
        file.flush()
        os.fsync(file.fileno())
    return written


def _header(order: list[str], tensors: Mapping[str, Tensor]) -> bytes:
    """Return the header of a safetensors file."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name in order:
        tensor = tensors[name]
        start, end = end, end + tensor.nbytes
        header[name] = {
            "dtype": DTYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(header, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _bytes(tensor: Tensor) -> memoryview:
    """Return a tensor's memory as bytes."""
    if not tensor.nbytes:
        return memoryview(b"")
    flat = tensor.contiguous().reshape(-1).view(torch.uint8)
    return flat.numpy().data
