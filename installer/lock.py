"""One installation at a time: a lock that the system releases even after a kill."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from installer.console import say
from installer.errors import SetupError

POLL_S = 0.5


@contextmanager
def installation_lock(path: Path, wait: Callable[[float], None] = time.sleep) -> Iterator[None]:
    """Hold the lock; while another process holds it, say so once and wait.

    Args:
        path: the lock's file; it stays behind, empty.
        wait: sleeps some seconds; replaced in tests.

    Raises:
        SetupError: the repository cannot be written to.
    """
    try:
        file = path.open("ab")
    except OSError as error:
        raise SetupError(
            f"{path.parent} cannot be written to: {error.strerror}.",
            "Clone the repository into a directory of your own, and run it there.",
        ) from error
    with file:
        has_waited = False
        while not _try_lock(file):
            if not has_waited:
                say("Another installation is running in this repository; waiting for it.")
                has_waited = True
            wait(POLL_S)
        yield


if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: BinaryIO) -> bool:
        file.seek(0, os.SEEK_SET)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(file: BinaryIO) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
