"""Tables of token vectors of which a pass reads a few rows: in memory, or left in the model's file.

A file's rows are read as they are needed. The system keeps those in memory that are read often,
as far as it has room for them.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from medusa_core.errors import CheckpointError

# What the bytes of rows stand for: uint8 [n, bytes] → [n, columns]
Decode = Callable[[Tensor], Tensor]


class StoredRows(NamedTuple):
    """The rows of a matrix in a file.

    Attributes:
        path: The file.
        start: Where the first one begins.
        num_rows: How many there are.
        row_bytes: Bytes of each.
        decode: What they stand for.
    """

    path: Path
    start: int
    num_rows: int
    row_bytes: int
    decode: Decode


class TokenTable(Protocol):
    """Vectors of tokens, looked up on the host.

    Attributes:
        nbytes: Bytes that it holds in the computer's memory.
    """

    nbytes: int

    def rows(self, token_ids: Sequence[int]) -> Tensor:
        """[n] → [n, columns], floating-point numbers as they are stored."""


class HeldTable:
    """A table in the computer's memory; see `TokenTable`."""

    def __init__(self, stored: Tensor, decode: Decode | None = None) -> None:
        """Take a table.

        Args:
            stored: Numbers [rows, columns], or the bytes of rows, uint8 [rows, bytes].
            decode: What bytes stand for; None for numbers.
        """
        self._stored = stored
        self._decode = decode
        self.nbytes = stored.nbytes

    def rows(self, token_ids: Sequence[int]) -> Tensor:
        found = self._stored.index_select(0, torch.tensor(token_ids))
        return found if self._decode is None else self._decode(found)


class FileTable:
    """A table that stays in its file; see `TokenTable`."""

    nbytes = 0

    def __init__(self, stored: StoredRows) -> None:
        """Open the file, which may be replaced from then on.

        Raises:
            CheckpointError: It can't be opened.
        """
        self._stored = stored
        try:
            self._file = stored.path.open("rb", buffering=0)
        except OSError as error:
            raise _unreadable(stored.path, error) from error
        weakref.finalize(self, self._file.close)

    def rows(self, token_ids: Sequence[int]) -> Tensor:
        stored, places = (
            self._stored,
            {token: at for at, token in enumerate(dict.fromkeys(token_ids))},
        )
        buffer = torch.empty(len(places), stored.row_bytes, dtype=torch.uint8)
        view = buffer.numpy()
        try:
            for token, at in places.items():
                self._file.seek(stored.start + token * stored.row_bytes)
                self._fill(view[at].data)
        except OSError as error:
            raise _unreadable(stored.path, error) from error
        numbers = stored.decode(buffer)
        return numbers.index_select(0, torch.tensor([places[token] for token in token_ids]))

    def _fill(self, row: memoryview) -> None:
        done = 0
        while done < len(row):
            if not (count := self._file.readinto(row[done:])):
                raise CheckpointError(
                    f"{self._stored.path.name} has become shorter.", "Download the file again."
                )
            done += count


def _unreadable(path: Path, error: OSError) -> CheckpointError:
    return CheckpointError(
        f"{path} can't be read: {error.strerror or error}.", "Check the disk, then load it again."
    )
