"""Measure how fast disks, the link to a card and memory move bytes."""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import numpy as np
import torch

from medusa_core.errors import TierError
from medusa_core.i18n import tr
from medusa_core.loading.measure.timing import best_seconds
from medusa_core.runtime.offload.layer_entries import ROUND_BYTES
from medusa_core.runtime.offload.layer_file import PIECE_BYTES, SUFFIX, open_direct
from medusa_core.runtime.offload.memory import page_buffer
from medusa_core.system import cuda
from medusa_core.system.files.own_folder import make_own_folder

_READ_BYTES = 256 << 20  # beyond the cache of most disks
_MOVED_BYTES, _BLOCK_BYTES = 128 << 20, 4 << 20
_REPEATS = 3
_ROW_NUMBERS = 4096
_MAX_READS = 256
_SHORT_READS, _STRIDE_BYTES = 128, 256 << 10  # further apart than a disk reads ahead


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Report operating system errors as errors of the folder.

    Raises:
        TierError: The folder can't be written or read.
    """
    try:
        yield
    except OSError as error:
        raise TierError(
            tr("{0} can't be measured: {1}.", folder, error.strerror or error),
            "Name another folder.",
        ) from error


def disk_read_rate(folder: Path, piece: int = 0) -> float:
    """Measure sequential reads past the page cache. [bytes/s]

    Args:
        folder: Folder on the disk.
        piece: Bytes of each read; 0 for large reads.

    Raises:
        TierError: The folder can't be written or read.
    """
    with disk_errors(folder):
        make_own_folder(folder)
        with open_reads(folder, piece) as read:
            return max(_read_rate(read) for _ in range(_REPEATS))


def disk_read_latency(folder: Path) -> float:
    """Measure a small random read past the page cache. [s]

    Raises:
        TierError: The folder can't be written or read.
    """
    with disk_errors(folder), tempfile.NamedTemporaryFile(dir=folder, suffix=".part") as file:
        _write(file, _SHORT_READS * _STRIDE_BYTES)
        buffer, places = page_buffer(ROUND_BYTES).numpy().data, list(range(_SHORT_READS))
        random.Random(1).shuffle(places)
        with open_direct(Path(file.name)) as reading:
            started = time.perf_counter()
            for place in places:
                reading.seek(place * _STRIDE_BYTES)
                reading.readinto(buffer)
            return (time.perf_counter() - started) / len(places)


def disk_write_rate(folder: Path) -> float:
    """Measure writes that reach the disk. [bytes/s]

    Raises:
        TierError: Nothing can be written to the folder.
    """
    with disk_errors(folder), tempfile.TemporaryFile(dir=folder) as file:
        started = time.perf_counter()
        _write(file, _MOVED_BYTES)
        return _MOVED_BYTES / (time.perf_counter() - started)


@contextmanager
def open_reads(folder: Path, piece: int) -> Iterator[Callable[[], int]]:
    """Open a large file for sequential reads past the page cache, from start to end and again.

    Args:
        folder: Folder on the disk. A layer file there is read if there is one, else a temporary
            file is written.
        piece: Bytes of each read; 0 for large reads.

    Yields:
        Function that reads the next piece and returns its number of bytes.

    Raises:
        OSError: The folder can't be written or read.
    """
    stored = [path for path in folder.glob(f"*{SUFFIX}") if path.stat().st_size >= _READ_BYTES]
    with ExitStack() as closing:
        if stored:
            path = stored[0]
        else:
            temporary = tempfile.NamedTemporaryFile(dir=folder, suffix=".part")  # noqa: SIM115
            _write(closing.enter_context(temporary), _READ_BYTES)
            path = Path(temporary.name)
        file = closing.enter_context(open_direct(path))
        buffer = page_buffer(piece or PIECE_BYTES).numpy().data

        def read() -> int:
            """Read the next piece; at the end of the file, start again."""
            count: int = file.readinto(buffer)
            if count < len(buffer):
                file.seek(0)
            return count

        yield read


def to_card_rate(device: torch.device) -> float:
    """Measure copies from pinned memory to a card. [bytes/s]"""
    source = cuda.pinned(_READ_BYTES)
    target = torch.empty(_READ_BYTES, dtype=torch.uint8, device=device)
    stream = cuda.copy_stream(device)

    def copy() -> None:
        """Copy once to the card, and wait for it."""
        stream.synchronize(stream.copy(target, source, None))

    return max(_READ_BYTES / cuda.seconds_of(copy, device) for _ in range(_REPEATS))


def from_card_rate(device: torch.device) -> float:
    """Measure copies from a card to pinned memory. [bytes/s]"""
    target = cuda.pinned(_MOVED_BYTES)
    source = torch.empty(_MOVED_BYTES, dtype=torch.uint8, device=device)

    def copy() -> None:
        """Copy once from the card, and wait for it."""
        target.copy_(source)
        cuda.wait(device)

    return _MOVED_BYTES / best_seconds(copy)


def card_round_trip(device: torch.device) -> float:
    """Measure copies of a row of activations from a card and back. [s]"""
    row = torch.zeros(_ROW_NUMBERS, device=device)

    def round_trip() -> None:
        """Copy a row to the processor and back."""
        cuda.download(row)().to(device)
        cuda.wait_for_computing(device)

    round_trip()
    return best_seconds(round_trip)


def memory_copy_rate() -> float:
    """Measure how fast one core copies from one place in memory to another. [bytes/s]"""
    target, source = (np.ones(4 * _BLOCK_BYTES, dtype=np.uint8) for _ in range(2))
    return len(source) / best_seconds(lambda: np.copyto(target, source))


def _read_rate(read: Callable[[], int]) -> float:
    """Measure a function that reads some bytes and returns their number. [bytes/s]"""
    size, started = 0, time.perf_counter()
    for _ in range(_MAX_READS):
        size += read()
        if size >= _READ_BYTES:
            break
    return size / (time.perf_counter() - started)


def _write(file: IO[bytes], nbytes: int) -> None:
    """Write random bytes, which no disk compresses, block by block: budgets may be small."""
    block = os.urandom(min(nbytes, _BLOCK_BYTES))
    for _ in range(-(-nbytes // len(block))):
        file.write(block)
    file.flush()
    os.fsync(file.fileno())
