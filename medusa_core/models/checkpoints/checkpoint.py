"""Reading tensors out of safetensors files.

Files are read, not mapped: of a mapped file every page that was touched counts as the process's
memory, and a model would take its size on disk beside its size when loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import torch
from torch import Tensor

from medusa_core.errors import CheckpointError
from medusa_core.models.checkpoints.checksum import (
    PIECE_BYTES,
    Checksum,
)
from medusa_core.models.token_table import StoredRows
from medusa_core.system.files.safetensors_header import (
    TensorEntry,
    read_header,
)

# How models that also see name their text part's tensors, and what these are called without it;
# Nemotron-H calls its whole model so.
_TEXT_PARTS = (
    ("language_model.", ""),
    ("model.language_model.", "model."),
    ("backbone.", "model."),
)
_BESIDE = ("lm_head.", "mtp.")
# What some families call otherwise.
_USUAL = {
    "model.embeddings": "model.embed_tokens",
    "model.norm_f": "model.norm",
    "model.final_layernorm": "model.norm",
    "model.embedding_norm": "model.norm",  # LFM2's
}

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


class Checkpoint:
    """The tensors of a folder, read one at a time.

    Attributes:
        names: Every tensor's name.
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
        """Shape of a tensor, without reading it."""
        return self._entry(name).shape

    def dtype(self, name: str) -> str:
        """Name of a tensor's dtype, without reading it; that of the format where torch has none."""
        entry = self._entry(name)
        return str(DTYPES.get(entry.dtype, entry.dtype)).removeprefix("torch.")

    def tensor(self, name: str, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """Read a tensor.

        Args:
            name: Its name.
            shape: The shape it must have.
            dtype: The dtype wanted.

        Raises:
            CheckpointError: It is missing, of another shape, or holds no floating-point numbers.
        """
        self._read.add(name)
        self.check_shape(name, shape)
        return self.floats(name, dtype)

    def check_shape(self, name: str, shape: tuple[int, ...]) -> None:
        """Refuse a tensor without reading it.

        Raises:
            CheckpointError: It is missing, or of another shape.
        """
        found = self.shape(name)
        if found != shape:
            raise CheckpointError(
                f"{name} has shape {list(found)}, but config.json asks for {list(shape)}.",
                "The weights and config.json belong to different models; download both again.",
            )

    def floats(self, name: str, dtype: torch.dtype | None) -> Tensor:
        """Read a tensor of any shape.

        Args:
            name: Its name.
            dtype: The dtype wanted; None for the file's own.

        Raises:
            CheckpointError: It is missing, or holds no floating-point numbers.
        """
        self._read.add(name)
        tensor = self.raw(name)
        check_floating(name, tensor.dtype)
        return tensor if dtype is None else tensor.to(dtype)

    def stored_rows(self, name: str, shape: tuple[int, int]) -> StoredRows:
        """Where the rows of a matrix lie in their file.

        Args:
            name: Of the tensor.
            shape: The shape it must have.

        Raises:
            CheckpointError: It is missing, of another shape, or holds no floating-point numbers.
        """
        self._read.add(name)
        self.check_shape(name, shape)
        entry = self._entry(name)
        dtype = DTYPES.get(entry.dtype)
        if dtype is None or not dtype.is_floating_point:
            raise CheckpointError(
                f"{name} holds {entry.dtype}, not floating-point numbers.",
                "Choose the unquantized version of this model.",
            )
        row_bytes = shape[1] * dtype.itemsize
        return StoredRows(
            self._file_of[name], entry.start, shape[0], row_bytes, lambda rows: rows.view(dtype)
        )

    def integers(self, name: str) -> Tensor:
        """Read a tensor of whole numbers, as int64.

        Raises:
            CheckpointError: It is missing, or holds other numbers.
        """
        tensor = self.raw(name)
        if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
            raise CheckpointError(
                f"{name} holds {tensor.dtype}, not whole numbers.", "Download the file again."
            )
        return tensor.to(torch.int64)

    @property
    def unread(self) -> frozenset[str]:
        """Names of the tensors that nobody asked for."""
        return self.names - self._read

    def raw(self, name: str) -> Tensor:
        """Read a tensor as it is.

        Raises:
            CheckpointError: It is missing, of a dtype that nothing here reads, or its file fails.
        """
        return self._raw(name, _ignore)

    def summed(self, name: str) -> tuple[Tensor, str]:
        """Read a tensor as it is, and take its checksum meanwhile.

        Raises:
            CheckpointError: As `raw` does.
        """
        sums = Checksum()
        try:
            tensor = self._raw(name, sums.add)
        finally:
            text = sums.finish()
        return tensor, text

    def _raw(self, name: str, each_piece: EachPiece) -> Tensor:
        self._read.add(name)
        entry = self._entry(name)
        dtype = DTYPES.get(entry.dtype)
        if dtype is None:
            raise CheckpointError(
                f"{name} holds {entry.dtype}, which isn't supported.",
                "Choose the unquantized version of this model.",
            )
        return read_bytes(self._file_of[name], entry, each_piece).view(dtype).view(entry.shape)

    def _entry(self, name: str) -> TensorEntry:
        path = self._file_of.get(name)
        if path is None:
            raise missing_tensor(name)
        if path not in self._entries:
            self._entries[path] = read_header(path)
        entry = self._entries[path].get(self._stored[name])
        if entry is None:
            raise CheckpointError(
                f"{path.name} lacks the tensor {name} that the index places there.",
                "Download the model again.",
            )
        return entry


def _text_names(names: Iterable[str]) -> dict[str, str]:
    """The names of a text model's tensors, and what they are called in its files.

    In a model that also sees they lie beside those of its eyes, which are left out, and of a layer
    that guesses, which isn't.
    """
    for prefix, shown in _TEXT_PARTS:
        found = {
            _usual(shown + name.removeprefix(prefix)): name
            for name in names
            if name.startswith(prefix)
        }
        if found:
            return found | {name: name for name in names if name.startswith(_BESIDE)}
    return {_usual(name): name for name in names}


def _usual(name: str) -> str:
    """The name that most families give a tensor."""
    stem, dot, ending = name.rpartition(".")
    return f"{_USUAL.get(stem, stem)}{dot}{ending}"


def check_floating(name: str, dtype: torch.dtype) -> None:
    """Refuse a tensor that holds other numbers than are wanted.

    Raises:
        CheckpointError: They are no floating-point numbers.
    """
    if not dtype.is_floating_point:
        raise CheckpointError(
            f"{name} holds {dtype}, not floating-point numbers.",
            "Choose the unquantized version of this model.",
        )


def missing_tensor(name: str) -> CheckpointError:
    """What to say of a tensor that isn't there."""
    return CheckpointError(
        f"The weights lack the tensor {name}.",
        "The download is incomplete, or this is another kind of model.",
    )


def read_bytes(path: Path, entry: TensorEntry, each_piece: EachPiece) -> Tensor:
    """The bytes of a tensor. uint8

    Raises:
        CheckpointError: The file has become shorter, or can't be read.
    """
    buffer = torch.empty(entry.nbytes, dtype=torch.uint8)
    view = buffer.numpy().data
    try:
        # Unbuffered, as Python's own buffer would be one more copy.
        with path.open("rb", buffering=0) as file:
            file.seek(entry.start)
            for start in range(0, entry.nbytes, PIECE_BYTES):
                piece = view[start : start + PIECE_BYTES]
                done = 0
                while done < len(piece):
                    if not (count := file.readinto(piece[done:])):
                        raise CheckpointError(
                            f"{path.name} has become shorter.", "Download the file again."
                        )
                    done += count
                each_piece(piece)
    except OSError as error:
        raise CheckpointError(f"{path} can't be read: {error}.", "Check the disk.") from error
    return buffer


def _ignore(piece: memoryview) -> None:
    """For those who want no checksum."""
