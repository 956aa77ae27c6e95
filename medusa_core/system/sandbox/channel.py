"""The child's side of a sandbox: its pipes, and the resource limits that it sets for itself."""

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
    """Two pipes to the parent process, with one JSON message a line."""

    def __init__(self, reads: TextIO, writes: TextIO) -> None:
        self._reads, self._writes = reads, writes

    def receive(self) -> dict[str, Any]:
        """Return the next message; exit if the parent has closed the pipe."""
        line = self._reads.readline()
        if not line:
            os._exit(_PARENT_GONE)
        message: dict[str, Any] = json.loads(line)
        return message

    def send(self, **message: object) -> None:
        """Send a message."""
        self._writes.write(json.dumps(message) + "\n")
        self._writes.flush()


@contextmanager
def open_channel() -> Iterator[Channel]:
    """Open the channel; anything else that is printed goes to stderr."""
    writes = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with writes:
        yield Channel(sys.stdin, writes)


def limit_process(memory_bytes: int, most_file_bytes: int) -> None:
    """Set resource limits of this process, on systems that have them.

    Args:
        memory_bytes: Additional address space; Linux only.
        most_file_bytes: Largest file.
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
