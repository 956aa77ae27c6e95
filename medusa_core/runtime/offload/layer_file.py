"""A file of offloaded layers, each one aligned piece.

The first block points to the header, which follows all layers, because their sizes are known last.
The file is written atomically. It is read with O_DIRECT where the disk supports that: reading
all of it in each step would evict everything else from the page cache.
"""

from __future__ import annotations

import json
import logging
import os
import struct
import sys
import weakref
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from medusa_core.errors import TierError
from medusa_core.i18n import tr
from medusa_core.runtime.offload.disk_room import check_room, write_error
from medusa_core.runtime.offload.layer_entries import (
    ROUND_BYTES,
    LayerEntry,
    PartEntry,
    TensorBytes,
    entry_as_json,
    entry_from_json,
    place_tensors,
    rounded_up,
)
from medusa_core.system.files.atomic_file import AtomicFile
from medusa_core.system.files.own_folder import make_own_folder

log = logging.getLogger(__name__)

SUFFIX = ".layers"
UNDONE = ".layers.part"
PIECE_BYTES = 32 << 20  # of one read
_FIRST = struct.Struct("<8sQQIQ")  # magic, header offset, header length, header CRC-32, file size
_MAGIC = b"MDLAYER1"
_MOST_HEADER_BYTES = 64 << 20
_WHAT = "The layers"


class LayerFileWriter:
    """Writes a file layer by layer; as a context manager, it commits the file on success."""

    def __init__(self, path: Path, key: str, num_bytes: int) -> None:
        """Create a temporary file.

        Args:
            path: Target of the file.
            key: Identifies what the layers were made from; readers compare it.
            num_bytes: Expected size.

        Raises:
            TierError: The disk has too little room, or can't be written.
        """
        self._path = path
        self._key = key
        self._layers: dict[int, LayerEntry] = {}
        self._layer, self._parts = -1, list[PartEntry]()
        self._start = self._end = ROUND_BYTES
        self._crc = 0
        try:
            make_own_folder(path.parent)
            _remove_strays(path.parent)
            check_room(path.parent, num_bytes, _WHAT)
            self._target = AtomicFile(path, prefix=f"{os.getpid()}-", suffix=UNDONE)
            self._file = self._target.part.open("wb", buffering=0)
        except OSError as error:
            raise write_error(path.parent, error, _WHAT) from error
        self._file.seek(ROUND_BYTES)

    def add(self, layer: int, name: str, kind: str, tensors: Sequence[TensorBytes]) -> None:
        """Append a linear layer; those of a decoder layer must be consecutive.

        Raises:
            TierError: The disk is full or fails.
        """
        if layer != self._layer:
            self._end_layer()
            self._layer = layer
        places = place_tensors(tensors, self._end - self._start)
        for place, tensor in zip(places, tensors, strict=True):
            self._fill(self._start + place.offset)
            self._write(tensor.content)
        self._parts.append(PartEntry(name, kind, places))

    def __enter__(self) -> LayerFileWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._place()
        finally:
            self._file.close()
            self._target.discard()

    def _end_layer(self) -> None:
        """Pad the current layer to whole pages, and keep its entry."""
        if self._layer < 0:
            return
        self._fill(rounded_up(self._end))
        size = self._end - self._start
        self._layers[self._layer] = LayerEntry(self._start, size, self._crc, tuple(self._parts))
        self._start, self._crc, self._parts = self._end, 0, []

    def _place(self) -> None:
        """Write header and first block, sync the file, and give it its name."""
        self._end_layer()
        layers = {str(layer): entry_as_json(entry) for layer, entry in self._layers.items()}
        header = json.dumps({"key": self._key, "layers": layers}).encode()
        at = self._end
        self._write(memoryview(header))
        first = _FIRST.pack(_MAGIC, at, len(header), zlib.crc32(header), self._end)
        try:
            self._file.seek(0)
            self._file.write(first.ljust(ROUND_BYTES, b"\0"))
            os.fsync(self._file.fileno())  # only clean pages can be dropped
            _forget_pages(self._file.fileno())
            self._file.close()
            self._target.commit()
        except OSError as error:
            raise write_error(self._path.parent, error, _WHAT) from error

    def _fill(self, end: int) -> None:
        """Write zeros up to an offset."""
        self._write(memoryview(bytes(end - self._end)))

    def _write(self, content: memoryview) -> None:
        """Append bytes, and update the layer's checksum."""
        self._crc = zlib.crc32(content, self._crc)
        self._end += len(content)
        try:
            while content:
                content = content[self._file.write(content) :]
        except OSError as error:
            raise write_error(self._path.parent, error, _WHAT) from error


class LayerFile:
    """An open file of layers, read by one thread.

    Attributes:
        path: Path of the file.
        layers: Entries by layer index.
    """

    def __init__(self, path: Path, layers: dict[int, LayerEntry]) -> None:
        """Open a file whose header was read; see `find_layer_file`.

        Raises:
            TierError: It can't be opened.
        """
        self.path = path
        self.layers = layers
        self._unchecked = set(layers)
        self._file = open_direct(path)
        weakref.finalize(self, self._file.close)

    def read(self, layer: int, into: memoryview) -> None:
        """Read a layer; the first read of each layer compares its checksum.

        Args:
            layer: Index of the layer.
            into: Destination, as long as the piece and aligned to `ROUND_BYTES`.

        Raises:
            TierError: The disk fails, or the file was changed.
        """
        entry = self.layers[layer]
        try:
            self._file.seek(entry.offset)
            for start in range(0, entry.nbytes, PIECE_BYTES):
                self._fill(into[start : min(start + PIECE_BYTES, entry.nbytes)])
        except OSError as error:
            raise TierError(
                tr(
                    "Layer {0} can't be read from {1}: {2}.",
                    layer,
                    self.path,
                    error.strerror or error,
                ),
                "Check the disk, then load the model again.",
                layer=layer,
            ) from error
        if layer in self._unchecked:
            if zlib.crc32(into[: entry.nbytes]) != entry.crc:
                raise self._changed()
            self._unchecked.discard(layer)

    def _fill(self, into: memoryview) -> None:
        """Read until a buffer is full."""
        while into:
            count = self._file.readinto(into)
            if not count or count % ROUND_BYTES:
                raise self._changed()
            into = into[count:]

    def _changed(self) -> TierError:
        """Delete the damaged file, and return the error."""
        # The next load of the model writes it again.
        self.path.unlink(missing_ok=True)
        return TierError(
            tr(
                "The layers in {0} aren't what was written: the file was cut or changed.", self.path
            ),
            "Load the model again: they are written anew.",
        )


def find_layer_file(path: Path, key: str) -> LayerFile | None:
    """Open a file of layers.

    Returns:
        The file; None if it is missing, incomplete or made from something else.

    Raises:
        TierError: It can't be opened.
    """
    try:
        layers = _read_header(path, key)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        log.warning("%s is written anew: %s", path, error)
        return None
    return LayerFile(path, layers)


def _read_header(path: Path, key: str) -> dict[int, LayerEntry]:
    """Read the entries of a file.

    Raises:
        OSError: It can't be read.
        ValueError: It is incomplete, or made from something else.
    """
    with path.open("rb") as file:
        magic, at, length, crc, size = _FIRST.unpack(file.read(_FIRST.size))
        if magic != _MAGIC or size != path.stat().st_size or length > _MOST_HEADER_BYTES:
            raise ValueError("it isn't a whole file of layers")
        file.seek(at)
        header = file.read(length)
    if zlib.crc32(header) != crc:
        raise ValueError("its header is damaged")
    index: dict[str, Any] = json.loads(header)
    if index["key"] != key:
        raise ValueError("it was made of something else")
    layers = {int(layer): entry_from_json(entry) for layer, entry in index["layers"].items()}
    if any(entry.offset + entry.nbytes > at for entry in layers.values()):
        raise ValueError("a layer lies behind its end")
    return layers


def open_direct(path: Path, writes: bool = False) -> Any:
    """Open a file with O_DIRECT, or without it where the file system doesn't support that.

    Args:
        path: Path of the file.
        writes: Open it to write whole pages from page-aligned memory, not to read.

    Raises:
        TierError: It can't be opened.
    """
    direct = getattr(os, "O_DIRECT", 0)
    flags = (os.O_WRONLY if writes else os.O_RDONLY) | getattr(os, "O_BINARY", 0)
    try:
        try:
            handle = os.open(path, flags | direct)
        except OSError:  # such as tmpfs
            handle = os.open(path, flags)
    except OSError as error:
        raise TierError(
            tr("{0} can't be opened: {1}.", path, error.strerror), "Load the model again."
        ) from error
    return os.fdopen(handle, "wb" if writes else "rb", buffering=0)


def _forget_pages(handle: int) -> None:
    """Drop the file from the page cache, as it is read with O_DIRECT."""
    if sys.platform == "linux":
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)


def _remove_strays(folder: Path) -> None:
    """Delete temporary files of programs that no longer run."""
    for part in folder.glob(f"*{UNDONE}"):
        pid, _, _ = part.name.partition("-")
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            part.unlink(missing_ok=True)


def layer_files(folder: Path) -> tuple[tuple[Path, int], ...]:
    """List the files of layers in a folder, with their sizes in bytes."""
    found = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        with suppress(OSError), path.open("rb") as file:  # it may be deleted meanwhile
            if file.read(len(_MAGIC)) == _MAGIC:
                found.append((path, os.fstat(file.fileno()).st_size))
    return tuple(found)


def remove_layer_file(path: Path) -> int:
    """Delete a file of layers; on POSIX systems a model that reads it goes on.

    Returns:
        Number of bytes freed.

    Raises:
        TierError: It can't be deleted.
    """
    try:
        num_bytes = path.stat().st_size
        path.unlink()
    except OSError as error:
        raise TierError(
            tr("{0} can't be deleted: {1}.", path, error.strerror or error),
            "Load another model first: this one's layers are read from there.",
        ) from error
    return num_bytes
