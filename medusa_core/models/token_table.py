"""Embedding tables on the host, of which a forward pass reads a few rows: in memory or on disk.

Rows on disk are read when they are needed; the operating system caches frequent ones.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from medusa_core.errors import CheckpointError
from medusa_core.i18n import tr

# Decodes rows: uint8 [n, bytes] → [n, columns]
Decode = Callable[[Tensor], Tensor]


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


class TokenTable(Protocol):
    """An embedding table on the host.

    Attributes:
        nbytes: Bytes in main memory.
    """

    nbytes: int

    def rows(self, token_ids: Sequence[int]) -> Tensor:
        """Look up rows, in a floating-point dtype. [n] → [n, columns]"""


class HeldTable:
    """A table in main memory; see `TokenTable`."""

    def __init__(self, stored: Tensor, decode: Decode | None = None) -> None:
        """Wrap a matrix.

        Args:
            stored: Numbers [rows, columns], or encoded rows, uint8 [rows, bytes].
            decode: Decodes rows; None for numbers.
        """
        self._stored = stored
        self._decode = decode
        self.nbytes = stored.nbytes

    def rows(self, token_ids: Sequence[int]) -> Tensor:
        """Look up rows in memory and dequantize them."""
        found = self._stored.index_select(0, torch.tensor(token_ids))
        return found if self._decode is None else self._decode(found)


class FileTable:
    """A table on disk; see `TokenTable`."""

    nbytes = 0

    def __init__(self, stored: StoredRows) -> None:
        """Open the file; replacing it later has no effect on the table.

        Raises:
            CheckpointError: The file can't be opened.
        """
        self._stored = stored
        try:
            self._file = stored.path.open("rb", buffering=0)
        except OSError as error:
            raise _unreadable(stored.path, error) from error
        weakref.finalize(self, self._file.close)

    def rows(self, token_ids: Sequence[int]) -> Tensor:
        """Read each distinct row from the file and dequantize it."""
        stored = self._stored
        index_of = {token: index for index, token in enumerate(dict.fromkeys(token_ids))}
        buffer = torch.empty(len(index_of), stored.row_bytes, dtype=torch.uint8)
        view = buffer.numpy()
        try:
            for token, index in index_of.items():
                self._file.seek(stored.start + token * stored.row_bytes)
                self._fill(view[index].data)
        except OSError as error:
            raise _unreadable(stored.path, error) from error
        numbers = stored.decode(buffer)
        return numbers.index_select(0, torch.tensor([index_of[token] for token in token_ids]))

    def _fill(self, row: memoryview) -> None:
        """Read one whole row."""
        done = 0
        while done < len(row):
            if not (count := self._file.readinto(row[done:])):
                raise CheckpointError(
                    tr("{0} has become shorter.", self._stored.path.name),
                    "Download the file again.",
                )
            done += count


def _unreadable(path: Path, error: OSError) -> CheckpointError:
    """Make the error for a file that can't be read."""
    return CheckpointError(
        tr("{0} can't be read: {1}.", path, error.strerror or error),
        "Check the disk, then load it again.",
    )
