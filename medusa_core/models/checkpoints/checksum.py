"""A checksum of a tensor's bytes, fast enough for every read of gigabytes."""

from __future__ import annotations

import os
import zlib
from concurrent.futures import Future, ThreadPoolExecutor

import torch
from torch import Tensor

PIECE_BYTES = 4 << 20  # fits into a processor's cache: it is summed soon after it was read
_MOST_THREADS = 4  # more wait for the memory


class Checksum:
    """The CRC-32 of the CRC-32s of pieces, which threads take while the next ones are read."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1))
        self._sums: list[Future[int]] = []

    def add(self, piece: memoryview) -> None:
        """Take the next piece; all but the last have `PIECE_BYTES`."""
        self._sums.append(self._pool.submit(zlib.crc32, piece))

    def finish(self) -> str:
        """The checksum of all pieces; none may follow."""
        self._pool.shutdown()
        return f"{zlib.crc32(b''.join(s.result().to_bytes(4, 'little') for s in self._sums)):08x}"


def checksum(tensor: Tensor) -> str:
    """The checksum of a tensor on the CPU, of any shape and dtype."""
    view = tensor.detach().contiguous().view(-1).view(torch.uint8).numpy().data
    whole = Checksum()
    for start in range(0, len(view), PIECE_BYTES):
        whole.add(view[start : start + PIECE_BYTES])
    return whole.finish()
