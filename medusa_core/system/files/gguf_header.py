"""Parses the header of a GGUF file.

Every count and length is checked against the file's size before it is used.
"""

from __future__ import annotations

import os
import struct
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from medusa_core.errors import CheckpointError
from medusa_core.i18n import tr

_MOST_TEXTS = 1 << 20  # of an array: four times the largest vocabulary
_MOST_TEXT_BYTES = 1 << 24
_LEAST_READ = 1 << 20
_SCALARS = {
    0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d",
}  # fmt: skip
_STRING, _ARRAY = 8, 9
_LENGTH = struct.Struct("<Q")

GgufArray = Sequence[int] | Sequence[float]
Value = str | int | float | bool | list[str] | GgufArray


class GgufHeader:
    """A sequential parser of a file's header.

    Attributes:
        name: Name of the file.
        size: Its size in bytes.
        position: Number of parsed bytes.
    """

    def __init__(self, file: BinaryIO, path: Path, most_bytes: int) -> None:
        """Start at the first byte.

        Args:
            most_bytes: Largest size of the header.
        """
        self.name = path.name
        self.size = os.fstat(file.fileno()).st_size
        self.position = 0
        self._file, self._path = file, path
        self._most = min(self.size, most_bytes)
        self._data = b""

    def take(self, count: int) -> bytes:
        """Return the next bytes."""
        begin, end = self.position, self.position + count
        data = self._up_to(end)
        self.position = end
        return data[begin:end]

    def scalar(self, form: str) -> int | float | bool:
        """Parse a number of a `struct` format."""
        found: int | float | bool = struct.unpack(f"<{form}", self.take(struct.calcsize(form)))[0]
        return found

    def count(self, most: int) -> int:
        """Parse a count of following items."""
        count = int(self.scalar("Q"))
        self._check_count(count, most)
        return count

    def text(self, most_bytes: int = _MOST_TEXT_BYTES) -> str:
        """Parse a string with a length prefix."""
        return self.take(self.count(most_bytes)).decode(errors="replace")

    def value(self) -> Value:
        """Parse a value with a type prefix."""
        kind = int(self.scalar("I"))
        if kind == _STRING:
            return self.text()
        if kind == _ARRAY:
            return self._list()
        if kind not in _SCALARS:
            raise self.damaged(tr("it holds a value of the unknown kind {0}", kind))
        return self.scalar(_SCALARS[kind])

    def damaged(self, reason: str) -> CheckpointError:
        """Return the error for this file."""
        return damaged(self._path, reason)

    def _list(self) -> Value:
        """Parse an array of numbers or strings."""
        kind = int(self.scalar("I"))
        if kind == _STRING:
            return self._texts(self.count(_MOST_TEXTS))
        if kind not in _SCALARS:
            raise self.damaged(tr("it holds a list of the unknown kind {0}", kind))
        form = "B" if _SCALARS[kind] == "?" else _SCALARS[kind]
        numbers = array(form)
        numbers.frombytes(self.take(self.count(self._most) * numbers.itemsize))
        return numbers

    def _texts(self, count: int) -> list[str]:
        """Parse strings without a call for each, as a vocabulary has hundreds of thousands."""
        texts = []
        data, at, length_at = self._data, self.position, _LENGTH.unpack_from
        for _ in range(count):
            begin = at + _LENGTH.size
            if begin > len(data):
                data = self._up_to(begin)
            (length,) = length_at(data, at)
            if length > _MOST_TEXT_BYTES:
                self._check_count(length, _MOST_TEXT_BYTES)
            at = begin + length
            if at > len(data):
                data = self._up_to(at)
            texts.append(data[begin:at].decode("utf-8", "replace"))
        self.position = at
        return texts

    def _check_count(self, count: int, most: int) -> None:
        """Refuse a count above a limit."""
        if count > most:
            raise self.damaged(tr("it promises {0:,} of something", count))

    def _up_to(self, end: int) -> bytes:
        """Return the bytes from the start to at least `end`, reading more if needed."""
        if end <= len(self._data):
            return self._data
        have = len(self._data)
        if end <= self._most:
            # Doubling keeps the total of copied bytes proportional to the header.
            wanted = min(self._most, max(end, 2 * have, _LEAST_READ))
            self._data += self._file.read(wanted - have)
        if end > len(self._data):
            if self._most < self.size:
                raise self.damaged(tr("its header is too long"))
            raise incomplete(self._path)
        return self._data


def incomplete(path: Path) -> CheckpointError:
    """Return the error for a truncated file."""
    return CheckpointError(
        tr("{0} is incomplete (the download broke off?).", path.name), "Download it again."
    )


def damaged(path: Path, reason: str) -> CheckpointError:
    """Return the error for a damaged file."""
    return CheckpointError(
        tr("{0} is no GGUF file that can be read: {1}.", path.name, reason), "Download it again."
    )
