"""Reads rows from the leaf pages of a damaged SQLite file, without SQLite.

SQLite descends from the root page of a table to its leaves. If an inner page is damaged, it can't
reach the leaves below, though they may be intact. This module reads each leaf of the file by
itself. A leaf doesn't name its table; the types of a row's values tell.

Source: "Database File Format", https://www.sqlite.org/fileformat2.html, sections 1.6, 2.1 and 4.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

PAGE = 4096
SqlValue = None | int | float | str | bytes

_LEAF, _LEAF_HEADER_BYTES = 0x0D, 8
_LOG_HEADER_BYTES, _FRAME_HEADER_BYTES = 32, 24
# Limits of a row's bytes on its leaf; the rest is on overflow pages.
_MAX_LOCAL, _MIN_LOCAL = PAGE - 35, (PAGE - 12) * 32 // 255 - 23
# Bytes of a value by its serial type: NULL, integers of six sizes, a float, constants 0 and 1.
_NUM_BYTES = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)
_FLOAT, _ZERO, _ONE, _FIRST_BLOB = 7, 8, 9, 12


class PagesOf:
    """Pages of a file after the last commit in its write-ahead log."""

    def __init__(self, path: Path, log: Path) -> None:
        """Read the file and its log.

        Raises:
            OSError: They can't be read.
        """
        self._raw = path.read_bytes()
        self._logged = _logged_pages(log.read_bytes()) if log.exists() else {}

    def __getitem__(self, number: int) -> bytes:
        begin = (number - 1) * PAGE
        return self._logged.get(number) or self._raw[begin : begin + PAGE]

    def rows(self) -> Iterator[tuple[int, list[SqlValue]]]:
        """Yield the rowid and values of each intact row of all tables."""
        for number in sorted({*range(2, len(self._raw) // PAGE + 1), *self._logged}):
            page = self[number]
            if page[:1] != bytes([_LEAF]) or len(page) < PAGE:
                continue
            (count,) = struct.unpack_from(">H", page, 3)
            count = min(count, (PAGE - _LEAF_HEADER_BYTES) // 2)
            for place in struct.unpack_from(f">{count}H", page, _LEAF_HEADER_BYTES):
                try:
                    yield self._row(page, place)
                except (IndexError, ValueError, struct.error):
                    continue  # damaged: other rows of the page may be intact

    def _row(self, page: bytes, offset: int) -> tuple[int, list[SqlValue]]:
        """Parse the row at an offset of a leaf page."""
        num_bytes, offset = _varint(page, offset)
        number, offset = _varint(page, offset)
        values = _values(self._payload(page, offset, num_bytes))
        return number - (number >> 63 << 64), values  # rowids are signed

    def _payload(self, page: bytes, offset: int, num_bytes: int) -> bytes:
        """Return the bytes of a row, including its overflow pages."""
        if num_bytes <= _MAX_LOCAL:
            return page[offset : offset + num_bytes]
        local = _MIN_LOCAL + (num_bytes - _MIN_LOCAL) % (PAGE - 4)
        if local > _MAX_LOCAL:
            local = _MIN_LOCAL
        payload = bytearray(page[offset : offset + local])
        (following,) = struct.unpack_from(">I", page, offset + local)
        seen = {0}
        while len(payload) < num_bytes:
            if following in seen:
                raise ValueError("a cycle of overflow pages")
            seen.add(following)
            page = self[following]
            (following,) = struct.unpack_from(">I", page)
            payload += page[4 : 4 + num_bytes - len(payload)]
        return bytes(payload)


def _values(payload: bytes) -> list[SqlValue]:
    """Parse the values of a row.

    Raises:
        ValueError: It is damaged.
        IndexError: It is damaged.
    """
    kinds = []
    end, at = _varint(payload, 0)
    while at < end:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    values: list[SqlValue] = []
    for kind in kinds:
        num_bytes = _size(kind)
        values.append(_value(kind, payload[at : at + num_bytes]))
        at += num_bytes
    if not kinds or at != len(payload):
        raise ValueError("a row of another length than its values")
    return values


def _size(kind: int) -> int:
    """Return the bytes of a value by its serial type."""
    if kind >= _FIRST_BLOB:
        return (kind - _FIRST_BLOB) // 2
    return _NUM_BYTES[kind]


def _value(kind: int, raw: bytes) -> SqlValue:
    """Decode a value by its serial type."""
    if kind >= _FIRST_BLOB:
        return raw.decode("utf-8", "replace") if kind % 2 else raw
    if kind == _FLOAT:
        return float(struct.unpack(">d", raw)[0])
    if kind in (_ZERO, _ONE):
        return kind - _ZERO
    return int.from_bytes(raw, "big", signed=True) if kind else None


def _varint(raw: bytes, offset: int) -> tuple[int, int]:
    """Parse a varint of up to nine bytes; return it and the offset after it."""
    number = 0
    for at in range(offset, offset + 8):
        number = number << 7 | raw[at] & 0x7F
        if raw[at] < 0x80:
            return number, at + 1
    return number << 8 | raw[offset + 8], offset + 9


def _logged_pages(raw: bytes) -> dict[int, bytes]:
    """Return the newest committed pages of a write-ahead log."""
    pages: dict[int, bytes] = {}
    begun: dict[int, bytes] = {}
    for at in range(_LOG_HEADER_BYTES, len(raw) - PAGE, _FRAME_HEADER_BYTES + PAGE):
        number, is_commit = struct.unpack_from(">II", raw, at)
        if raw[at + 8 : at + 16] != raw[16:24]:  # salt of an earlier log in the same file
            break
        begin = at + _FRAME_HEADER_BYTES
        begun[number] = raw[begin : begin + PAGE]
        if is_commit:
            pages |= begun
            begun = {}
    return pages
