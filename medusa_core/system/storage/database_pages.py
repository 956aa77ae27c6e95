"""Rows on the pages of a damaged SQLite file, read without SQLite.

SQLite walks from the root of a table down to its leaves. Where the first page or an inner page is
lost, it finds nothing below, though the texts are whole on their leaves. Here each leaf of the file
is read for itself. It doesn't say whose it is: the kinds of a row's values do.

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
# Of a row too long for its leaf, between so many bytes stay there.
_MOST_LOCAL, _LEAST_LOCAL = PAGE - 35, (PAGE - 12) * 32 // 255 - 23
# Bytes of a value by its kind: nothing, whole numbers of six lengths, a float, and just 0 or 1.
_NUM_BYTES = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)
_FLOAT, _ZERO, _ONE, _FIRST_BLOB = 7, 8, 9, 12


class PagesOf:
    """The pages of a file as the last commit of its log left them."""

    def __init__(self, path: Path, log: Path) -> None:
        """Read them.

        Raises:
            OSError: They can't be read.
        """
        self._raw = path.read_bytes()
        self._logged = _logged_pages(log.read_bytes()) if log.exists() else {}

    def __getitem__(self, number: int) -> bytes:
        begin = (number - 1) * PAGE
        return self._logged.get(number) or self._raw[begin : begin + PAGE]

    def rows(self) -> Iterator[tuple[int, list[SqlValue]]]:
        """Number and values of each row that is whole, whatever its table."""
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
                    continue  # torn: the others on the page may be whole

    def _row(self, page: bytes, place: int) -> tuple[int, list[SqlValue]]:
        num_bytes, place = _varint(page, place)
        number, place = _varint(page, place)
        values = _values(self._payload(page, place, num_bytes))
        return number - (number >> 63 << 64), values  # numbers have a sign

    def _payload(self, page: bytes, place: int, num_bytes: int) -> bytes:
        """The bytes of a row, with the pages that it flows over into."""
        if num_bytes <= _MOST_LOCAL:
            return page[place : place + num_bytes]
        local = _LEAST_LOCAL + (num_bytes - _LEAST_LOCAL) % (PAGE - 4)
        if local > _MOST_LOCAL:
            local = _LEAST_LOCAL
        payload = bytearray(page[place : place + local])
        (following,) = struct.unpack_from(">I", page, place + local)
        seen = {0}
        while len(payload) < num_bytes:
            if following in seen:
                raise ValueError("a row that leads back into itself")
            seen.add(following)
            page = self[following]
            (following,) = struct.unpack_from(">I", page)
            payload += page[4 : 4 + num_bytes - len(payload)]
        return bytes(payload)


def _values(payload: bytes) -> list[SqlValue]:
    """The values of a row.

    Raises:
        ValueError: It isn't whole.
        IndexError: It isn't whole.
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
    if kind >= _FIRST_BLOB:
        return (kind - _FIRST_BLOB) // 2
    return _NUM_BYTES[kind]


def _value(kind: int, raw: bytes) -> SqlValue:
    if kind >= _FIRST_BLOB:
        return raw.decode("utf-8", "replace") if kind % 2 else raw
    if kind == _FLOAT:
        return float(struct.unpack(">d", raw)[0])
    if kind in (_ZERO, _ONE):
        return kind - _ZERO
    return int.from_bytes(raw, "big", signed=True) if kind else None


def _varint(raw: bytes, place: int) -> tuple[int, int]:
    """A number of up to nine bytes, and the place behind it."""
    number = 0
    for at in range(place, place + 8):
        number = number << 7 | raw[at] & 0x7F
        if raw[at] < 0x80:
            return number, at + 1
    return number << 8 | raw[place + 8], place + 9


def _logged_pages(raw: bytes) -> dict[int, bytes]:
    """The newest pages in a log, without what wasn't committed."""
    pages: dict[int, bytes] = {}
    begun: dict[int, bytes] = {}
    for at in range(_LOG_HEADER_BYTES, len(raw) - PAGE, _FRAME_HEADER_BYTES + PAGE):
        number, is_commit = struct.unpack_from(">II", raw, at)
        if raw[at + 8 : at + 16] != raw[16:24]:  # from before the log began anew
            break
        begin = at + _FRAME_HEADER_BYTES
        begun[number] = raw[begin : begin + PAGE]
        if is_commit:
            pages |= begun
            begun = {}
    return pages
