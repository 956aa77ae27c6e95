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
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from medusa_core.errors import CheckpointError
from medusa_core.system.components import version_of
from medusa_core.system.files.own_folder import make_own_folder
from medusa_core.system.files.safetensors_header import read_header

if TYPE_CHECKING:
    from medusa_core.models.quantized_cache.writer import QuantizedWriter

log = logging.getLogger(__name__)

_LAYOUT = 2  # of the file; another number makes old files strangers
_MOST_BYTES = 40 << 30
_FLOOR_BYTES = 2 << 30  # left free on the disk


@dataclass(frozen=True, slots=True)
class QuantizedModel:
    """A file of the folder.

    Attributes:
        path: Where it is.
        nbytes: Its size.
        used_s: When it was last read, in seconds since 1970.
    """

    path: Path
    nbytes: int
    used_s: float


class QuantizedModels:
    """The folder of kept models."""

    def __init__(self, folder: Path, most_bytes: int = _MOST_BYTES) -> None:
        self._folder = folder
        self._most_bytes = most_bytes

    def find(self, key: str) -> Path | None:
        """The model of that key, with a header that is whole; a damaged one is removed."""
        path = self._path(key)
        if not path.exists():
            return None
        try:
            read_header(path)
        except CheckpointError as error:
            self.discard(path, error)
            return None
        os.utime(path)
        return path

    def discard(self, path: Path, error: CheckpointError) -> None:
        """Remove a model that isn't what was kept."""
        log.warning("a kept model is damaged and made anew: %s", error.message)
        try:
            path.unlink(missing_ok=True)
        except OSError:
            log.warning("it can't be removed", exc_info=True)

    def entries(self) -> tuple[QuantizedModel, ...]:
        """What is kept, the longest unused first."""
        found = []
        for path in self._folder.glob("*.safetensors"):
            status = path.stat()
            found.append(QuantizedModel(path, status.st_size, status.st_mtime))
        return tuple(sorted(found, key=lambda kept: kept.used_s))

    def remove_all(self) -> int:
        """Forget everything; returns the bytes freed."""
        return sum(_remove(kept) for kept in self.entries())

    def writer(self, key: str, nbytes: int) -> QuantizedWriter | None:
        """A writer for a model of about so many bytes, or None if it can't be kept."""
        from medusa_core.models.quantized_cache.writer import QuantizedWriter

        try:
            make_own_folder(self._folder)
            _remove_strays(self._folder)
            if not self._make_room(nbytes):
                return None
            return QuantizedWriter(self._path(key))
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


def quantized_key(files: Iterable[Path], formats: dict[str, str | bool]) -> str:
    """Names a quantized model by what it was made from.

    Args:
        files: The checkpoint's files: each counts by its real name, size and time of change.
        formats: Names of the formats.
    """
    made_of = []
    for file in sorted(files):
        real = file.resolve()
        status = real.stat()
        made_of.append([file.name, real.name, status.st_size, status.st_mtime_ns])
    versions = {"layout": _LAYOUT, "bitsandbytes": version_of("bitsandbytes")}
    text = json.dumps([made_of, formats, versions], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _remove(model: QuantizedModel) -> int:
    model.path.unlink(missing_ok=True)
    return model.nbytes


def _remove_strays(folder: Path) -> None:
    """What a killed program left half written."""
    for part in folder.glob("*.part"):
        part.unlink(missing_ok=True)
