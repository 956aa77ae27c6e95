"""The zip that torch keeps tensors in, checked before anything is read from it.

torch and Python read zips with different code. What the two could understand differently (a second
table of contents, two members of one name, bytes before the first member) is refused.
"""

from __future__ import annotations

import re
import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from medusa_core.errors import ConversionError

_END = struct.Struct("<4s4H2LH")
_LOCATOR = struct.Struct("<4sLQL")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_MEMBER = re.compile(
    r"[^/]+/(data\.pkl|data/\d{1,9}|version|byteorder|\.format_version|\.storage_alignment"
    r"|\.data/serialization_id)"
)
_KNOWN = (
    (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.", "legacy"),
    (b"\x80", "legacy"),
    (b"GGUF", "a GGUF file"),
    (b"version https://git-lfs", "a pointer that git left in place of the file"),
    (b"<", "a web page"),
    (b"{", "JSON"),
)
_STORAGES = "data/"
_OTHERWISE = "Get the weights as safetensors instead."


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """What an archive of tensors may hold.

    Attributes:
        most_members: Files in it; torch writes one per tensor.
        most_pickle_bytes: Size of `data.pkl`; a 70B model's has less than a megabyte.
    """

    most_members: int = 20_000
    most_pickle_bytes: int = 16 << 20


@dataclass(frozen=True, slots=True)
class Archive:
    """What was read of a file that torch saved.

    Attributes:
        pickle: Its `data.pkl`.
        storages: Bytes of each storage, by its key.
    """

    pickle: bytes
    storages: dict[str, int]


def read_archive(path: Path, limits: ArchiveLimits) -> Archive:
    """The `data.pkl` of a file that torch saved, and the sizes of the rest.

    Args:
        path: The file.
        limits: What it may hold.

    Raises:
        ConversionError: The file is none, is damaged, or promises more than it has.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            _check_beginning(file, path.name)
            _check_end(file, size, path.name, limits)
            with zipfile.ZipFile(file) as archive:
                pickle = _check_members(archive, size, path.name, limits)
                return Archive(archive.read(pickle), _storages(archive))
    except FileNotFoundError as error:
        raise ConversionError(f"{path} doesn't exist.", "Choose a file that does.") from error
    except OSError as error:
        raise ConversionError(f"{path} can't be read: {error}.", "Check the disk.") from error
    # What zipfile raises on damage depends on where the damage is.
    except (zipfile.BadZipFile, struct.error, RuntimeError, ValueError, EOFError) as error:
        raise _damaged(path.name, str(error)) from error


def _check_beginning(file: BinaryIO, name: str) -> None:
    file.seek(0)
    first = file.read(32)
    if first.startswith(b"PK\x03\x04"):
        return
    what = next((what for magic, what in _KNOWN if first.startswith(magic)), "of an unknown kind")
    if what == "legacy":
        raise ConversionError(
            f"{name} is in torch's format from before version 1.6, a bare pickle.",
            "It can't be checked before it is opened. On a computer where that does no harm, open "
            "it with torch.load(..., weights_only=True) and save it with safetensors.torch.",
        )
    raise ConversionError(
        f"{name} is {what if first else 'empty'}, not a file that torch saved.", _OTHERWISE
    )


def _check_end(file: BinaryIO, size: int, name: str, limits: ArchiveLimits) -> None:
    """One table of contents, that ends where the file ends and lies where the end says."""
    at = size - _END.size
    magic, *_, count, nbytes, start, comment = _END.unpack(_read_at(file, at, _END.size, name))
    if magic != b"PK\x05\x06" or comment:
        raise _damaged(name, "the zip's end is missing, or something follows it")
    locator = _read_at(file, max(0, at - _LOCATOR.size), _LOCATOR.size, name)
    if locator.startswith(b"PK\x06\x07"):
        at = _LOCATOR.unpack(locator)[2]
        if at + _END_64.size + _LOCATOR.size + _END.size != size:
            raise _damaged(name, "the zip has two ends")
        magic, *_, count, nbytes, start = _END_64.unpack(_read_at(file, at, _END_64.size, name))
        if magic != b"PK\x06\x06":
            raise _damaged(name, "the zip's end is broken")
    if start + nbytes != at:
        raise _damaged(name, "the zip's table of contents doesn't lie before its end")
    if count > limits.most_members:
        raise ConversionError(
            f"{name} has {count:,} members; more than {limits.most_members:,} are not read.",
            _OTHERWISE,
        )


def _read_at(file: BinaryIO, at: int, count: int, name: str) -> bytes:
    if at < 0:
        raise _damaged(name, "it is too short")
    file.seek(at)
    data = file.read(count)
    if len(data) < count:
        raise _damaged(name, "it is too short")
    return data


def _check_members(
    archive: zipfile.ZipFile, size: int, name: str, limits: ArchiveLimits
) -> zipfile.ZipInfo:
    """Refuse what torch doesn't write; returns the pickle."""
    members = archive.infolist()
    # torch finds members without regard to case.
    if len({member.filename.casefold() for member in members}) < len(members):
        raise _damaged(name, "two members have one name")
    if len({member.filename.partition("/")[0] for member in members}) > 1:
        raise _damaged(name, "it has more than one folder")
    for member in members:
        if not _MEMBER.fullmatch(member.filename):
            raise ConversionError(
                f"{name} holds {member.filename!r}, which no file of tensors has.", _OTHERWISE
            )
        is_plain = member.compress_type == zipfile.ZIP_STORED and not member.flag_bits & 1
        if not is_plain or member.compress_size != member.file_size:
            raise ConversionError(
                f"{name} is compressed or encrypted; what it unfolds to isn't known.", _OTHERWISE
            )
    promised = sum(member.file_size for member in members)
    if promised > size:
        raise ConversionError(
            f"{name} promises {promised:,} bytes, but has {size:,}.",
            "It is damaged or made to fill memory: don't use it.",
        )
    return _find_pickle(archive, name, limits)


def _storages(archive: zipfile.ZipFile) -> dict[str, int]:
    names = {member.filename.partition("/")[2]: member.file_size for member in archive.infolist()}
    return {
        name.removeprefix(_STORAGES): nbytes
        for name, nbytes in names.items()
        if name.startswith(_STORAGES)
    }


def _find_pickle(archive: zipfile.ZipFile, name: str, limits: ArchiveLimits) -> zipfile.ZipInfo:
    by_name = {member.filename.partition("/")[2]: member for member in archive.infolist()}
    pickle = by_name.get("data.pkl")
    if pickle is None:
        raise _damaged(name, "it has no data.pkl")
    if pickle.file_size > limits.most_pickle_bytes:
        raise ConversionError(
            f"The pickle in {name} has {pickle.file_size:,} bytes; "
            f"more than {limits.most_pickle_bytes:,} are not read.",
            _OTHERWISE,
        )
    order = by_name.get("byteorder")
    if order is not None and (order.file_size > 16 or archive.read(order) != b"little"):
        raise ConversionError(f"The numbers in {name} are not little-endian.", _OTHERWISE)
    return pickle


def _damaged(name: str, reason: str) -> ConversionError:
    return ConversionError(
        f"{name} is damaged or incomplete: {reason}.", "Download the file again."
    )
