"""Reads GGUF files, llama.cpp's format for a model with its tokenizer and metadata.

Every count, length and offset is checked against the file's size before it is used.

Source: the format's description, https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

from __future__ import annotations

import re
import struct
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from medusa_core.errors import CheckpointError
from medusa_core.i18n import tr
from medusa_core.system.files.gguf_companions import check_has_layers, check_is_model
from medusa_core.system.files.gguf_header import (
    GgufArray,
    GgufHeader,
    Value,
    damaged,
    incomplete,
)
from medusa_core.system.files.gguf_keys import wrong_kind

SUFFIX = ".gguf"

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_MOST_ENTRIES = 1 << 16
_MOST_TENSORS = 1 << 16
_MOST_HEADER_BYTES = 256 << 20
_MOST_NAME_BYTES = 256
_MOST_DIMS = 4
_MOST_WEIGHTS = 1 << 48
_MOST_FILES = 1 << 10
_MOST_NUMBERS = 1 << 12  # elements of a tensor that is read as metadata
_SPLIT = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf")

# By type id: GGUF's name in lower case, elements of a block, bytes of a block.
_TYPES = {
    0: ("f32", 1, 4),
    1: ("f16", 1, 2),
    2: ("q4_0", 32, 18),
    3: ("q4_1", 32, 20),
    6: ("q5_0", 32, 22),
    7: ("q5_1", 32, 24),
    8: ("q8_0", 32, 34),
    10: ("q2_k", 256, 84),
    11: ("q3_k", 256, 110),
    12: ("q4_k", 256, 144),
    13: ("q5_k", 256, 176),
    14: ("q6_k", 256, 210),
    16: ("iq2_xxs", 256, 66),
    17: ("iq2_xs", 256, 74),
    18: ("iq3_xxs", 256, 98),
    19: ("iq1_s", 256, 50),
    20: ("iq4_nl", 32, 18),
    21: ("iq3_s", 256, 110),
    22: ("iq2_s", 256, 82),
    23: ("iq4_xs", 256, 136),
    26: ("i32", 1, 4),
    27: ("i64", 1, 8),
    29: ("iq1_m", 256, 56),
    30: ("bf16", 1, 2),
    34: ("tq1_0", 256, 54),
    35: ("tq2_0", 256, 66),
    39: ("mxfp4", 32, 17),
}
_Key = tuple[object, ...]
# Headers of a model that is about to be loaded, by its files and their times. Its heads are looked
# for by them before; parsing the vocabulary again would take a fifth of a second.
_held: dict[_Key, Gguf] = {}

_UNREAD = {
    9: "Q8_1", 15: "Q8_K", 24: "I8", 25: "I16", 28: "F64", 40: "NVFP4",
    41: "Q1_0",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """A tensor of a file.

    Attributes:
        kind: GGUF's name of its type, in lower case.
        shape: Shape in row-major order, the reverse of GGUF's.
        start: First byte in the file.
        nbytes: Size in bytes.
    """

    path: Path
    kind: str
    shape: tuple[int, ...]
    start: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Gguf:
    """Headers of a model's file, or of all files of a split model.

    Attributes:
        version: Version of the format.
        entries: Metadata of the first file, by key.
        tensors: Tensors of all files, by name.
        started_bytes: Number of bytes that are available of a partly downloaded file; None for all.
    """

    files: tuple[Path, ...]
    version: int
    entries: Mapping[str, Value]
    tensors: Mapping[str, GgufTensor]
    started_bytes: int | None = None

    def text(self, key: str, default: str = "") -> str:
        """Return a string of the metadata."""
        value = self.entries.get(key, default)
        return value if isinstance(value, str) else default

    def texts(self, key: str) -> list[str]:
        """Return a list of strings of the metadata; empty if the key is missing."""
        value = self.entries.get(key)
        return value if isinstance(value, list) else []

    def numbers(self, key: str) -> GgufArray:
        """Return an array of numbers of the metadata; empty if the key is missing."""
        value = self.entries.get(key)
        return value if isinstance(value, array) else []

    def has_vector(self, name: str) -> bool:
        """Whether there is a tensor of this name whose content is available."""
        tensor = self.tensors.get(name)
        if tensor is None or self.started_bytes is None:
            return tensor is not None
        return tensor.start + tensor.nbytes <= self.started_bytes

    def vector(self, name: str) -> tuple[float, ...]:
        """Read a short float32 tensor for which `has_vector` is true.

        Raises:
            CheckpointError: It has another type, is too long, or can't be read.
        """
        tensor = self.tensors[name]
        count = tensor.nbytes // 4
        if tensor.kind != "f32" or not 0 < count <= _MOST_NUMBERS:
            raise damaged(tensor.path, tr("{0} isn't a short list of numbers", name))
        try:
            with tensor.path.open("rb") as file:
                file.seek(tensor.start)
                data = file.read(tensor.nbytes)
        except OSError as error:
            raise _unreadable(tensor.path, error) from error
        if len(data) < tensor.nbytes:
            raise incomplete(tensor.path)
        return struct.unpack(f"<{count}f", data)

    @property
    def path(self) -> Path:
        """The file, or the first one of a split model."""
        return self.files[0]

    @property
    def architecture(self) -> str:
        """`general.architecture`, such as `llama`."""
        return self.text("general.architecture")

    def of_model(self, key: str) -> Value | None:
        """Return the value of `ARCHITECTURE.key`, such as `block_count`; None if it is missing."""
        return self.entries.get(f"{self.architecture}.{key}")


def is_gguf(path: Path) -> bool:
    """Whether a path is a GGUF file, by its suffix, or by its first bytes if it has none."""
    if path.is_dir():
        return False
    if path.suffix:
        return path.suffix.lower() == SUFFIX
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def names_of(name: str) -> tuple[str, ...]:
    """Return the names of all files of a split model, in order, given one of them."""
    match = _SPLIT.fullmatch(name)
    count = 1 if match is None else int(match["count"])
    if match is None or not 0 < count <= _MOST_FILES:
        return (name,)
    stem = match["stem"]
    return tuple(f"{stem}-{number:05}-of-{count:05}{SUFFIX}" for number in range(1, count + 1))


def is_first(path: PurePath) -> bool:
    """Whether a file is a whole model, or the first file of a split one."""
    return names_of(path.name)[0] == path.name


def files_of(path: Path) -> tuple[Path, ...]:
    """Return all files of a split model, in order, given one of them.

    Raises:
        CheckpointError: One is missing.
    """
    files = tuple(path.with_name(name) for name in names_of(path.name))
    missing = [file.name for file in files if not file.is_file()]
    if len(files) > 1 and missing:
        raise CheckpointError(
            tr(
                "{0} of {1} files of this model are missing, such as {2}.",
                len(missing),
                len(files),
                missing[0],
            ),
            "Put them into the same folder.",
        )
    return files


def read_gguf(path: Path, is_model: bool = True) -> Gguf:
    """Read the headers of a model's files.

    Args:
        path: The file, or one of a split model, such as `x-00001-of-00003.gguf`.
        is_model: Refuse files that only accompany a model, such as drafters and projectors.

    Raises:
        CheckpointError: A file is missing, damaged, of another format, or has an unsupported type.
        CompanionError: It accompanies a model.
    """
    files = files_of(path)
    if _held and (held := _held.get(_key_of(files, is_model))) is not None:
        return held
    parts = [_read_file(file, is_model) for file in files]
    tensors: dict[str, GgufTensor] = {}
    for part in parts:
        if twice := tensors.keys() & part.tensors.keys():
            raise damaged(part.files[0], tr("it holds {0} once more", min(twice)))
        tensors |= part.tensors
    if is_model:
        check_has_layers(path.name, parts[0].entries, tensors)
    if not tensors:
        raise damaged(path, tr("it holds no tensors"))
    return Gguf(files, parts[0].version, parts[0].entries, tensors)


def hold_headers(path: Path) -> None:
    """Read the headers of a model that is about to be loaded, and hold them for `read_gguf`.

    Raises:
        CheckpointError: As `read_gguf`.
        CompanionError: As `read_gguf`.
    """
    files = files_of(path)
    key = _key_of(files, True)
    if key not in _held:
        found = read_gguf(path)
        _held.clear()
        _held[key] = found


def release_headers() -> None:
    """Free held headers: once a tokenizer is made, the vocabulary is in memory twice."""
    _held.clear()


def _key_of(files: Sequence[Path], is_model: bool) -> _Key:
    """Return what changes with the content of files; empty if one is missing."""
    try:
        stats = [file.stat() for file in files]
    except OSError:
        return ()
    times = ((one.st_ino, one.st_size, one.st_mtime_ns) for one in stats)
    return (is_model, *((str(file), *found) for file, found in zip(files, times, strict=True)))


def read_beginning(path: Path, most_bytes: int, is_model: bool = True) -> Gguf:
    """Read the header of a partly downloaded file; see `read_gguf`.

    Raises:
        CheckpointError: The header doesn't end within these bytes; or see `read_gguf`.
    """
    return replace(_read_file(path, is_model, most_bytes), started_bytes=most_bytes)


def _read_file(path: Path, is_model: bool, most_bytes: int = _MOST_HEADER_BYTES) -> Gguf:
    """Read the header of a file; errors of the disk are converted."""
    try:
        with path.open("rb") as file:
            return _read(GgufHeader(file, path, most_bytes), path, is_model)
    except FileNotFoundError as error:
        raise CheckpointError(tr("No such file: {0}", path), "Choose another one.") from error
    except OSError as error:
        raise _unreadable(path, error) from error


def _read(header: GgufHeader, path: Path, is_model: bool) -> Gguf:
    """Parse a header and check keys and tensors."""
    if header.size < len(_MAGIC) or header.take(len(_MAGIC)) != _MAGIC:
        raise CheckpointError(tr("{0} isn't a GGUF model.", path.name), "Choose another file.")
    version = int(header.scalar("I"))
    if version not in _VERSIONS:
        is_big_endian = int.from_bytes(version.to_bytes(4, "little"), "big") in _VERSIONS
        raise header.damaged(
            tr("its numbers are big-endian")
            if is_big_endian
            else tr("it is of version {0}", version)
        )
    num_tensors = header.count(_MOST_TENSORS)
    entries: dict[str, Value] = {}
    for _ in range(header.count(_MOST_ENTRIES)):
        key = header.text(_MOST_NAME_BYTES)
        entries[key] = header.value()
    if wrong := wrong_kind(entries):
        raise header.damaged(wrong)
    if is_model:
        check_is_model(path.name, entries)
    found = [_Entry.read(header) for _ in range(num_tensors)]
    tensors = _placed(found, header, entries, path)
    return Gguf((path,), version, entries, tensors)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A tensor in the header."""

    name: str
    kind: str
    shape: tuple[int, ...]
    nbytes: int
    offset: int

    @classmethod
    def read(cls, header: GgufHeader) -> _Entry:
        """Parse the next tensor entry of the header."""
        name = header.text(_MOST_NAME_BYTES)
        num_dims = int(header.scalar("I"))
        if not 1 <= num_dims <= _MOST_DIMS:
            raise header.damaged(tr("{0} has {1} dimensions", name, num_dims))
        dims = [int(header.scalar("Q")) for _ in range(num_dims)]
        number, offset = int(header.scalar("I")), int(header.scalar("Q"))
        weights = 1
        for size in dims:
            weights *= size
            if not 0 < weights <= _MOST_WEIGHTS:
                raise header.damaged(tr("{0} has {1:,} of something", name, size))
        if number not in _TYPES:
            called = _UNREAD.get(number, f"number {number}")
            known = ", ".join(kind.upper() for kind, _, _ in _TYPES.values())
            raise CheckpointError(
                tr("{0}: {1} is of type {2}, which isn't supported.", header.name, name, called),
                tr("Choose a file with weights of {0}.", known),
            )
        kind, together, nbytes = _TYPES[number]
        if dims[0] % together:
            raise header.damaged(tr("rows of {0} aren't whole blocks", name))
        return cls(name, kind, tuple(reversed(dims)), weights // together * nbytes, offset)


def _placed(
    entries_found: Sequence[_Entry], header: GgufHeader, entries: Mapping[str, Value], path: Path
) -> dict[str, GgufTensor]:
    """Compute where tensors are in the file, and check that they don't overlap or exceed it."""
    alignment = entries.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 8 or alignment & (alignment - 1):
        raise header.damaged(tr("its alignment is no power of two"))
    begin = -(-header.position // alignment) * alignment
    tensors: dict[str, GgufTensor] = {}
    end = 0
    for entry in sorted(entries_found, key=lambda entry: entry.offset):
        if entry.name in tensors:
            raise header.damaged(tr("it holds {0} twice", entry.name))
        if entry.offset % alignment or entry.offset < end:
            raise header.damaged(tr("{0} begins where it mustn't", entry.name))
        end = entry.offset + entry.nbytes
        if begin + end > header.size:
            raise incomplete(path)
        place = begin + entry.offset
        tensors[entry.name] = GgufTensor(path, entry.kind, entry.shape, place, entry.nbytes)
    return tensors


def _unreadable(path: Path, error: OSError) -> CheckpointError:
    """Make the error for a file that can't be read."""
    return CheckpointError(tr("{0} can't be read: {1}.", path, error), "Check the disk.")
