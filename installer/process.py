"""Running other programs: the seam that tests replace."""

import os
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from installer.console import ProgressLine, say
from installer.errors import CommandError, SetupError

KEPT_LINES = 200
# Windows alone has it: no console window flashes up.
NO_CONSOLE = getattr(subprocess, "CREATE_NO_WINDOW", 0)


@dataclass(frozen=True, slots=True)
class Output:
    """What a finished program left behind.

    Attributes:
        status: exit status; None if it did not end within its time or does not exist.
        text: standard output and standard error, in the order they came.
    """

    status: int | None
    text: str


class Capturer(Protocol):
    """Runs short programs."""

    def capture(
        self, command: Sequence[str], timeout_s: float, env: Mapping[str, str] | None = None
    ) -> Output:
        """Run a short command silently; a missing program or a time-out gives status None."""
        ...


class Runner(Capturer, Protocol):
    """Runs programs on behalf of the installer."""

    def stream(self, command: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        """Run a long command with one line of progress; raises CommandError if it fails."""
        ...

    def echo(self, command: Sequence[str], env: Mapping[str, str] | None = None) -> Output:
        """Run a long command, print its lines as they come, and return them too."""
        ...

    def attach(self, command: Sequence[str], env: Mapping[str, str] | None = None) -> int:
        """Run a command on this terminal and return its exit status."""
        ...


class SystemRunner:
    """Runs programs of this machine from the repository's root.

    Attributes:
        root: working directory of every command.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def capture(
        self, command: Sequence[str], timeout_s: float, env: Mapping[str, str] | None = None
    ) -> Output:
        """Run a short command silently; a missing program or a time-out gives status None."""
        return captured(command, self.root, timeout_s, _environment(env))

    def stream(self, command: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        """Run a long command with one line of progress.

        Raises:
            CommandError: it ended with a status other than 0.
            SetupError: it could not be started.
        """
        progress = ProgressLine()
        try:
            output = self._follow(command, env, progress.show)
        finally:
            progress.clear()
        if output.status != 0:
            raise CommandError(command, output.status or 0, output.text.splitlines())

    def echo(self, command: Sequence[str], env: Mapping[str, str] | None = None) -> Output:
        """Run a long command, print its lines as they come, and return them too.

        Raises:
            SetupError: it could not be started.
        """
        return self._follow(command, env, say)

    def _follow(
        self, command: Sequence[str], env: Mapping[str, str] | None, show: Callable[[str], None]
    ) -> Output:
        """Run a command and hand each line of its output to `show`; keep the last ones."""
        tail: deque[str] = deque(maxlen=KEPT_LINES)
        try:
            with subprocess.Popen(
                command,
                cwd=self.root,
                env=_environment(env),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            ) as child:
                assert child.stdout is not None
                try:
                    for line in child.stdout:
                        tail.append(line.rstrip())
                        show(line.rstrip())
                except BaseException:
                    # Nothing of ours may go on writing packages after the lock is released.
                    child.terminate()
                    child.wait()
                    raise
        except OSError as error:
            raise SetupError(f"{command[0]} could not be started: {error}.") from error
        return Output(status=child.returncode, text="\n".join(tail))

    def attach(self, command: Sequence[str], env: Mapping[str, str] | None = None) -> int:
        """Run a command on this terminal and return its exit status."""
        with subprocess.Popen(command, cwd=self.root, env=_environment(env)) as child:
            try:
                return child.wait()
            except KeyboardInterrupt:
                # The terminal has sent the interrupt to the child too; it decides how to end.
                return child.wait()


def captured(
    command: Sequence[str], folder: Path, timeout_s: float, env: Mapping[str, str]
) -> Output:
    """Run a short command silently.

    Args:
        command: the program and its arguments.
        folder: its working directory.
        timeout_s: seconds after which it is ended.
        env: its whole environment.

    Returns:
        Its output; status None where the program is missing or its time was over.
    """
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout_s,
            check=False,
            creationflags=NO_CONSOLE,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Output(status=None, text=str(error))
    return Output(status=done.returncode, text=done.stdout)


def without_other_pythons(env: Mapping[str, str]) -> dict[str, str]:
    """An environment without what would lead a child to another Python."""
    others = ("PYTHONHOME", "PYTHONPATH", "__PYVENV_LAUNCHER__", "VIRTUAL_ENV", "CONDA_PREFIX")
    return {name: value for name, value in env.items() if name not in others}


def _environment(extra: Mapping[str, str] | None) -> dict[str, str]:
    """Environment of a child: ours and `extra`, without what would lead it to another Python."""
    return without_other_pythons({**os.environ, **(extra or {})})
