"""What happened on the fake card, for tests to count."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from torch import Tensor


@dataclass(frozen=True, slots=True)
class Given:
    """One argument of a kernel call.

    Attributes:
        shape: Its shape.
        strides: Its strides, in numbers.
        offset_bytes: Where it begins in its storage, which itself is aligned to 512 bytes.
        itemsize: Bytes of a number.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset_bytes: int
    itemsize: int


@dataclass(frozen=True, slots=True)
class Attended:
    """One call of an attention kernel.

    Attributes:
        kernel: Which of torch's took it.
        given: Queries, keys, values, and the mask or None.
    """

    kernel: str
    given: tuple[Given | None, ...]


@dataclass(slots=True)
class Journal:
    """Counts since it was cleared.

    Attributes:
        uploads: Bytes of every copy from the host.
        downloads: Bytes of every copy to the host.
        attended: Calls of attention.
        num_launched: Operations that the host asked for.
        num_computing: Those that run a kernel or a copy: neither views nor allocations.
        num_replayed: Operations that a graph held.
        kernels: How often each of bitsandbytes' kernels ran.
    """

    uploads: list[int] = field(default_factory=list)
    downloads: list[int] = field(default_factory=list)
    attended: list[Attended] = field(default_factory=list)
    kernels: Counter[str] = field(default_factory=Counter)
    num_launched: int = 0
    num_computing: int = 0
    num_replayed: int = 0

    def clear(self) -> None:
        """Begin anew."""
        for kept in (self.uploads, self.downloads, self.attended, self.kernels):
            kept.clear()
        self.num_launched = self.num_computing = self.num_replayed = 0

    def copy(self, *, is_upload: bool, num_bytes: int) -> None:
        """Note a copy."""
        (self.uploads if is_upload else self.downloads).append(num_bytes)

    def attention(
        self, kernel: str, q: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None
    ) -> None:
        """Note what attention was given."""
        given = tuple(None if t is None else given_of(t) for t in (q, keys, values, mask))
        self.attended.append(Attended(kernel, given))


def given_of(tensor: Tensor) -> Given:
    """A tensor's layout."""
    offset_bytes = tensor.storage_offset() * tensor.itemsize
    return Given(tuple(tensor.shape), tensor.stride(), offset_bytes, tensor.itemsize)
