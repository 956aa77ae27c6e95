"""Embedding tables, of which a forward pass reads a few rows: dense ones, and stored ones.

A stored table reads rows of the model's file, or its blocks in memory, and decodes them. It keeps
the last ones decoded: drafts repeat tokens, and a disk may be slow.
"""

from __future__ import annotations

import os
import sys
import weakref
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from io import FileIO
from itertools import count
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.errors import CheckpointError
from medusa_core.i18n import tr
from medusa_core.models.blocks.sizes import num_cached_rows

# Decodes rows: uint8 [n, bytes], and a floating-point dtype → [n, columns] of that dtype
Decode = Callable[[Tensor, torch.dtype], Tensor]
ReadRows = Callable[[Sequence[int]], Tensor]

_PROBED_BYTES = 1 << 16  # of a table, which tell a file that was overwritten from one that wasn't
_MOST_SHARING = 7  # FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE


class StoredRows(NamedTuple):
    """Position of a matrix in a file.

    Attributes:
        start: Offset of the first row.
        num_rows: Number of rows.
        row_bytes: Bytes of a row.
        decode: Decodes rows.
    """

    path: Path
    start: int
    num_rows: int
    row_bytes: int
    decode: Decode


class FoundRows(NamedTuple):
    """Embeddings of some tokens, until the table is asked for others.

    Attributes:
        vectors: Contiguous rows, maybe of more tokens. [any, columns]
        indices: Row of each token.
    """

    vectors: Tensor
    indices: Sequence[int]


class TokenTable(ABC):
    """An embedding table.

    Attributes:
        shape: Its rows and columns.
        dtype: Dtype of decoded rows.
        device: Device of decoded rows.
        nbytes: Bytes in memory.
    """

    shape: tuple[int, int]
    dtype: torch.dtype
    device: torch.device
    nbytes: int

    @abstractmethod
    def find(self, token_ids: Sequence[int]) -> FoundRows:
        """Look up rows for the compiled step, which reads them by an address.

        Raises:
            CheckpointError: Their file can't be read.
        """

    @abstractmethod
    def rows(self, token_ids: Tensor) -> Tensor:
        """Look up rows. int64 [n], on any device → [n, columns]

        Raises:
            CheckpointError: Their file can't be read.
        """

    @abstractmethod
    def matrix(self) -> Tensor:
        """Return the whole table, for training. [rows, columns]

        Raises:
            CheckpointError: Its file can't be read.
        """


class DenseTable(TokenTable):
    """A table of numbers; see `TokenTable`."""

    def __init__(self, vectors: Tensor) -> None:
        """Wrap a matrix. [rows, columns]"""
        self._vectors = vectors
        self.shape = (vectors.shape[0], vectors.shape[1])
        self.dtype, self.device, self.nbytes = vectors.dtype, vectors.device, vectors.nbytes

    def find(self, token_ids: Sequence[int]) -> FoundRows:
        """Return the whole table, whose rows are in the order of token ids."""
        return FoundRows(self._vectors, token_ids)

    def rows(self, token_ids: Tensor) -> Tensor:
        """Copy rows."""
        return self._vectors.index_select(0, token_ids.to(self.device))

    def matrix(self) -> Tensor:
        """Return the table itself."""
        return self._vectors


class StoredTable(TokenTable):
    """A table of stored rows, decoded on the CPU; see `TokenTable`."""

    device = torch.device("cpu")

    def __init__(
        self,
        read: ReadRows,
        decode: Decode,
        shape: tuple[int, int],
        dtype: torch.dtype,
        stored_bytes: int = 0,
    ) -> None:
        """Keep no rows yet.

        Args:
            read: Reads stored rows. → uint8 [n, bytes of a row]
            decode: Decodes them.
            shape: Rows and columns of the table.
            dtype: Dtype of decoded rows.
            stored_bytes: Bytes of stored rows in memory.
        """
        self._read, self._decode = read, decode
        self.shape, self.dtype = shape, dtype
        with torch.inference_mode(mode=False):  # an inference tensor is written in that mode alone
            self._kept = torch.empty(num_cached_rows(*shape, dtype.itemsize), shape[1], dtype=dtype)
        self._index_of: dict[int, int] = {}  # of kept rows
        self.nbytes = stored_bytes + self._kept.nbytes

    def find(self, token_ids: Sequence[int]) -> FoundRows:
        """Decode rows that aren't kept; if there is no room for them, forget all others."""
        index_of = self._index_of
        missing = [token for token in dict.fromkeys(token_ids) if token not in index_of]
        if len(index_of) + len(missing) > len(self._kept):
            index_of.clear()
            missing = list(dict.fromkeys(token_ids))
        if len(missing) > len(self._kept):
            own = dict(zip(missing, count()))
            return FoundRows(self._decoded(missing), [own[token] for token in token_ids])
        if missing:
            first = len(index_of)
            self._kept[first : first + len(missing)] = self._decoded(missing)
            index_of.update(zip(missing, count(first)))
        return FoundRows(self._kept, [index_of[token] for token in token_ids])

    def rows(self, token_ids: Tensor) -> Tensor:
        """Look up rows, and copy them."""
        vectors, indices = self.find(token_ids.tolist())
        return vectors.index_select(0, torch.tensor(indices, dtype=torch.int64))

    def matrix(self) -> Tensor:
        """Decode all rows."""
        return self._decoded(range(self.shape[0]))

    def _decoded(self, token_ids: Sequence[int]) -> Tensor:
        """Read and decode rows."""
        if token_ids and not 0 <= min(token_ids) <= max(token_ids) < self.shape[0]:
            raise IndexError(f"there are no rows {token_ids} in a table of {self.shape[0]}")
        return self._decode(self._read(token_ids), self.dtype)


class FileRows:
    """Reads rows of a file, which stays open: removing or replacing it later has no effect.

    Overwriting it would: then reading fails.
    """

    def __init__(self, stored: StoredRows) -> None:
        """Open the file.

        Raises:
            CheckpointError: It can't be opened or read.
        """
        self._stored = stored
        try:
            self._file = _open_shared(stored.path)
            weakref.finalize(self, self._file.close)
            self._status, self._checksum = self._read_status(), self._probe()
        except OSError as error:
            raise _unreadable(stored.path, error) from error

    def __call__(self, token_ids: Sequence[int]) -> Tensor:
        """Read rows; consecutive ones at once. → uint8 [n, bytes of a row]

        Raises:
            CheckpointError: The file can't be read, or was overwritten.
        """
        stored = self._stored
        buffer = torch.empty(len(token_ids), stored.row_bytes, dtype=torch.uint8)
        view, first = buffer.view(-1).numpy().data, 0
        try:
            self._check_unchanged()
            for end in range(1, 1 + len(token_ids)):
                if end < len(token_ids) and token_ids[end] == token_ids[end - 1] + 1:
                    continue
                self._file.seek(stored.start + token_ids[first] * stored.row_bytes)
                self._fill(view[first * stored.row_bytes : end * stored.row_bytes])
                first = end
        except OSError as error:
            raise _unreadable(stored.path, error) from error
        return buffer

    def _check_unchanged(self) -> None:
        """Check that the file is the one that was opened.

        Raises:
            CheckpointError: It was overwritten.
        """
        status = self._read_status()
        if status == self._status:
            return
        if self._probe() != self._checksum:
            raise CheckpointError(
                tr("{0} was overwritten while its model was loaded.", self._stored.path.name),
                "Load the model again.",
            )
        self._status = status  # a time of change alone means nothing

    def _read_status(self) -> tuple[int, int]:
        """Return size and time of change of the file."""
        status = os.fstat(self._file.fileno())
        return status.st_size, status.st_mtime_ns

    def _probe(self) -> int:
        """Return a checksum of the table's beginning."""
        stored = self._stored
        self._file.seek(stored.start)
        return zlib.crc32(self._file.read(min(_PROBED_BYTES, stored.num_rows * stored.row_bytes)))

    def _fill(self, rows: memoryview) -> None:
        """Read whole rows."""
        done = 0
        while done < len(rows):
            if not (num_bytes := self._file.readinto(rows[done:])):
                raise CheckpointError(
                    tr("{0} has become shorter.", self._stored.path.name),
                    "Download the file again.",
                )
            done += num_bytes


def _open_shared(path: Path) -> FileIO:
    """Open a file for reading so that Windows, too, lets it be deleted meanwhile.

    Raises:
        OSError: It can't be opened.
    """
    if sys.platform == "win32":
        import _winapi
        import msvcrt

        null = _winapi.NULL
        handle = _winapi.CreateFile(
            str(path), _winapi.GENERIC_READ, _MOST_SHARING, null, _winapi.OPEN_EXISTING, null, null
        )
        return open(msvcrt.open_osfhandle(handle, os.O_RDONLY), "rb", buffering=0)  # noqa: PTH123
    return path.open("rb", buffering=0)


def _unreadable(path: Path, error: OSError) -> CheckpointError:
    """Make the error for a file that can't be read."""
    return CheckpointError(
        tr("{0} can't be read: {1}.", path, error.strerror or error),
        "Check the disk, then load it again.",
    )
