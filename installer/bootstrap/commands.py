"""Running uv and other programs: the seam that tests replace."""

import os
import queue
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Protocol

from installer.errors import SetupError
from installer.process import (
    KEPT_LINES,
    NO_CONSOLE,
    Capturer,
    Output,
    captured,
    without_other_pythons,
)

POLL_S = 0.2
END_WAIT_S = 5.0


class CancelledError(Exception):
    """The user doesn't want it any more."""


class Commands(Capturer, Protocol):
    """Runs programs on behalf of the bootstrap."""

    def follow(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        heard: Callable[[str], None],
        is_cancelled: Callable[[], bool],
    ) -> Output:
        """Run a long command and hand on its lines; raises CancelledError if it was ended early."""
        ...


class SystemCommands:
    """Runs programs of this machine.

    Attributes:
        folder: working directory of every command.
        held: an open file that long commands inherit, with the lock on it; -1 for none. While such
            a command lives, nobody else writes, even if this process was killed.
    """

    def __init__(self, folder: Path, held: int = -1) -> None:
        self.folder = folder
        self.held = held

    def capture(
        self, command: Sequence[str], timeout_s: float, env: Mapping[str, str] | None = None
    ) -> Output:
        """Run a short command silently; a missing program or a time-out gives status None."""
        env = without_other_pythons(os.environ if env is None else env)
        return captured(command, self.folder, timeout_s, env)

    def follow(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        heard: Callable[[str], None],
        is_cancelled: Callable[[], bool],
    ) -> Output:
        """Run a long command and hand on its lines.

        Raises:
            CancelledError: it was ended early.
            SetupError: it could not be started.
        """
        can_inherit = self.held >= 0 and os.name != "nt"
        try:
            child = subprocess.Popen(
                command,
                cwd=self.folder,
                env=without_other_pythons(env),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                errors="replace",
                pass_fds=(self.held,) if can_inherit else (),
                creationflags=NO_CONSOLE,
            )
        except OSError as error:
            raise SetupError(f"{command[0]} could not be started: {error}.") from error
        with child:
            try:
                return _listen(child, heard, is_cancelled)
            except BaseException:
                _end(child)  # nothing of ours may go on writing after the lock is released
                raise


def _listen(
    child: "subprocess.Popen[str]", heard: Callable[[str], None], is_cancelled: Callable[[], bool]
) -> Output:
    lines: queue.Queue[str | None] = queue.Queue()
    assert child.stdout is not None
    threading.Thread(target=_read_lines, args=(child.stdout, lines), daemon=True).start()
    tail: deque[str] = deque(maxlen=KEPT_LINES)
    while True:
        if is_cancelled():
            raise CancelledError
        try:
            line = lines.get(timeout=POLL_S)
        except queue.Empty:
            continue
        if line is None:
            return Output(status=child.wait(), text="\n".join(tail))
        tail.append(line)
        heard(line)


def _read_lines(stream: IO[str], lines: "queue.Queue[str | None]") -> None:
    try:
        for line in stream:
            lines.put(line.rstrip())
    finally:
        lines.put(None)


def _end(child: "subprocess.Popen[str]") -> None:
    if os.name == "nt":  # where a program can't end what it has started: it isn't asked to end
        taskkill = ["taskkill", "/F", "/T", "/PID", str(child.pid)]
        captured(taskkill, Path(), END_WAIT_S, os.environ)
    child.terminate()
    try:
        child.wait(END_WAIT_S)
    except subprocess.TimeoutExpired:
        child.kill()
