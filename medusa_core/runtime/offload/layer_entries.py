"""What a piece of memory or of a file holds of one layer: which parts, and where in it.

A layer is one piece, so that it is brought by one read. Nothing here needs torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

ROUND_BYTES = 4096  # pieces begin and end at such multiples: direct reads ask for it
ALIGN_BYTES = 256  # tensors in a piece: what a card's and a processor's loads ask for
NUM_BUFFERS = 3  # one layer is computed while the next two are read
# A part's kind, and the dtype and shape of each of its tensors.
Signature = tuple[str, tuple[tuple[str, tuple[int, ...]], ...]]


class TensorPlace(NamedTuple):
    """A tensor in a piece.

    Attributes:
        dtype: Torch's name of its dtype.
        shape: Its shape.
        offset: Its first byte, from the piece's beginning.
        nbytes: Its size.
    """

    dtype: str
    shape: tuple[int, ...]
    offset: int
    nbytes: int


class PartEntry(NamedTuple):
    """A linear part in a piece.

    Attributes:
        name: What it is called, such as `layers.0.qkv`.
        kind: Names everything but its numbers.
        tensors: Where these lie.
    """

    name: str
    kind: str
    tensors: tuple[TensorPlace, ...]

    @property
    def signature(self) -> Signature:
        """Equal for parts that differ in their numbers alone."""
        return self.kind, tuple((tensor.dtype, tensor.shape) for tensor in self.tensors)


@dataclass(frozen=True, slots=True)
class LayerEntry:
    """A layer as it lies.

    Attributes:
        offset: First byte of its piece, from the file's beginning.
        nbytes: The piece's size, a multiple of `ROUND_BYTES`.
        crc: CRC-32 of the piece.
        parts: What it holds.
    """

    offset: int
    nbytes: int
    crc: int
    parts: tuple[PartEntry, ...]


class TensorBytes(NamedTuple):
    """A tensor to be stored.

    Attributes:
        dtype: Torch's name of its dtype.
        shape: Its shape.
        content: Its bytes.
    """

    dtype: str
    shape: tuple[int, ...]
    content: memoryview


def place_tensors(tensors: Sequence[TensorBytes], end: int) -> tuple[TensorPlace, ...]:
    """Places of a part's tensors behind the first `end` bytes of a piece."""
    places = []
    for tensor in tensors:
        offset = rounded_up(end, ALIGN_BYTES)
        places.append(TensorPlace(tensor.dtype, tensor.shape, offset, len(tensor.content)))
        end = offset + len(tensor.content)
    return tuple(places)


def rounded_up(size: int, multiple: int = ROUND_BYTES) -> int:
    """The next multiple."""
    return -(-size // multiple) * multiple


def entry_as_json(entry: LayerEntry) -> list[Any]:
    """An entry for a file's header."""
    return [entry.offset, entry.nbytes, entry.crc, entry.parts]


def entry_from_json(saved: Any) -> LayerEntry:
    """An entry of a file's header.

    Raises:
        ValueError: It is none, or a tensor lies outside its piece.
        TypeError: A value has another type.
    """
    offset, nbytes, crc, parts = saved
    read = tuple(
        PartEntry(str(name), str(kind), tuple(_place(*tensor) for tensor in tensors))
        for name, kind, tensors in parts
    )
    inside = all(
        tensor.offset >= 0 and tensor.offset + tensor.nbytes <= nbytes
        for part in read
        for tensor in part.tensors
    )
    if not inside or offset % ROUND_BYTES or nbytes % ROUND_BYTES:
        raise ValueError("a tensor lies outside its layer")
    return LayerEntry(int(offset), int(nbytes), int(crc), read)


def _place(dtype: str, shape: Sequence[int], offset: int, nbytes: int) -> TensorPlace:
    if nbytes < prod(shape):  # no number is smaller than a byte
        raise ValueError("a tensor is larger than its place")
    return TensorPlace(str(dtype), tuple(map(int, shape)), int(offset), int(nbytes))
