"""Locks of the cache's files among threads, processes and programs.

huggingface_hub takes the same lock for the same file, so both programs wait for each other. The
system releases it when a process dies.
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
from medusa_core.i18n import tr

_POLL_S = 0.1


@contextmanager
def hold(
    boundary: Boundary,
    path: Path,
    stop: threading.Event,
    waits_for: Callable[[str], None] = lambda _: None,
) -> Iterator[None]:
    """Hold a lock; waits while another thread, process or program holds it.

    Args:
        path: Lock file in the cache.
        stop: Ends the waiting.
        waits_for: Called with the reason of a wait, for people; empty when it ends.

    Raises:
        Stopped: `stop` was set.
        DiskFullError: The lock file can't be created.
        RequestError: Its path leaves the cache.
    """
    lock = _lock_at(boundary, path)
    if not _try_acquire(lock):
        waits_for(tr("another download is fetching this file"))
        while not _try_acquire(lock):
            if stop.wait(_POLL_S):
                raise Stopped
        waits_for("")
    try:
        yield
    finally:
        lock.release()


@contextmanager
def hold_if_free(boundary: Boundary, path: Path) -> Iterator[bool]:
    """Hold a lock if it is free; yields whether it is held."""
    lock = _lock_at(boundary, path)
    is_held = _try_acquire(lock)
    try:
        yield is_held
    finally:
        if is_held:
            lock.release()


def _lock_at(boundary: Boundary, path: Path) -> FileLock:
    """Return the lock of a path in the cache, with its folder created."""
    try:
        folder = boundary.make_folder(path.parent)
    except OSError as error:
        raise _unusable(path, error) from error
    return FileLock(folder / path.name)


def _try_acquire(lock: FileLock) -> bool:
    """Acquire a lock without waiting; False if another process holds it."""
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return False
    except OSError as error:
        raise _unusable(Path(lock.lock_file), error) from error
    return True


def _unusable(path: Path, error: OSError) -> DiskFullError:
    """Make the error for a lock file that can't be created."""
    return DiskFullError(
        tr("{0} can't be locked: {1}.", printable(str(path)), error.strerror or error),
        "Choose another folder for models, or look at the rights of this one.",
    )
