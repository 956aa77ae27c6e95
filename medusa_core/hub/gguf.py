"""Reads the description in a GGUF file, and says what to get instead.

Source: the format's description, https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from medusa_core.errors import CheckpointError

_MAGIC = b"GGUF"
_VERSIONS = (1, 2, 3)
_MOST_ENTRIES = 1 << 16
_MOST_ITEMS = 1 << 24
_MOST_TEXT_BYTES = 1 << 20
_MOST_HEADER_BYTES = 256 << 20
_SCALARS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
_STRING, _ARRAY = 8, 9
_QUANTIZATIONS = {
    0: "F32",
    1: "F16",
    2: "Q4_0",
    3: "Q4_1",
    7: "Q8_0",
    8: "Q5_0",
    9: "Q5_1",
    10: "Q2_K",
    11: "Q3_K_S",
    12: "Q3_K_M",
    13: "Q3_K_L",
    14: "Q4_K_S",
    15: "Q4_K_M",
    16: "Q5_K_S",
    17: "Q5_K_M",
    18: "Q6_K",
    19: "IQ2_XXS",
    20: "IQ2_XS",
    21: "Q2_K_S",
    22: "IQ3_XS",
    23: "IQ3_XXS",
    24: "IQ1_S",
    25: "IQ4_NL",
    26: "IQ3_S",
    27: "IQ3_M",
    28: "IQ2_S",
    29: "IQ2_M",
    30: "IQ4_XS",
    31: "IQ1_M",
    32: "BF16",
    36: "TQ1_0",
    37: "TQ2_0",
}
_REPOSITORIES = (
    "general.base_model.0.repo_url",
    "general.source.huggingface.repository",
    "general.source.repo_url",
    "general.repo_url",
)
_HUB = "https://huggingface.co/"


@dataclass(frozen=True, slots=True)
class GgufInfo:
    """What a GGUF file says about itself; texts are empty where it says nothing.

    Attributes:
        version: Of the format.
        num_tensors: Tensors in the file.
        architecture: Such as `llama`.
        name: Of the model.
        quantization: Such as `Q4_K_M`.
        size_label: Such as `7B`.
        repository: Where the model that it was made from is.
    """

    version: int
    num_tensors: int
    architecture: str = ""
    name: str = ""
    quantization: str = ""
    size_label: str = ""
    repository: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a file can't be used, and what can.

    Attributes:
        message: What it is.
        hint: What to get instead.
    """

    message: str
    hint: str


def explain_gguf(path: Path) -> Explanation:
    """Say what a GGUF file is, and what to get in its place.

    Raises:
        CheckpointError: It is damaged, or isn't GGUF.
    """
    info = read_gguf(path)
    facts = [part for part in (info.size_label, info.architecture, info.quantization) if part]
    called = f"{info.name} " if info.name else ""
    message = (
        f"{path.name} is {called}in llama.cpp's format GGUF"
        + (f" ({', '.join(facts)})" if facts else "")
        + ", which Medusa Chat doesn't load."
    )
    wanted = info.repository or (info.name and f"{info.name}, the repository without “GGUF”")
    return Explanation(
        message,
        f"Get the same model as safetensors: {wanted or 'the repository that it was made from'}. "
        "It is quantized to 4 bits while it loads.",
    )


def read_gguf(path: Path) -> GgufInfo:
    """Read what a GGUF file says about itself; no tensor is touched.

    Raises:
        CheckpointError: It is damaged, or isn't GGUF.
    """
    try:
        with path.open("rb") as file:
            return _read(_Header(file, path))
    except FileNotFoundError as error:
        raise CheckpointError(f"{path} doesn't exist.", "Choose a file that does.") from error
    except OSError as error:
        raise CheckpointError(f"{path} can't be read: {error}.", "Check the disk.") from error


def _read(header: _Header) -> GgufInfo:
    if header.take(4) != _MAGIC:
        raise header.damaged("it doesn't begin as GGUF does")
    version = int(header.scalar("<I"))
    if version not in _VERSIONS:
        is_big_endian = int.from_bytes(version.to_bytes(4, "little"), "big") in _VERSIONS
        raise header.damaged(
            "its numbers are big-endian" if is_big_endian else f"it is of version {version}"
        )
    header.count_format = "<I" if version == 1 else "<Q"
    num_tensors = header.count(_MOST_ITEMS)
    entries: dict[str, str | int | float] = {}
    for _ in range(header.count(_MOST_ENTRIES)):
        key = header.text()
        value = header.value(int(header.scalar("<I")))
        if value is not None:
            entries[key] = value
    kind = entries.get("general.file_type")
    return GgufInfo(
        version,
        num_tensors,
        architecture=_text(entries, "general.architecture"),
        name=_text(entries, "general.name") or _text(entries, "general.basename"),
        quantization=_QUANTIZATIONS.get(kind, "") if isinstance(kind, int) else "",
        size_label=_text(entries, "general.size_label"),
        repository=next((url for key in _REPOSITORIES if (url := _text(entries, key))), ""),
    )


def _text(entries: dict[str, str | int | float], key: str) -> str:
    """A text of one line: it is shown to people."""
    value = entries.get(key)
    if not isinstance(value, str):
        return ""
    return "".join(c for c in value if c.isprintable()).removeprefix(_HUB)[:200]


class _Header:
    """The beginning of a file, read with bounds."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file, self._name = file, path.name
        self._left = min(path.stat().st_size, _MOST_HEADER_BYTES)
        self.count_format = "<Q"

    def take(self, count: int) -> bytes:
        """So many bytes."""
        data = self._file.read(count) if count <= self._left else b""
        if len(data) < count:
            raise self.damaged("it ends within its header, or the header is too long")
        self._left -= count
        return data

    def skip(self, count: int) -> None:
        """Go past so many bytes."""
        if count > self._left:
            raise self.damaged("it ends within its header, or the header is too long")
        self._file.seek(count, 1)
        self._left -= count

    def scalar(self, form: str) -> int | float:
        """One number."""
        number: int | float = struct.unpack(form, self.take(struct.calcsize(form)))[0]
        return number

    def count(self, most: int) -> int:
        """How many of something follow."""
        count = int(self.scalar(self.count_format))
        if count > most:
            raise self.damaged(f"it promises {count:,} of something")
        return count

    def text(self) -> str:
        """A text with its length before it."""
        return self.take(self.count(_MOST_TEXT_BYTES)).decode(errors="replace")

    def value(self, kind: int) -> str | int | float | None:
        """A text or a number; None for a list, which is passed over."""
        if kind == _STRING:
            return self.text()
        if kind == _ARRAY:
            self._pass_over_list()
            return None
        if kind not in _SCALARS:
            raise self.damaged(f"it holds a value of the unknown kind {kind}")
        return self.scalar(_SCALARS[kind])

    def _pass_over_list(self) -> None:
        kind = int(self.scalar("<I"))
        count = self.count(_MOST_ITEMS)
        if kind == _STRING:
            for _ in range(count):
                self.skip(self.count(_MOST_TEXT_BYTES))
        elif kind in _SCALARS:
            self.skip(count * struct.calcsize(_SCALARS[kind]))
        else:
            raise self.damaged(f"it holds a list of the unknown kind {kind}")

    def damaged(self, reason: str) -> CheckpointError:
        """What to raise."""
        return CheckpointError(
            f"{self._name} is no GGUF file that can be read: {reason}.", "Download it again."
        )
