"""One writer for each file of the cache, over threads, processes and programs.

The lock is the one that huggingface_hub takes for the same file, so that it waits for us and we for
it. The system releases it when a process dies.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from medusa_core.errors import DiskFullError
from medusa_core.hub.boundary import Boundary, printable
from medusa_core.hub.watch import Stopped

_LOOK_EVERY_S = 0.1


@contextmanager
def hold(
    boundary: Boundary,
    path: Path,
    stop: threading.Event,
    waits_for: Callable[[str], None] = lambda _: None,
) -> Iterator[None]:
    """Hold a lock, as a context manager; waits while another thread, process or program holds it.

    Args:
        boundary: The cache.
        path: The lock's file in it.
        stop: Ends the waiting.
        waits_for: Called with what is waited for.

    Raises:
        Stopped: `stop` was set.
        DiskFullError: The lock's file can't be made.
        RequestError: It leads out of the cache.
    """
    lock = _lock_at(boundary, path)
    if not _take(lock):
        waits_for("another download is fetching this file")
        while not _take(lock):
            if stop.wait(_LOOK_EVERY_S):
                raise Stopped
        waits_for("")
    try:
        yield
    finally:
        lock.release()


@contextmanager
def hold_if_free(boundary: Boundary, path: Path) -> Iterator[bool]:
    """Hold a lock if it is free, as a context manager; yields whether it is held."""
    lock = _lock_at(boundary, path)
    is_mine = _take(lock)
    try:
        yield is_mine
    finally:
        if is_mine:
            lock.release()


def _lock_at(boundary: Boundary, path: Path) -> FileLock:
    try:
        folder = boundary.make_folder(path.parent)
    except OSError as error:
        raise _unusable(path, error) from error
    return FileLock(folder / path.name)


def _take(lock: FileLock) -> bool:
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return False
    except OSError as error:
        raise _unusable(Path(lock.lock_file), error) from error
    return True


def _unusable(path: Path, error: OSError) -> DiskFullError:
    return DiskFullError(
        f"{printable(str(path))} can't be locked: {error.strerror or error}.",
        "Choose another folder for models, or look at the rights of this one.",
    )
