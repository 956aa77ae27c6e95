"""How fast layers come from a disk or to a card: measured once, and kept."""

from __future__ import annotations

import json
import logging
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import torch

from medusa_core.errors import MedusaError, TierError
from medusa_core.runtime.offload.layer_entries import ROUND_BYTES
from medusa_core.runtime.offload.layer_file import (
    PIECE_BYTES,
    SUFFIX,
    open_direct,
)
from medusa_core.runtime.offload.memory import page_buffer
from medusa_core.system import cuda
from medusa_core.system.files.atomic_file import replace_text
from medusa_core.system.files.json_file import read_json
from medusa_core.system.files.own_folder import make_own_folder

log = logging.getLogger(__name__)

_NBYTES = 256 << 20
_WRITTEN_BYTES = 1 << 20
_REPEATS = 3
_MOST_READS = 256
_SHORT_READS, _APART_BYTES = 128, 256 << 10


def disk_bytes_per_s(folder: Path, kept: Path | None, piece: int = 0) -> float:
    """Bytes a second that a disk gives past the page cache.

    Args:
        folder: On the disk; what was measured holds for all its folders.
        kept: File of what was measured; None measures anew.
        piece: Bytes that are read at once; 0 for many.

    Raises:
        TierError: The folder can't be written or read.
    """
    with measuring(folder):
        make_own_folder(folder)
        name = f"disk {folder.stat().st_dev}"
        return _once(name, kept, lambda: _read_rate(folder, piece))


def disk_read_s(folder: Path) -> float:
    """Seconds of a read that brings little, past the page cache, at places apart.

    Raises:
        TierError: The folder can't be written or read.
    """
    with measuring(folder), tempfile.NamedTemporaryFile(dir=folder, suffix=".part") as file:
        for _ in range(_SHORT_READS):
            file.write(os.urandom(_APART_BYTES))
        file.flush()
        os.fsync(file.fileno())
        return _short_read_s(Path(file.name))


def card_bytes_per_s(device: torch.device, kept: Path | None) -> float:
    """Bytes a second that a card takes from pinned memory; `kept` as in `disk_bytes_per_s`."""
    return _once(f"card {cuda.name(device)}", kept, lambda: _copy_rate(device))


@contextmanager
def measuring(folder: Path) -> Iterator[None]:
    """What is done with a disk to measure it.

    Raises:
        TierError: The folder can't be written or read.
    """
    try:
        yield
    except OSError as error:
        raise TierError(
            f"{folder} can't be measured: {error.strerror or error}.", "Name another folder."
        ) from error


def _once(name: str, kept: Path | None, measure: Callable[[], float]) -> float:
    known = _known(kept)
    if name not in known:
        known[name] = measure()
        _keep(kept, known)
    return known[name]


def _known(kept: Path | None) -> dict[str, float]:
    """What was measured; nothing where that can't be read."""
    if kept is None or not kept.is_file():
        return {}
    try:
        return {str(name): float(rate) for name, rate in read_json(kept).items() if rate > 0}
    except (MedusaError, TypeError, ValueError):
        log.warning("%s can't be read: bandwidths are measured anew", kept)
        return {}


def _keep(kept: Path | None, known: dict[str, float]) -> None:
    if kept is None:
        return
    try:
        replace_text(kept, json.dumps(known), durable=False)
    except OSError:
        log.warning("bandwidths aren't kept", exc_info=True)


def _read_rate(folder: Path, piece: int) -> float:
    with reads_of(folder, piece) as read:
        return max(_rate_of(read) for _ in range(_REPEATS))


def _rate_of(read: Callable[[], int]) -> float:
    size, started = 0, time.perf_counter()
    for _ in range(_MOST_READS):
        size += read()
        if size >= _NBYTES:
            break
    return size / (time.perf_counter() - started)


@contextmanager
def reads_of(folder: Path, piece: int) -> Iterator[Callable[[], int]]:
    """Reads of a disk past the page cache, from the beginning of a file to its end and again.

    Args:
        folder: On the disk. A file of layers there is read, else one that is written for it.
        piece: Bytes that are read at once; 0 for many.

    Yields:
        Reads a piece, and returns how many bytes came.

    Raises:
        OSError: The folder can't be written or read.
    """
    stored = [path for path in folder.glob(f"*{SUFFIX}") if path.stat().st_size >= _NBYTES]
    with ExitStack() as closing:
        path = stored[0] if stored else closing.enter_context(_written(folder))
        file = closing.enter_context(open_direct(path))
        buffer = page_buffer(piece or PIECE_BYTES).numpy().data

        def read() -> int:
            count: int = file.readinto(buffer)
            if count < len(buffer):
                file.seek(0)
            return count

        yield read


@contextmanager
def _written(folder: Path) -> Iterator[Path]:
    """A file to read."""
    with tempfile.NamedTemporaryFile(dir=folder, suffix=".part") as file:
        for _ in range(_NBYTES // _WRITTEN_BYTES):
            file.write(os.urandom(_WRITTEN_BYTES))  # budgets may be small
        file.flush()
        os.fsync(file.fileno())
        yield Path(file.name)


def _short_read_s(path: Path) -> float:
    buffer, places = page_buffer(ROUND_BYTES).numpy().data, list(range(_SHORT_READS))
    random.Random(1).shuffle(places)
    with open_direct(path) as file:
        started = time.perf_counter()
        for place in places:
            file.seek(place * _APART_BYTES)
            file.readinto(buffer)
        return (time.perf_counter() - started) / len(places)


def _copy_rate(device: torch.device) -> float:
    source = cuda.pinned(_NBYTES)
    to = torch.empty(_NBYTES, dtype=torch.uint8, device=device)
    aside = cuda.aside(device)

    def copy() -> None:
        aside.finish(aside.copy(to, source, None))

    return max(_NBYTES / cuda.seconds_of(copy, device) for _ in range(_REPEATS))
