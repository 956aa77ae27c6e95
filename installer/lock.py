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
IN_REPOSITORY = "Clone the repository into a directory of your own, and run it there."


@contextmanager
def installation_lock(
    path: Path,
    wait: Callable[[float], None] = time.sleep,
    tell: Callable[[str], None] = say,
    mend: str = IN_REPOSITORY,
) -> Iterator[BinaryIO]:
    """Hold the lock; while another process holds it, say so once and wait.

    Args:
        path: the lock's file; it stays behind, empty.
        wait: sleeps some seconds; may raise to give up.
        tell: gets the sentence that it waits.
        mend: what to do where the lock can't be written.

    Yields:
        The open file: a child that inherits it holds the lock as long as it lives.

    Raises:
        SetupError: the folder cannot be written to.
    """
    try:
        file = path.open("ab")
    except OSError as error:
        raise SetupError(
            f"{path.parent} cannot be written to: {error.strerror}.",
            mend,
        ) from error
    with file:
        has_waited = False
        while not try_lock(file):
            if not has_waited:
                tell("Another installation is running here; waiting for it.")
                has_waited = True
            wait(POLL_S)
        yield file


if sys.platform == "win32":
    import msvcrt

    def try_lock(file: BinaryIO) -> bool:
        """Lock an open file unless another process holds it; returns whether it succeeded."""
        file.seek(0, os.SEEK_SET)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def try_lock(file: BinaryIO) -> bool:
        """Lock an open file unless another process holds it; returns whether it succeeded."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks: waiting would never end
            return True
        return True
