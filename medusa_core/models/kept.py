"""Quantized models kept on disk, so that the next load reads 4 GB instead of 13.

A kept model is one safetensors file, named by what it was made from: the checkpoint's files, the
formats, and the versions of what quantized them. It appears whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

import torch
from torch import Tensor

from medusa_core.errors import CheckpointError
from medusa_core.models.safetensors_header import LENGTH_BYTES, read_header

log = logging.getLogger(__name__)

_LAYOUT = 1  # of the file; another number makes old files strangers
_HEADER_ROOM = 1 << 20
_MOST_BYTES = 40 << 30
_FLOOR_BYTES = 2 << 30  # left free on the disk
_NAMES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int8: "I8",
    torch.uint8: "U8",
}


@dataclass(frozen=True, slots=True)
class KeptModel:
    """A file of the folder.

    Attributes:
        path: Where it is.
        nbytes: Its size.
        used_s: When it was last read, in seconds since 1970.
    """

    path: Path
    nbytes: int
    used_s: float


class KeptModels:
    """The folder of kept models."""

    def __init__(self, folder: Path, most_bytes: int = _MOST_BYTES) -> None:
        self._folder = folder
        self._most_bytes = most_bytes

    def find(self, key: str) -> Path | None:
        """The model of that key, whole; a damaged one is removed."""
        path = self._path(key)
        if not path.exists():
            return None
        try:
            read_header(path)
        except CheckpointError as error:
            log.warning("a kept model is damaged: %s", error.message)
            path.unlink(missing_ok=True)
            return None
        os.utime(path)
        return path

    def entries(self) -> tuple[KeptModel, ...]:
        """What is kept, the longest unused first."""
        found = []
        for path in self._folder.glob("*.safetensors"):
            status = path.stat()
            found.append(KeptModel(path, status.st_size, status.st_mtime))
        return tuple(sorted(found, key=lambda kept: kept.used_s))

    def remove_all(self) -> int:
        """Forget everything; returns the bytes freed."""
        return sum(_remove(kept) for kept in self.entries())

    def writer(self, key: str, nbytes: int) -> KeptWriter | None:
        """A writer for a model of about so many bytes, or None if it can't be kept."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            _remove_strays(self._folder)
            if not self._make_room(nbytes):
                return None
            return KeptWriter(self._path(key))
        except OSError:
            log.warning("the quantized model isn't kept", exc_info=True)
            return None

    def _make_room(self, nbytes: int) -> bool:
        if nbytes > self._most_bytes:
            return False
        kept = list(self.entries())
        while sum(one.nbytes for one in kept) + nbytes > self._most_bytes:
            _remove(kept.pop(0))
        free = shutil.disk_usage(self._folder).free
        if free - nbytes < _FLOOR_BYTES:
            log.warning("no room to keep a quantized model of %d bytes: %d are free", nbytes, free)
            return False
        return True

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.safetensors"


class KeptWriter:
    """Writes a safetensors file tensor by tensor; as a context, it places it when all went well."""

    def __init__(self, path: Path) -> None:
        self._path = path
        handle, name = tempfile.mkstemp(suffix=".part", dir=path.parent)
        self._part = Path(name)
        self._file: IO[bytes] = os.fdopen(handle, "wb")
        self._file.seek(LENGTH_BYTES + _HEADER_ROOM)
        self._header: dict[str, object] = {}
        self._end = 0
        self._failed = False

    def keep(self, name: str, tensor: Tensor) -> None:
        """Append a tensor; once that fails, nothing is kept."""
        if self._failed:
            return
        flat = tensor.detach().cpu().contiguous().view(-1).view(torch.uint8)
        self._header[name] = {
            "dtype": _NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [self._end, self._end + flat.numel()],
        }
        try:
            self._file.write(flat.numpy().data)
        except OSError:
            log.warning("the quantized model isn't kept", exc_info=True)
            self._failed = True
        self._end += flat.numel()

    def __enter__(self) -> KeptWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None and not self._failed:
                self._place()
        except OSError:
            log.warning("the quantized model isn't kept", exc_info=True)
        finally:
            self._file.close()
            self._part.unlink(missing_ok=True)

    def _place(self) -> None:
        header = json.dumps(self._header).encode()
        if len(header) > _HEADER_ROOM:
            log.warning("the quantized model has too many tensors to be kept")
            return
        self._file.seek(0)
        self._file.write(_HEADER_ROOM.to_bytes(LENGTH_BYTES, "little"))
        self._file.write(header.ljust(_HEADER_ROOM))
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._part.replace(self._path)


def kept_key(files: Iterable[Path], formats: dict[str, str | bool]) -> str:
    """Names a quantized model by what it was made from.

    Args:
        files: The checkpoint's files: each counts by its real name, size and time of change.
        formats: Names of the formats.
    """
    from importlib.metadata import version

    made_of = []
    for file in sorted(files):
        real = file.resolve()
        status = real.stat()
        made_of.append([file.name, real.name, status.st_size, status.st_mtime_ns])
    versions = {"layout": _LAYOUT, "bitsandbytes": version("bitsandbytes")}
    text = json.dumps([made_of, formats, versions], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _remove(kept: KeptModel) -> int:
    kept.path.unlink(missing_ok=True)
    return kept.nbytes


def _remove_strays(folder: Path) -> None:
    """What a killed program left half written."""
    for part in folder.glob("*.part"):
        part.unlink(missing_ok=True)
