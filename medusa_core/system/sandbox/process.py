"""The parent's side of a sandbox: a child process that handles untrusted data.

Both sides exchange JSON lines. The child is a Python in isolated mode with the same `sys.path`; its
environment has no secrets, and it ends when the parent's end of its pipes is closed.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import IO, Any

import psutil

from medusa_core.system.resources import import_places

log = logging.getLogger(__name__)

_POLL_S = 0.05
_MAX_LINE_CHARS = 1 << 16
_MAX_OUTPUT_BYTES = 4000
_SECRETS = ("TOKEN", "SECRET", "PASSWORD", "KEY", "CREDENTIAL")


def nothing() -> None:
    """Do nothing: the default of `while_waiting`."""


class Sandbox:
    """A child process.

    Attributes:
        pid: Its process id.
    """

    def __init__(self, module: str, most_line_chars: int = _MAX_LINE_CHARS) -> None:
        """Start the child.

        Args:
            module: Module whose `main` it runs.
            most_line_chars: Longest line that is read from it.

        Raises:
            OSError: The system starts no more processes.
        """
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the child
        try:
            self._process = _start(module, self._stderr)
        except OSError:
            self._stderr.close()
            raise
        self.pid = self._process.pid
        self._module = module
        self._most_line_chars = most_line_chars
        self._reader: threading.Thread | None = None

    def send(self, message: object) -> None:
        """Send a message; if the child has ended, the next `receive` returns None."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
        except OSError:
            log.debug("the child had ended before a message was sent")

    def receive(
        self, time_s: float, while_waiting: Callable[[], None] = nothing
    ) -> dict[str, Any] | None:
        """Wait for the next message; a child that sends something else is killed.

        Args:
            time_s: Longest wait.
            while_waiting: Called many times a second; an exception of it ends the wait.

        Returns:
            The message; None if the child has ended.

        Raises:
            TimeoutError: There was none in time; the child can't be used any more.
        """
        end = time.monotonic() + time_s
        lines = self._read()
        while True:
            try:
                line = lines.get(timeout=max(0.0, min(_POLL_S, end - time.monotonic())))
                break
            except queue.Empty:
                while_waiting()
                if time.monotonic() >= end:
                    raise TimeoutError from None
        if not line:
            return None
        try:
            message = json.loads(line)
        except ValueError:
            log.debug("the child sent a line that isn't JSON")
            self._process.kill()
            return None
        return message if isinstance(message, dict) else {}

    def _read(self) -> queue.SimpleQueue[str]:
        """Read a line in a thread, because Windows can't wait for a pipe with a timeout."""
        assert self._process.stdout is not None
        lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(
            target=_read_line,
            args=(self._process.stdout, self._most_line_chars, lines),
            name=self._module,
            daemon=True,
        )
        self._reader.start()
        return lines

    def resident_bytes(self) -> int:
        """Return its resident memory; 0 if it has ended."""
        try:
            return int(psutil.Process(self.pid).memory_info().rss)
        except psutil.Error:
            return 0

    def wait(self, time_s: float | None = None) -> int:
        """Wait for its exit code; a negative one is a signal."""
        return self._process.wait(time_s)

    def last_words(self) -> str:
        """Return the end of its stderr."""
        self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, self._stderr.tell() - _MAX_OUTPUT_BYTES))
        return self._stderr.read().decode(errors="replace")

    def kill(self) -> None:
        """Kill it if it runs; any thread may do so."""
        self._process.kill()

    def close(self) -> None:
        """Kill it if it runs, and free its pipes; a second call does nothing."""
        self._process.kill()
        self._process.wait()
        if self._reader is not None and self._reader is not threading.current_thread():
            self._reader.join()
        _close(self._process.stdin)
        _close(self._process.stdout)
        self._stderr.close()


def _start(module: str, stderr: IO[bytes]) -> subprocess.Popen[str]:
    """Start a Python module with its pipes, without secrets in its environment."""
    # Code that opens untrusted files needs no secrets.
    environment = {
        name: value
        for name, value in os.environ.items()
        if not any(word in name.upper() for word in _SECRETS)
    }
    environment |= {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    places = import_places()
    code = f"import sys; sys.path[:] = {places!r}; from {module} import main; sys.exit(main())"
    return subprocess.Popen(
        [sys.executable, "-I", "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        encoding="utf-8",
        env=environment,
        start_new_session=True,  # Ctrl-C in a terminal ends an answer, not this process
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),  # Windows only
    )


def _read_line(stdout: IO[str], most_chars: int, lines: queue.SimpleQueue[str]) -> None:
    """Read a line of limited length into a queue."""
    lines.put(stdout.readline(most_chars))


def _close(pipe: IO[str] | None) -> None:
    """Close a pipe that the child may have closed."""
    assert pipe is not None
    try:
        pipe.close()
    except OSError:
        log.debug("the child's pipe was closed already")
