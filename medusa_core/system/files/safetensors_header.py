"""Reads the header of a safetensors file: dtype, shape and place of each tensor. Without torch.

Source: the format's description, https://huggingface.co/docs/safetensors.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

from medusa_core.errors import CheckpointError
from medusa_core.i18n import tr
from medusa_core.system.files.json_file import is_whole

TensorShapes = Mapping[str, tuple[int, ...]]  # by name

LENGTH_BYTES = 8
MOST_HEADER_BYTES = 16 << 20  # parsed in half a second; ten times the largest published ones
BITS = {
    "F64": 64,
    "F32": 32,
    "F16": 16,
    "BF16": 16,
    "F8_E4M3": 8,
    "F8_E5M2": 8,
    "I64": 64,
    "I32": 32,
    "I16": 16,
    "I8": 8,
    "U64": 64,
    "U32": 32,
    "U16": 16,
    "U8": 8,
    "BOOL": 8,
}


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """A tensor of a file.

    Attributes:
        dtype: Name of its dtype in the format.
        shape: Shape of the tensor.
        start: First byte in the file.
        nbytes: Size in bytes.
    """

    dtype: str
    shape: tuple[int, ...]
    start: int
    nbytes: int


def read_header(path: Path) -> dict[str, TensorEntry]:
    """Read the tensors of a file, by name.

    Raises:
        CheckpointError: The file is missing, damaged or truncated.
    """
    header = _read_header(path)
    return parse_header(header, path.stat().st_size, path.name)


def read_metadata(path: Path) -> dict[str, str]:
    """Read the metadata of a file.

    Raises:
        CheckpointError: The file is missing or damaged.
    """
    raw = _as_object(_read_header(path), path.name).get("__metadata__", {})
    if not isinstance(raw, dict) or not all(isinstance(text, str) for text in raw.values()):
        raise _damaged(path.name, tr("what it says of itself is no text"))
    return raw


def _read_header(path: Path) -> bytes:
    """Read the bytes of a header."""
    try:
        with path.open("rb") as file:
            return file.read(header_bytes(file.read(LENGTH_BYTES), path.name))
    except FileNotFoundError as error:
        raise CheckpointError(
            tr("{0} is missing in {1}.", path.name, path.parent), "Download the model again."
        ) from error
    except OSError as error:
        raise CheckpointError(
            tr("{0} can't be read: {1}.", path, error), "Check the disk."
        ) from error


def header_bytes(first: bytes, file_name: str) -> int:
    """Parse the length of the header from the first eight bytes of a file.

    Raises:
        CheckpointError: There are fewer bytes, or the length is impossible.
    """
    length = int.from_bytes(first, "little")
    if len(first) < LENGTH_BYTES or not 2 <= length <= MOST_HEADER_BYTES:
        raise _damaged(file_name, tr("its header has no possible length"))
    return length


def parse_header(header: bytes, file_bytes: int | None, file_name: str) -> dict[str, TensorEntry]:
    """Parse and check a header.

    Args:
        header: The JSON after the first eight bytes.
        file_bytes: Size of the file; None if unknown.
        file_name: Name of the file, for messages.

    Raises:
        CheckpointError: It is damaged, or the file has another size.
    """
    raw = _as_object(header, file_name)
    raw.pop("__metadata__", None)
    begin = LENGTH_BYTES + len(header)
    entries = {name: _entry(name, value, begin, file_name) for name, value in raw.items()}
    end = begin
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].start, item[1].nbytes)):
        if entry.start != end:
            raise _damaged(file_name, tr("{0} doesn't begin where the tensor before it ends", name))
        end += entry.nbytes
    if file_bytes is not None and end != file_bytes:
        raise _damaged(file_name, tr("it has {0} bytes, its header speaks of {1}", file_bytes, end))
    return entries


def _as_object(header: bytes, file_name: str) -> dict[str, object]:
    """Parse a header as a JSON object."""
    try:
        raw = json.loads(header)
    except (ValueError, RecursionError) as error:
        raise _damaged(file_name, tr("its header is no JSON")) from error
    if not isinstance(raw, dict):
        raise _damaged(file_name, tr("its header is no JSON object"))
    return raw


def _entry(name: str, value: object, data_start: int, file_name: str) -> TensorEntry:
    """Parse and check the entry of a tensor."""
    if not isinstance(value, Mapping):
        raise _damaged(file_name, tr("its header says nothing about {0}", name))
    dtype, shape, offsets = (value.get(key) for key in ("dtype", "shape", "data_offsets"))
    bits = BITS.get(dtype) if isinstance(dtype, str) else None
    if bits is None:
        raise _damaged(file_name, tr("{0} is of the unknown dtype {1}", name, repr(dtype)))
    if not (_are_sizes(shape) and _are_sizes(offsets)) or len(offsets) != 2:
        raise _damaged(file_name, tr("{0} has an impossible shape or place", name))
    start, end = offsets
    if math.prod(shape) * bits // 8 != end - start:
        raise _damaged(file_name, tr("{0} has another size than its shape", name))
    return TensorEntry(str(dtype), tuple(shape), data_start + start, end - start)


def _are_sizes(value: object) -> TypeGuard[list[int]]:
    """Whether a value is a list of non-negative integers."""
    return isinstance(value, list) and all(is_whole(size, 0, (1 << 62) - 1) for size in value)


def _damaged(file_name: str, reason: str) -> CheckpointError:
    """Make the error for a damaged file."""
    return CheckpointError(
        tr("{0} is damaged or incomplete: {1}.", file_name, reason), "Download the file again."
    )
