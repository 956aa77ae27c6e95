"""A program at a terminal of its own, at which a test types."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
WAIT_S = 240.0
READY = "\n> Message, or /help"
_ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|[=>])")


class Typist:
    """Runs `medusa` at a terminal; `seen` is all that it has shown.

    Attributes:
        process: The program.
        seen: What it has shown, escape sequences included.
    """

    def __init__(
        self, *words: str, env: Mapping[str, str] | None = None, size: tuple[int, int] = (24, 80)
    ) -> None:
        """Start it.

        Args:
            words: Behind `medusa`.
            env: More of the environment.
            size: Lines and columns.
        """
        self._end, its_end = pty.openpty()
        fcntl.ioctl(its_end, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        defaults = {"TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1", "NO_COLOR": ""}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "medusa_core", *words],
            cwd=ROOT,
            env=os.environ | defaults | dict(env or {}),
            stdin=its_end,
            stdout=its_end,
            stderr=its_end,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(its_end)
        self.seen = ""
        self._from = 0

    @property
    def text(self) -> str:
        """Output since the last wait, without escape sequences."""
        return _ESCAPES.sub("", self.seen[self._from :]).replace("\r", "")

    def type(self, keys: str) -> None:
        """Press keys; `\\r` is Enter."""
        self._from = len(self.seen)
        os.write(self._end, keys.encode())

    def wait_for(self, pattern: str, wait_s: float = WAIT_S) -> str:
        """Wait until it has shown something since keys were pressed last; returns all of that."""
        until_s = time.monotonic() + wait_s
        while not re.search(pattern, self.text):
            assert time.monotonic() < until_s, f"no {pattern!r} in:\n{self.text}"
            if not self._read(0.5) and self.process.poll() is not None:
                assert re.search(pattern, self.text), f"it ended without {pattern!r}:\n{self.text}"
        return self.text

    def ask(self, line: str, pattern: str = READY) -> str:
        """Type a line, and wait until the next can be typed."""
        self.type(f"{line}\r")
        return self.wait_for(pattern)

    def end(self) -> int:
        """Read the remaining output and return the exit status."""
        until_s = time.monotonic() + WAIT_S
        while self.process.poll() is None:
            assert time.monotonic() < until_s, self.text
            self._read(0.2)
        while self._read(0.1):
            pass
        return self.process.returncode

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        os.write(self._end, b"\x03")

    def close(self) -> None:
        """End the chat's process in any state."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        os.close(self._end)

    def _read(self, wait_s: float) -> bool:
        ready, _, _ = select.select([self._end], [], [], wait_s)
        if not ready:
            return False
        try:
            piece = os.read(self._end, 1 << 16)
        except OSError:  # Linux: nobody has the other end any more
            return False
        self.seen += piece.decode("utf-8", "replace")
        return bool(piece)
