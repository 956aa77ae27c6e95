"""Run other programs; tests replace `Commands`."""

import os
import queue
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

from installer.console import ProgressLine
from installer.errors import CommandError, SetupError

KEPT_LINES = 200
POLL_S = 0.2
END_WAIT_S = 5.0
# Variables that would make a child use another Python.
_OTHER_PYTHONS = ("PYTHONHOME", "PYTHONPATH", "__PYVENV_LAUNCHER__", "VIRTUAL_ENV", "CONDA_PREFIX")
# Windows only: no console window flashes up.
_NO_CONSOLE = getattr(subprocess, "CREATE_NO_WINDOW", 0)


class CancelledError(Exception):
    """The user cancelled the work."""


@dataclass(frozen=True, slots=True)
class Output:
    """Result of a finished program.

    Attributes:
        status: Exit status; None if it timed out or doesn't exist.
        text: Standard output and standard error, interleaved.
    """

    status: int | None
    text: str


class Commands(Protocol):
    """Runs programs on behalf of the installer; `env` is the whole environment, by default ours."""

    def capture(
        self, command: Sequence[str], timeout_s: float, env: Mapping[str, str] | None = None
    ) -> Output:
        """Run a short command silently."""
        ...

    def follow(
        self,
        command: Sequence[str],
        env: Mapping[str, str] | None,
        on_line: Callable[[str], None],
        is_cancelled: Callable[[], bool],
    ) -> Output:
        """Run a long command and pass on its lines; raises CancelledError if it was ended early."""
        ...

    def attach(self, command: Sequence[str]) -> int:
        """Run a command on this terminal and return its exit status."""
        ...


class SystemCommands:
    """Runs programs of this machine.

    Attributes:
        folder: Working directory of every command.
        held: Descriptor of a lock file that long commands inherit; -1 for none. While such a
            command lives, nobody else gets the lock, even if this process was killed.
    """

    def __init__(self, folder: Path, held: int = -1) -> None:
        self.folder = folder
        self.held = held

    def _options(self, env: Mapping[str, str] | None) -> dict[str, Any]:
        """Return how each program is started: without input, its output and errors as one text."""
        return {
            "cwd": self.folder,
            "env": without_other_pythons(os.environ if env is None else env),
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.STDOUT,
            "text": True,
            "encoding": "utf-8",
            "errors": "replace",
            "creationflags": _NO_CONSOLE,
        }

    def capture(
        self, command: Sequence[str], timeout_s: float, env: Mapping[str, str] | None = None
    ) -> Output:
        """Run a short command silently; a missing program or a time-out gives status None."""
        try:
            done = subprocess.run(
                command,
                timeout=timeout_s,
                check=False,
                **self._options(env),
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return Output(status=None, text=str(error))
        return Output(status=done.returncode, text=done.stdout)

    def follow(
        self,
        command: Sequence[str],
        env: Mapping[str, str] | None,
        on_line: Callable[[str], None],
        is_cancelled: Callable[[], bool],
    ) -> Output:
        """Run a long command and pass on its lines.

        Raises:
            CancelledError: It was ended early.
            SetupError: It could not be started.
        """
        can_inherit = self.held >= 0 and os.name != "nt"
        try:
            child = subprocess.Popen(
                command,
                pass_fds=(self.held,) if can_inherit else (),
                **self._options(env),
            )
        except OSError as error:
            raise SetupError(f"{command[0]} could not be started: {error}.") from error
        with child:
            try:
                return _read_output(child, on_line, is_cancelled)
            except BaseException:
                self._end(child)  # it must not go on writing after the lock is released
                raise

    def attach(self, command: Sequence[str]) -> int:
        """Run a command on this terminal and return its exit status."""
        env = without_other_pythons(os.environ)
        with subprocess.Popen(command, cwd=self.folder, env=env) as child:
            try:
                return child.wait()
            except KeyboardInterrupt:
                # The terminal has sent the interrupt to the child too; it decides how to end.
                return child.wait()

    def _end(self, child: "subprocess.Popen[str]") -> None:
        if os.name == "nt":  # a program can't end its own children there
            self.capture(["taskkill", "/F", "/T", "/PID", str(child.pid)], END_WAIT_S)
        child.terminate()
        try:
            child.wait(END_WAIT_S)
        except subprocess.TimeoutExpired:
            child.kill()


def run(
    commands: Commands,
    command: Sequence[str],
    env: Mapping[str, str] | None = None,
    on_line: Callable[[str], None] | None = None,
) -> Output:
    """Run a long command, with one line of progress unless `on_line` gets its lines.

    Args:
        commands: Runs it.
        command: Program and arguments.
        env: Variables in addition to this process's.
        on_line: Called with each line of output.
    """
    progress = ProgressLine()
    try:
        whole = {**os.environ, **(env or {})}
        return commands.follow(command, whole, on_line or progress.show, lambda: False)
    finally:
        progress.clear()


def run_checked(
    commands: Commands, command: Sequence[str], env: Mapping[str, str] | None = None
) -> None:
    """Run a long command with one line of progress.

    Raises:
        CommandError: It ended with a status other than 0, or without one.
        SetupError: It could not be started.
    """
    output = run(commands, command, env)
    if output.status != 0:
        raise CommandError(command, output.status, output.text.splitlines())


def without_other_pythons(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without variables that make a child use another Python."""
    return {name: value for name, value in env.items() if name not in _OTHER_PYTHONS}


def _read_output(
    child: "subprocess.Popen[str]",
    on_line: Callable[[str], None],
    is_cancelled: Callable[[], bool],
) -> Output:
    lines: queue.Queue[str | None] = queue.Queue()
    assert child.stdout is not None
    threading.Thread(target=_queue_lines, args=(child.stdout, lines), daemon=True).start()
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
        on_line(line)


def _queue_lines(stream: IO[str], lines: "queue.Queue[str | None]") -> None:
    try:
        for line in stream:
            lines.put(line.rstrip())
    finally:
        lines.put(None)
