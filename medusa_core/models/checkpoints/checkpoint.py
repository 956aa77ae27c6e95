"""Read tensors from safetensors files.

Files are read, not memory-mapped: touched pages of a mapped file count as memory of the process, so
that while loading a model would take its size on disk in addition to its size in memory.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.errors import CheckpointError
from medusa_core.i18n import tr
from medusa_core.models.checkpoints.text_prefixes import TEXT_PREFIXES
from medusa_core.models.token_table import StoredRows
from medusa_core.system.files.safetensors_header import (
    TensorEntry,
    read_header,
)

_BARE = "embed_tokens.weight"  # named without the prefix `model.`
_OUTSIDE = ("lm_head.", "mtp.")  # tensors of a text model that don't have its prefix
# Names that differ from Llama's.
_LLAMA_NAMES = {
    "model.embeddings": "model.embed_tokens",
    "model.norm_f": "model.norm",
    "model.final_layernorm": "model.norm",
    "model.embedding_norm": "model.norm",  # LFM2
}
_PIECE_BYTES = 4 << 20  # fits into a CPU's cache, where it still is when its checksum is computed
_MAX_THREADS = 4  # more would wait for memory

EachPiece = Callable[[memoryview], None]

DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}


class BlockRows(NamedTuple):
    """Block-quantized rows of several tensors.

    Attributes:
        stored: Rows in the order of the file. uint8 [rows, bytes of a row]
        order: Positions in `stored` of each tensor's rows in Hugging Face's order, by name.
            int64 [tensor rows]
    """

    stored: Tensor
    order: Mapping[str, Tensor]


class Checksum:
    """CRC-32 of the CRC-32s of pieces, which threads compute while the next pieces are read."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(min(_MAX_THREADS, os.cpu_count() or 1))
        self._sums: list[Future[int]] = []

    def add(self, piece: memoryview) -> None:
        """Add the next piece; all but the last have `_PIECE_BYTES`."""
        self._sums.append(self._pool.submit(zlib.crc32, piece))

    def finish(self) -> str:
        """Return the checksum; no piece may be added afterwards."""
        self._pool.shutdown()
        return f"{zlib.crc32(b''.join(s.result().to_bytes(4, 'little') for s in self._sums)):08x}"


def checksum(tensor: Tensor) -> str:
    """Return the checksum of a tensor on the CPU, of any shape and dtype."""
    view = tensor.detach().contiguous().view(-1).view(torch.uint8).numpy().data
    sums = Checksum()
    for start in range(0, len(view), _PIECE_BYTES):
        sums.add(view[start : start + _PIECE_BYTES])
    return sums.finish()


class Checkpoint:
    """Reads tensors one at a time.

    Attributes:
        names: Names of all tensors.
    """

    def __init__(self, files: dict[str, Path]) -> None:
        self._stored = _text_names(files)
        self._file_of = {name: files[stored] for name, stored in self._stored.items()}
        self.names = frozenset(self._file_of)
        self._entries: dict[Path, dict[str, TensorEntry]] = {}
        self._read: set[str] = set()

    @classmethod
    def open_file(cls, path: Path) -> Checkpoint:
        """Open one safetensors file.

        Raises:
            CheckpointError: The file is missing or damaged.
        """
        return cls(dict.fromkeys(read_header(path), path))

    @property
    def files(self) -> frozenset[Path]:
        """The files that hold the tensors."""
        return frozenset(self._file_of.values())

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor without reading it."""
        return self._entry(name).shape

    def dtype(self, name: str) -> str:
        """Return the name of a tensor's dtype without reading it; torch's name if it has one."""
        entry = self._entry(name)
        return str(DTYPES.get(entry.dtype, entry.dtype)).removeprefix("torch.")

    def tensor(self, name: str, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """Read a floating-point tensor.

        Args:
            name: Name of the tensor.
            shape: Expected shape.
            dtype: Dtype of the result.

        Raises:
            CheckpointError: The tensor is missing, has another shape, or isn't floating-point.
        """
        self._read.add(name)
        self.check_shape(name, shape)
        return self.floats(name, dtype)

    def check_shape(self, name: str, shape: tuple[int, ...]) -> None:
        """Check the shape of a tensor without reading it.

        Raises:
            CheckpointError: It is missing, or of another shape.
        """
        found = self.shape(name)
        if found != shape:
            raise CheckpointError(
                tr(
                    "{0} has shape {1}, but config.json asks for {2}.",
                    name,
                    list(found),
                    list(shape),
                ),
                "The weights and config.json belong to different models; download both again.",
            )

    def floats(self, name: str, dtype: torch.dtype | None) -> Tensor:
        """Read a floating-point tensor of any shape.

        Args:
            dtype: Dtype of the result; None for that of the file.

        Raises:
            CheckpointError: It is missing, or not floating-point.
        """
        self._read.add(name)
        tensor = self.raw(name)
        check_floating(name, tensor.dtype)
        return tensor if dtype is None else tensor.to(dtype)

    def stored_rows(self, name: str, shape: tuple[int, int]) -> StoredRows:
        """Return the position of a floating-point matrix in its file, to read single rows of it.

        Args:
            name: Name of the tensor.
            shape: The shape it must have.

        Raises:
            CheckpointError: The tensor is missing, has another shape, or isn't floating-point.
        """
        self._read.add(name)
        self.check_shape(name, shape)
        entry = self._entry(name)
        dtype = torch_dtype(name, entry)
        check_floating(name, dtype)
        row_bytes, decode = shape[1] * dtype.itemsize, partial(as_numbers, dtype)
        return StoredRows(self._file_of[name], entry.start, shape[0], row_bytes, decode)

    def integers(self, name: str) -> Tensor:
        """Read an integer tensor, as int64.

        Raises:
            CheckpointError: It is missing, or has another dtype.
        """
        tensor = self.raw(name)
        if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
            raise CheckpointError(
                tr("{0} holds {1}, not whole numbers.", name, tensor.dtype),
                "Download the file again.",
            )
        return tensor.to(torch.int64)

    @property
    def unread(self) -> frozenset[str]:
        """Names of the tensors that haven't been read."""
        return self.names - self._read

    def raw(self, name: str) -> Tensor:
        """Read a tensor in its own dtype.

        Raises:
            CheckpointError: It is missing, of an unsupported dtype, or its file can't be read.
        """
        return self._raw(name, lambda _: None)

    def block_rows(self, names: Sequence[str]) -> BlockRows | None:
        """Read block-quantized matrices of one type as they are stored, one after the other.

        Returns:
            None if the file isn't of such blocks, or stores columns in another order.

        Raises:
            CheckpointError: One is missing, or its file can't be read.
        """
        return None

    def summed(self, name: str) -> tuple[Tensor, str]:
        """Read a tensor in its own dtype, and compute its checksum at the same time.

        Raises:
            CheckpointError: As `raw`.
        """
        sums = Checksum()
        try:
            tensor = self._raw(name, sums.add)
        finally:
            text = sums.finish()
        return tensor, text

    def _raw(self, name: str, each_piece: EachPiece) -> Tensor:
        """Read a tensor in its stored dtype, and pass its bytes to `each_piece`."""
        self._read.add(name)
        entry = self._entry(name)
        dtype = torch_dtype(name, entry)
        return read_bytes(self._file_of[name], entry, each_piece).view(dtype).view(entry.shape)

    def _entry(self, name: str) -> TensorEntry:
        """Return the header entry of a tensor; each file's header is read once."""
        path = self._file_of.get(name)
        if path is None:
            raise missing_tensor(name)
        if path not in self._entries:
            self._entries[path] = read_header(path)
        entry = self._entries[path].get(self._stored[name])
        if entry is None:
            raise CheckpointError(
                tr("{0} lacks the tensor {1} that the index places there.", path.name, name),
                "Download the model again.",
            )
        return entry


def _text_names(names: Iterable[str]) -> dict[str, str]:
    """Map the names that a text-only Llama would have to the names in the files.

    In a multimodal model the vision and audio tensors are left out; MTP layers are kept.
    """
    if _BARE in names:  # saved without its LM head, as embedding models are
        return {_llama_name(f"model.{name}"): name for name in names}
    for prefix, text_prefix in TEXT_PREFIXES:
        found = {
            _llama_name(text_prefix + name.removeprefix(prefix)): name
            for name in names
            if name.startswith(prefix)
        }
        if found:
            return found | {name: name for name in names if name.startswith(_OUTSIDE)}
    return {_llama_name(name): name for name in names}


def _llama_name(name: str) -> str:
    """Replace module names that differ from Llama's, such as `model.norm_f`."""
    stem, dot, ending = name.rpartition(".")
    return f"{_LLAMA_NAMES.get(stem, stem)}{dot}{ending}"


def torch_dtype(name: str, entry: TensorEntry) -> torch.dtype:
    """Convert a safetensors dtype to torch's.

    Raises:
        CheckpointError: torch has no such dtype.
    """
    if entry.dtype not in DTYPES:
        raise CheckpointError(
            tr("{0} holds {1}, which isn't supported.", name, entry.dtype),
            "Choose the unquantized version of this model.",
        )
    return DTYPES[entry.dtype]


def as_numbers(dtype: torch.dtype, rows: Tensor, wanted: torch.dtype) -> Tensor:
    """Convert the bytes of rows of a dtype to numbers of another one."""
    return rows.view(dtype).to(wanted)


def check_floating(name: str, dtype: torch.dtype) -> None:
    """Refuse tensors that aren't floating-point.

    Raises:
        CheckpointError: The dtype isn't floating-point.
    """
    if not dtype.is_floating_point:
        raise CheckpointError(
            tr("{0} holds {1}, not floating-point numbers.", name, dtype),
            "Choose the unquantized version of this model.",
        )


def missing_tensor(name: str) -> CheckpointError:
    """Make the error for a missing tensor."""
    return CheckpointError(
        tr("The weights lack the tensor {0}.", name),
        "The download is incomplete, or this is another kind of model.",
    )


def read_bytes(
    path: Path, entry: TensorEntry, each_piece: EachPiece, to: Tensor | None = None
) -> Tensor:
    """Read the bytes of a tensor as uint8, in pieces.

    Args:
        entry: Position of the tensor.
        each_piece: Called with every piece after it was read.
        to: Memory of this size to read into; None allocates it. uint8

    Raises:
        CheckpointError: The file has become shorter, or can't be read.
    """
    buffer = torch.empty(entry.nbytes, dtype=torch.uint8) if to is None else to
    view = buffer.numpy().data
    try:
        # Unbuffered, as a buffer would be one more copy.
        with path.open("rb", buffering=0) as file:
            file.seek(entry.start)
            for start in range(0, entry.nbytes, _PIECE_BYTES):
                piece = view[start : start + _PIECE_BYTES]
                done = 0
                while done < len(piece):
                    if not (count := file.readinto(piece[done:])):
                        raise CheckpointError(
                            tr("{0} has become shorter.", path.name), "Download the file again."
                        )
                    done += count
                each_piece(piece)
    except OSError as error:
        raise CheckpointError(
            tr("{0} can't be read: {1}.", path, error), "Check the disk."
        ) from error
    return buffer
