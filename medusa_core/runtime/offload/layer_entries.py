"""Layout of a layer in memory or in a file: the offset of each tensor of its linear layers.

A layer is one contiguous piece, so that one read loads it. Nothing here needs torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

ROUND_BYTES = 4096  # pieces begin and end at multiples of it, as O_DIRECT requires
ALIGN_BYTES = 256  # of tensors in a piece, for vector loads of GPUs and processors
NUM_BUFFERS = 3  # one layer is computed while the next two are read
# The kind of a linear layer, and the dtype and shape of each of its tensors.
Signature = tuple[str, tuple[tuple[str, tuple[int, ...]], ...]]


class TensorPlace(NamedTuple):
    """A tensor in a piece.

    Attributes:
        dtype: Name of a torch dtype.
        shape: Shape of the tensor.
        offset: First byte, from the start of the piece.
        nbytes: Size in bytes.
    """

    dtype: str
    shape: tuple[int, ...]
    offset: int
    nbytes: int


class PartEntry(NamedTuple):
    """A linear layer of a piece (the unit that is read from disk).

    Attributes:
        name: Name such as `layers.0.qkv`.
        kind: Shape, format and dtypes of the layer.
        tensors: Offsets and dtypes of its tensors in the piece.
    """

    name: str
    kind: str
    tensors: tuple[TensorPlace, ...]

    @property
    def signature(self) -> Signature:
        """Equal for linear layers that differ only in the values of their tensors."""
        return self.kind, tuple((tensor.dtype, tensor.shape) for tensor in self.tensors)


@dataclass(frozen=True, slots=True)
class LayerEntry:
    """A decoder layer in a file or in memory.

    Attributes:
        offset: First byte of its piece in the file.
        nbytes: Size of the piece, a multiple of `ROUND_BYTES`.
        crc: CRC-32 of the piece.
        parts: Its linear layers.
    """

    offset: int
    nbytes: int
    crc: int
    parts: tuple[PartEntry, ...]


class TensorBytes(NamedTuple):
    """A tensor to be stored.

    Attributes:
        dtype: Name of a torch dtype.
        shape: Shape of the tensor.
        content: Its bytes.
    """

    dtype: str
    shape: tuple[int, ...]
    content: memoryview


def place_tensors(tensors: Sequence[TensorBytes], end: int) -> tuple[TensorPlace, ...]:
    """Place tensors after the first `end` bytes of a piece."""
    places = []
    for tensor in tensors:
        offset = rounded_up(end, ALIGN_BYTES)
        places.append(TensorPlace(tensor.dtype, tensor.shape, offset, len(tensor.content)))
        end = offset + len(tensor.content)
    return tuple(places)


def rounded_up(size: int, multiple: int = ROUND_BYTES) -> int:
    """Round a size up to a multiple."""
    return -(-size // multiple) * multiple


def entry_as_json(entry: LayerEntry) -> list[Any]:
    """Return an entry as JSON for a file's header."""
    return [entry.offset, entry.nbytes, entry.crc, entry.parts]


def entry_from_json(saved: Any) -> LayerEntry:
    """Parse an entry of a file's header.

    Raises:
        ValueError: It isn't an entry, or a tensor extends beyond its piece.
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
    """Parse the place of a tensor, which must be large enough for its shape."""
    if nbytes < prod(shape):  # an element has at least one byte
        raise ValueError("a tensor is larger than its place")
    return TensorPlace(str(dtype), tuple(map(int, shape)), int(offset), int(nbytes))
