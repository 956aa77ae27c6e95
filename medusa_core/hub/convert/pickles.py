"""Map the tensors of a file that torch saved. Runs in the converter's process only.

torch's restricted unpickler, that of `torch.load(weights_only=True)`, rebuilds tensors and calls
nothing else. But `torch.load` maps as many bytes as the pickle claims, beyond its storages, too; so
storages are looked up in the zip here.
"""

from __future__ import annotations

import io
import pickle
import re
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import torch
from torch import Tensor
from torch._weights_only_unpickler import Unpickler

from medusa_core.errors import ConversionError
from medusa_core.hub.convert.convert_tensors import DTYPES
from medusa_core.i18n import tr

_ZIP = b"PK\x03\x04"
_ZIP_END, _ZIP_END_BYTES = b"PK\x05\x06", 22
_HEADER_BYTES, _LENGTHS_AT = 30, 26  # local file header of a zip member
_ENCRYPTED = 1  # bit of a member's flags
_LEGACY = "legacy"
_KNOWN = (
    (b"\x80", _LEGACY),
    (b"GGUF", "a GGUF file"),
    (b"version https://git-lfs", "a pointer that git left in place of the file"),
    (b"<", "a web page"),
    (b"{", "JSON"),
)
_CALLED = re.compile(r"GLOBAL (\S+)")  # in torch's error messages
_OTHERWISE = tr("Get the weights as safetensors instead.")
_MISLEADING = tr("It is damaged, or made to mislead: download it again, or don't use it.")
_WEIGHTS_ALONE = tr("Choose the file with the weights alone.")


def load_tensors(path: Path, most_bytes: int) -> dict[str, Tensor]:
    """Map the tensors of a pickle from the file.

    Args:
        path: File that torch saved.
        most_bytes: Upper limit of all tensors' bytes.

    Raises:
        ConversionError: The file is damaged, misleads, or holds something besides tensors.
    """
    try:
        with path.open("rb") as file:
            _check_kind(file, path.name)
            archive = _read_archive(file, path.name)
    except OSError as error:
        raise ConversionError(
            tr("{0} can't be read: {1}.", path, error), "Check the disk."
        ) from error
    # zipfile raises various errors for damaged files.
    except (zipfile.BadZipFile, struct.error, RuntimeError, ValueError, EOFError) as error:
        raise _damaged(path.name, str(error)) from error
    mapping = cast(
        "torch.UntypedStorage",
        torch.UntypedStorage.from_file(str(path), shared=False, nbytes=path.stat().st_size),
    )
    unpickled = _unpickle(archive, mapping, path.name)
    if not isinstance(unpickled, Mapping) or not unpickled:
        raise ConversionError(tr("{0} holds no tensors by name.", path.name), _WEIGHTS_ALONE)
    tensors = {name: _checked(name, value, path.name) for name, value in unpickled.items()}
    if not all(_lies_within(tensor, mapping) for tensor in tensors.values()):
        raise ConversionError(
            tr("{0} holds a tensor without saved numbers.", path.name), _MISLEADING
        )
    if sum(tensor.nbytes for tensor in tensors.values()) > most_bytes:
        raise _too_large(path.name)
    return tensors


@dataclass(frozen=True, slots=True)
class _Archive:
    """Pickle of torch's zip, and the range of each storage in the file."""

    pickle: bytes
    storages: dict[str, tuple[int, int]]


def _check_kind(file: BinaryIO, name: str) -> None:
    """Check that a file is torch's zip, and that nothing follows the zip."""
    first = file.read(32)
    if not first.startswith(_ZIP):
        what = next((what for magic, what in _KNOWN if first.startswith(magic)), "of unknown kind")
        if what == _LEGACY:
            raise ConversionError(
                tr("{0} is in torch's format from before version 1.6, a bare pickle.", name),
                "On a computer where that does no harm, open it with "
                "torch.load(..., weights_only=True) and save it with safetensors.torch.",
            )
        raise ConversionError(
            tr("{0} is {1}, not a file that torch saved.", name, what if first else "empty"),
            _OTHERWISE,
        )
    file.seek(-min(_ZIP_END_BYTES, len(first)), io.SEEK_END)
    if not file.read().startswith(_ZIP_END):
        raise _damaged(name, tr("the zip's end is missing, or something follows it"))


def _read_archive(file: BinaryIO, name: str) -> _Archive:
    """Check the zip's members and locate the storages in the file."""
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        names = {entry.filename.casefold() for entry in entries}  # torch minds no capitals
        if len(names) < len(entries) or len({each.partition("/")[0] for each in names}) != 1:
            raise _damaged(name, tr("two members have one name, or they lie in different folders"))
        if min(entry.header_offset for entry in entries):
            raise _damaged(name, tr("something stands before the zip"))
        for entry in entries:
            is_stored = entry.compress_type == zipfile.ZIP_STORED
            if not is_stored or entry.flag_bits & _ENCRYPTED:
                raise ConversionError(
                    tr("{0} is compressed or encrypted; what it unfolds to isn't known.", name),
                    _OTHERWISE,
                )
        folder = entries[0].filename.partition("/")[0]
        order = f"{folder}/byteorder"
        if order in archive.namelist() and archive.read(order) != b"little":
            raise ConversionError(tr("The numbers in {0} are not little-endian.", name), _OTHERWISE)
        if f"{folder}/data.pkl" not in archive.namelist():
            raise _damaged(name, tr("it has no data.pkl"))
        data = f"{folder}/data/"
        return _Archive(
            archive.read(f"{folder}/data.pkl"),
            {
                entry.filename.removeprefix(data): _span(file, entry)
                for entry in entries
                if entry.filename.startswith(data)
            },
        )


def _span(file: BinaryIO, entry: zipfile.ZipInfo) -> tuple[int, int]:
    """Return the range of a member's bytes."""
    file.seek(entry.header_offset + _LENGTHS_AT)
    lengths = struct.unpack("<2H", file.read(4))  # of its name and its extra field
    begin = entry.header_offset + _HEADER_BYTES + sum(lengths)
    return begin, begin + entry.file_size


class _Storages(Unpickler):
    """torch's restricted unpickler, with storages that are slices of the mapped file."""

    def __init__(self, archive: _Archive, mapping: torch.UntypedStorage, name: str) -> None:
        super().__init__(io.BytesIO(archive.pickle), encoding="utf-8")
        self._archive, self._mapping, self._name = archive, mapping, name

    def persistent_load(self, pid: tuple[Any, ...]) -> torch.TypedStorage:
        """Return the storage that a pickle refers to."""
        _, kind, key, _, count = pid
        dtype = torch.uint8 if kind is torch.UntypedStorage else kind.dtype
        begin, end = self._archive.storages.get(str(key), (0, 0))
        is_whole = end - begin == count * dtype.itemsize
        if not is_whole or not 0 <= begin <= end <= self._mapping.nbytes():
            raise ConversionError(
                tr(
                    "{0} declares {1} bytes for storage {2}, but has {3}.",
                    self._name,
                    count * dtype.itemsize,
                    key,
                    end - begin,
                ),
                _MISLEADING,
            )
        part = self._mapping[begin:end]
        return torch.TypedStorage(wrap_storage=part, dtype=dtype, _internal=True)  # type: ignore[no-untyped-call]


def _unpickle(archive: _Archive, mapping: torch.UntypedStorage, name: str) -> object:
    """Unpickle an archive by torch's restricted unpickler."""
    try:
        return _Storages(archive, mapping, name).load()  # type: ignore[no-untyped-call]
    except ConversionError:
        raise
    except MemoryError as error:
        raise _too_large(name) from error
    except pickle.UnpicklingError as error:
        called = _CALLED.search(str(error))
        raise ConversionError(
            tr("{0} would call {1} when it is opened.", name, called[1])
            if called
            else tr("{0} would do more than rebuild tensors when it is opened.", name),
            "Tensors need nothing of the kind. Don't open this file with any program.",
        ) from error
    # torch raises nearly any exception for a damaged pickle.
    except Exception as error:
        raise _damaged(name, str(error)[:200] or type(error).__name__) from error


def _checked(name: object, value: object, file: str) -> Tensor:
    """Check that an unpickled value is a named tensor of a supported kind within the file."""
    if not isinstance(name, str) or not isinstance(value, Tensor):
        raise ConversionError(
            tr("{0} holds {1}, which is no tensor ({2}).", file, repr(name), type(value).__name__),
            _WEIGHTS_ALONE,
        )
    is_strided = value.layout == torch.strided and value.device.type == "cpu"
    if not is_strided or value.dtype not in DTYPES or value.is_neg():
        raise ConversionError(
            tr(
                "{0} in {1} is of a kind that safetensors doesn't hold ({2}).",
                name,
                file,
                value.dtype,
            ),
            "Choose the unquantized version of this model.",
        )
    return value.detach()


def _lies_within(tensor: Tensor, mapping: torch.UntypedStorage) -> bool:
    """Return whether a tensor is within the file: a pickle can also create uninitialized ones."""
    storage = tensor.untyped_storage()
    begin = storage.data_ptr() - mapping.data_ptr()
    return not storage.nbytes() or 0 <= begin <= mapping.nbytes() - storage.nbytes()


def _damaged(name: str, reason: str) -> ConversionError:
    """Make the error for a damaged file."""
    return ConversionError(
        tr("{0} is damaged or incomplete: {1}.", name, reason), "Download the file again."
    )


def _too_large(name: str) -> ConversionError:
    """Make the error for tensors larger than their file explains."""
    return ConversionError(
        tr(
            "The tensors of {0} unfold to more than its size explains, or than there is room.", name
        ),
        "It is damaged or made to fill memory: don't use it.",
    )
