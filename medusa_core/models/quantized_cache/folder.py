"""Cache of quantized models on disk, so that the next load reads 4 GB instead of 13.

A model is one safetensors file. Its name is a hash of the checkpoint's files, the formats, and the
versions of the libraries that quantized it. Files are written atomically.
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

_LAYOUT = 2  # version of the file's layout; part of the key, so that older files aren't read
_MAX_BYTES = 40 << 30
_FREE_BYTES = 2 << 30  # left free on the disk


@dataclass(frozen=True, slots=True)
class QuantizedModel:
    """A file of the cache.

    Attributes:
        nbytes: Its size.
        used_s: Time of the last read, in seconds since 1970.
    """

    path: Path
    nbytes: int
    used_s: float


class QuantizedModels:
    """The folder of the cache."""

    def __init__(self, folder: Path, max_bytes: int = _MAX_BYTES) -> None:
        self._folder = folder
        self._max_bytes = max_bytes

    def find(self, key: str) -> Path | None:
        """Find a model by its key, or None; a file with a damaged header is removed."""
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
        """Remove a damaged file."""
        log.warning("a cached quantized model is damaged and will be made again: %s", error.message)
        try:
            path.unlink(missing_ok=True)
        except OSError:
            log.warning("can't remove a damaged cached model", exc_info=True)

    def entries(self) -> tuple[QuantizedModel, ...]:
        """List the files, least recently used first."""
        files = [(path, path.stat()) for path in self._folder.glob("*.safetensors")]
        found = [QuantizedModel(path, status.st_size, status.st_mtime) for path, status in files]
        return tuple(sorted(found, key=lambda model: model.used_s))

    def remove_all(self) -> int:
        """Empty the cache and return the number of bytes freed."""
        return sum(map(_remove, self.entries()))

    def writer(self, key: str, nbytes: int) -> QuantizedWriter | None:
        """Open a writer for a model of about `nbytes`; None if there is no room for it."""
        from medusa_core.models.quantized_cache.writer import QuantizedWriter

        try:
            make_own_folder(self._folder)
            _remove_strays(self._folder)
            if not self._make_room(nbytes):
                return None
            return QuantizedWriter(self._path(key))
        except OSError:
            log.warning("can't cache the quantized model", exc_info=True)
            return None

    def _make_room(self, nbytes: int) -> bool:
        """Evict the least recently used models until `nbytes` fit; False if they can't."""
        if nbytes > self._max_bytes:
            return False
        cached = list(self.entries())
        while sum(model.nbytes for model in cached) + nbytes > self._max_bytes:
            _remove(cached.pop(0))
        free = shutil.disk_usage(self._folder).free
        if free - nbytes < _FREE_BYTES:
            log.warning("no room to cache a quantized model of %d bytes: %d are free", nbytes, free)
            return False
        return True

    def _path(self, key: str) -> Path:
        """Return the path of the model with this key."""
        return self._folder / f"{key}.safetensors"


def quantized_key(files: Iterable[Path], formats: dict[str, str | bool]) -> str:
    """Return a hash of everything that determines a quantized model: files and formats.

    Args:
        files: The checkpoint's files, of which names, sizes and modification times are hashed.
        formats: Names of the formats.
    """
    stamps = []
    for file in sorted(files):
        real = file.resolve()
        status = real.stat()
        stamps.append([file.name, real.name, status.st_size, status.st_mtime_ns])
    versions = {"layout": _LAYOUT, "bitsandbytes": version_of("bitsandbytes")}
    text = json.dumps([stamps, formats, versions], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _remove(model: QuantizedModel) -> int:
    """Delete a cached model and return its size in bytes."""
    model.path.unlink(missing_ok=True)
    return model.nbytes


def _remove_strays(folder: Path) -> None:
    """Remove temporary files of processes that were killed."""
    for part in folder.glob("*.part"):
        part.unlink(missing_ok=True)
