"""Starts the installed program, and counts the starts of its window that fail."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from installer.bootstrap.folders import ProgramData
from installer.bootstrap.in_use import hold_in_use
from installer.bootstrap.program import Program
from installer.bootstrap.records import read_current, read_settings, write_current
from installer.bootstrap.sources import mirror_sources
from installer.errors import SetupError
from installer.lock import installation_lock
from installer.process import without_other_pythons

STARTED_VARIABLE = "MEDUSA_STARTED_FILE"
START_LOG = "start.log"
SHOWN_BYTES = 20_000
_SIGNALLED = 128  # and the signal's number: as a shell says it
# What a shell says of a program that a user ended: Ctrl-C, hang-up, `kill`.
_ENDED_BY_USER = (-1, -2, -15, 129, 130, 143)


def run_command(data: ProgramData, program: Program, version: str, arguments: Sequence[str]) -> int:
    """Replace this process by `medusa`; on Windows, run it and return its status.

    Raises:
        SetupError: it can't be started.
    """
    command = [str(data.environment(version).program("medusa")), *arguments]
    held = hold_in_use(data, version)
    env = _environment(data, program)
    try:
        if os.name == "nt":
            return subprocess.run(command, env=env, check=False).returncode
        _become(command, env)
    except OSError as error:
        raise _damaged(version, error) from error
    finally:
        if held is not None:
            held.close()


def run_window(data: ProgramData, program: Program, version: str, arguments: Sequence[str]) -> int:
    """Run `medusa-chat` and count whether it started; returns its exit status.

    Raises:
        SetupError: it can't be started.
    """
    started = _new_marker(data)
    command = [str(data.environment(version).program("medusa-chat")), *arguments]
    env = _environment(data, program)
    if started is not None:
        env[STARTED_VARIABLE] = str(started)
    held = hold_in_use(data, version)
    try:
        status = _run_and_keep_errors(data, command, env, held.fileno() if held else -1)
    except OSError as error:
        raise _damaged(version, error) from error
    finally:
        if held is not None:
            held.close()
        has_started = started is not None and started.exists()
        if started is not None:
            started.unlink(missing_ok=True)
    if has_started:
        note_start(data, version, failed=False)
    elif status != 0 and status not in _ENDED_BY_USER and has_qt_screen(arguments):
        note_start(data, version, failed=True)
    return status if status >= 0 else _SIGNALLED - status


def note_start(data: ProgramData, version: str, *, failed: bool) -> None:
    """Count a failed start, or reset the count; on a read-only disk do nothing."""
    failed_before = read_current(data).failed_starts
    if not (failed or failed_before):
        return  # the usual case waits for no installation
    count = failed_before + 1 if failed else 0
    with suppress(OSError, SetupError), installation_lock(data.lock):
        current = read_current(data)
        if current.version == version and current.failed_starts != count:
            write_current(data, replace(current, failed_starts=count))


def give_up(data: ProgramData) -> None:
    """Restore the previous version; the failing one isn't offered again by itself.

    Raises:
        SetupError: that can't be written down.
    """
    try:
        with installation_lock(data.lock):
            current = read_current(data)
            write_current(
                data,
                replace(
                    current,
                    version=current.before,
                    before=None,
                    failed_starts=0,
                    failed=current.version,
                ),
            )
    except OSError as error:
        raise SetupError(f"{data.current}: {error.strerror}.", "Free some space.") from error


def last_words(data: ProgramData) -> str:
    """Return the end of the window's last error output; empty if there is none."""
    try:
        with (data.log / START_LOG).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - SHOWN_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def _environment(data: ProgramData, program: Program) -> dict[str, str]:
    env = without_other_pythons(os.environ)
    env["MEDUSA_BOOTSTRAP"] = str(program.launcher)
    env.setdefault("MEDUSA_MODELS", str(data.models))
    if mirror := read_settings(data).mirror:
        # For what the program itself lets uv fetch. A mirror that is away now stops no start.
        with suppress(SetupError):
            env |= mirror_sources(mirror).variables()
    return env


def _become(command: Sequence[str], env: Mapping[str, str]) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(command[0], list(command), dict(env))


def _run_and_keep_errors(
    data: ProgramData, command: Sequence[str], env: Mapping[str, str], held: int
) -> int:
    """Run the window; without a terminal write its error output into a file."""
    inherited = (held,) if held >= 0 and os.name != "nt" else ()
    log = None if _is_watched() else _open_log(data)
    signals = _SignalsFor()
    try:
        with subprocess.Popen(
            command, env=env, stderr=log, pass_fds=inherited, stdin=subprocess.DEVNULL
        ) as child:
            signals.go_to(child)
            return child.wait()
    finally:
        if log is not None:
            os.close(log)
            if sys.stderr is not None:
                sys.stderr.write(last_words(data))


class _SignalsFor:
    """Context that passes signals for the launcher on to the window."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        signal.signal(signal.SIGINT, lambda *_: None)  # the terminal sends Ctrl-C to both
        if os.name != "nt":
            for number in (signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, lambda number, _: self._pass_on(number))

    def go_to(self, child: "subprocess.Popen[bytes]") -> None:
        """Pass on signals from now on, and those received before."""
        self._child = child
        for number in self._early:
            child.send_signal(number)

    def _pass_on(self, number: int) -> None:
        if self._child is None:
            self._early.append(number)
        else:
            self._child.send_signal(number)


def _is_watched() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _open_log(data: ProgramData) -> int | None:
    try:
        data.log.mkdir(parents=True, exist_ok=True)
        return os.open(data.log / START_LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    except OSError:
        return None


def _new_marker(data: ProgramData) -> Path | None:
    """Return the name of a new file for the window to write.

    None where nothing can be written: then nothing can be counted, and in a folder of all users
    somebody else's link could wait under that name.
    """
    try:
        data.log.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    marker = data.log / f"started-{os.getpid()}"
    with suppress(OSError):
        marker.unlink(missing_ok=True)
    return marker


def _damaged(version: str, error: OSError) -> SetupError:
    return SetupError(f"Medusa Chat {version} can't be started: {error.strerror}.", "medusa repair")


def has_tk_screen(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether Tk can open a window; on Linux it doesn't support Wayland."""
    return sys.platform in ("win32", "darwin") or bool(environ.get("DISPLAY"))


def has_qt_screen(arguments: Sequence[str], environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether the program's own window can open.

    Args:
        arguments: of the program, which may choose a platform.
        environ: environment variables.
    """
    names = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    is_chosen = any(word.startswith("--platform") for word in arguments)
    return sys.platform in ("win32", "darwin") or is_chosen or any(map(environ.get, names))
