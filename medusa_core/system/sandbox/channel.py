"""The child's side: its two pipes, and the resource limits that it sets itself."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

_PARENT_GONE = 3
_SPARE_BYTES = 1 << 20


class Channel:
    """The two pipes to whoever started this process."""

    def __init__(self, reads: TextIO, writes: TextIO) -> None:
        self._reads, self._writes = reads, writes

    def receive(self) -> dict[str, Any]:
        """The next message; ends this process if the pipe was closed."""
        line = self._reads.readline()
        if not line:
            os._exit(_PARENT_GONE)
        message: dict[str, Any] = json.loads(line)
        return message

    def send(self, **message: object) -> None:
        """Send one message."""
        self._writes.write(json.dumps(message) + "\n")
        self._writes.flush()


@contextmanager
def open_channel() -> Iterator[Channel]:
    """This process's line; whatever else is printed goes where errors go."""
    writes = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with writes:
        yield Channel(sys.stdin, writes)


def limit_process(memory_bytes: int, most_file_bytes: int) -> None:
    """Bound what this process may take from now on, where the system can.

    Args:
        memory_bytes: Address space beyond what it has.
        most_file_bytes: Largest file that it may write.
    """
    if sys.platform == "win32":
        return
    import resource

    largest = most_file_bytes + _SPARE_BYTES
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * os.sysconf("SC_PAGE_SIZE") + memory_bytes
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
