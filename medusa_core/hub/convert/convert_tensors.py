"""Tensors from a pickle to safetensors, piece by piece. Runs in the converter's process only."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from medusa_core.errors import ConversionError
from medusa_core.hub.convert.pickles import inspect_pickle
from medusa_core.hub.convert.pickles_storages import check_storages

_DTYPES = {
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


def load_tensors(path: Path, most_bytes: int) -> dict[str, Tensor]:
    """The tensors of a pickle, mapped from the file.

    Args:
        path: A file that torch saved.
        most_bytes: Most bytes of all tensors.

    Raises:
        ConversionError: The file is refused, or holds something besides tensors.
    """
    inspect_pickle(path)
    check_storages(path)
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except MemoryError as error:
        raise _too_large(path) from error
    # torch raises nearly anything for a damaged file, and nothing of it is ours.
    except Exception as error:
        raise ConversionError(
            f"{path.name} can't be read: {str(error).splitlines()[0][:200] or type(error)}.",
            "Download the file again.",
        ) from error
    if not isinstance(loaded, Mapping):
        raise ConversionError(f"{path.name} holds no tensors by name.", _NOT_WEIGHTS)
    tensors = {str(name): _checked(name, value, path.name) for name, value in loaded.items()}
    if not tensors:
        raise ConversionError(f"{path.name} holds no tensors.", _NOT_WEIGHTS)
    if sum(tensor.nbytes for tensor in tensors.values()) > most_bytes:
        raise _too_large(path)
    return tensors


_NOT_WEIGHTS = "Choose the file with the weights alone."


def _checked(name: object, value: object, file_name: str) -> Tensor:
    if not isinstance(name, str) or not isinstance(value, Tensor):
        raise ConversionError(
            f"{file_name} holds {name!r}, which is no tensor ({type(value).__name__}).",
            _NOT_WEIGHTS,
        )
    if value.layout != torch.strided or value.dtype not in _DTYPES or value.device.type != "cpu":
        raise ConversionError(
            f"{name} in {file_name} is of a kind that safetensors doesn't hold ({value.dtype}).",
            "Choose the unquantized version of this model.",
        )
    return value.detach()


def _too_large(path: Path) -> ConversionError:
    return ConversionError(
        f"The tensors of {path.name} unfold to more than its size explains, or than there is room.",
        "It is damaged or made to fill memory: don't use it.",
    )


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], written: int, report: Callable[[int, int], None]
) -> int:
    """Write a safetensors file, each tensor for itself, so that shared memory does no harm.

    Args:
        path: The file.
        tensors: By name.
        written: Bytes of tensors written before.
        report: Told of bytes written and bytes to write, with those before; may end the process.

    Returns:
        Bytes of tensors written so far.
    """
    # Wide numbers first: then every tensor lies where its numbers may.
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
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name in order:
        tensor = tensors[name]
        start, end = end, end + tensor.nbytes
        header[name] = {
            "dtype": _DTYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(header, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _bytes(tensor: Tensor) -> memoryview:
    if not tensor.nbytes:
        return memoryview(b"")
    flat = tensor.contiguous().reshape(-1).view(torch.uint8)
    return flat.numpy().data
