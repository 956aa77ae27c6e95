"""One of this program's own commands in a process of its own, which outlives nothing of it.

It hears nothing but the end of its input: then it is to stop in order.
"""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from medusa_core.system.resources import import_places

log = logging.getLogger(__name__)

_MOST_OUTPUT_BYTES = 4000


class CommandProcess:
    """A command under way, or one that has ended."""

    def __init__(self, arguments: Sequence[str], output: Path) -> None:
        """Start it.

        Args:
            arguments: Behind `medusa`.
            output: File for all that it prints; what it held is replaced.

        Raises:
            OSError: The file can't be written, or the system starts no more processes.
        """
        self._output = output
        code = (
            f"import sys; sys.path[:] = {import_places()!r}; "
            "from medusa_core.__main__ import main; sys.exit(main(sys.argv[1:]))"
        )
        with output.open("wb") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-c", code, *arguments],
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=subprocess.STDOUT,
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),  # Windows alone has it
            )

    @property
    def code(self) -> int | None:
        """What it ended with; None while it runs."""
        code = self._process.poll()
        if code is not None:
            self.stop()  # nobody hears any more
        return code

    def stop(self) -> None:
        """Let it stop in order; returns at once."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except OSError:
            log.debug("the command had ended before it was told to stop")

    def kill(self) -> None:
        """End it at once."""
        self.stop()
        self._process.kill()
        self._process.wait()

    def wait(self, time_s: float) -> int | None:
        """Wait for its end; None where that took longer."""
        try:
            self._process.wait(time_s)
        except subprocess.TimeoutExpired:
            return None
        return self.code

    def last_words(self) -> str:
        """The end of what it printed."""
        try:
            return self._output.read_bytes()[-_MOST_OUTPUT_BYTES:].decode(errors="replace")
        except OSError as error:
            log.debug("nothing is known of what it printed: %s", error)
            return ""
