"""One of this program's commands in a child process, which ends with its parent.

Closing its stdin asks it to stop in order.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from medusa_core.errors import MedusaError
from medusa_core.i18n import text_from_json, text_to_json, tr
from medusa_core.system.resources import import_places

log = logging.getLogger(__name__)

_MAX_OUTPUT_BYTES = 4000
_ERROR = "error: "
JSON_ERRORS = "MEDUSA_JSON_ERRORS"  # set in the environment of commands that a program starts


class CommandProcess:
    """A running or ended command."""

    def __init__(self, arguments: Sequence[str], output: Path) -> None:
        """Start the command.

        Args:
            arguments: Arguments of `medusa`.
            output: File for its stdout and stderr; overwritten.

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
                env={**os.environ, JSON_ERRORS: "1"},
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),  # Windows only
            )

    @property
    def code(self) -> int | None:
        """Exit code; None while it runs."""
        code = self._process.poll()
        if code is not None:
            self.stop()  # frees the pipe
        return code

    def stop(self) -> None:
        """Ask it to stop in order, without waiting."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except OSError:
            log.debug("the command had ended before it was asked to stop")

    def kill(self) -> None:
        """Kill it."""
        self.stop()
        self._process.kill()
        self._process.wait()

    def wait(self, time_s: float) -> int | None:
        """Wait for its exit code; None if it still runs after that time."""
        try:
            self._process.wait(time_s)
        except subprocess.TimeoutExpired:
            return None
        return self.code

    def last_words(self) -> str:
        """Return the end of its output."""
        try:
            return self._output.read_bytes()[-_MAX_OUTPUT_BYTES:].decode(errors="replace")
        except OSError as error:
            log.debug("the output of the command can't be read: %s", error)
            return ""


class CommandJob:
    """A job in a child process, which can be stopped and started again."""

    _process: CommandProcess | None = None

    @property
    def is_running(self) -> bool:
        """Whether its process is running."""
        return self._process is not None and self._process.code is None

    def pause(self) -> None:
        """Ask the process to save its state and end, without waiting."""
        if self._process is not None:
            self._process.stop()

    def wait(self, time_s: float) -> bool:
        """Wait for its process to end; return whether it has."""
        return self._process is None or self._process.wait(time_s) is not None

    def _kill(self) -> None:
        """Kill the process, if there is one."""
        if self._process is not None:
            self._process.kill()


def problem_in(output: str, ended: str) -> tuple[str, str]:
    """Return the error and the hint that a command printed last.

    Args:
        output: End of its output.
        ended: The error if it printed none.
    """
    found = problem_of(output)
    if found is None:
        log.error("%s %s", ended, output)
        return ended, tr("Go on with it; the log has the details.")
    return found


def error_line(error: MedusaError) -> str:
    """Return an error as a line of JSON, from which `problem_of` reads it."""
    return _ERROR + json.dumps([text_to_json(error.message), text_to_json(error.hint)])


def problem_of(output: str) -> tuple[str, str] | None:
    """Find the error and the hint that a command printed last.

    Args:
        output: End of its output.

    Returns:
        Both texts; None if it printed no error.
    """
    lines = output.splitlines()
    for index in range(len(lines) - 1, -1, -1):
        if lines[index].startswith(_ERROR):
            text = lines[index].removeprefix(_ERROR)
            if text.startswith(('["', '[["')):
                message, hint = map(text_from_json, json.loads(text))
                return message, hint
            return text, lines[index + 1].strip() if index + 1 < len(lines) else ""
    return None
