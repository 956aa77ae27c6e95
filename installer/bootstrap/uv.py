"""uv: makes environments, and fetches and installs packages."""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from installer.bootstrap.progress import Reporter
from installer.bootstrap.sources import Sources
from installer.bootstrap.trouble import explain_uv
from installer.process import Commands

OLDEST_PYTHON = (3, 11)
NEWEST_PYTHON = (3, 13)
CLEAN_TIMEOUT_S = 60.0
LOG_NAME = "installation.log"
# uv's variables about networks. Others, as UV_TARGET or UV_CONSTRAINT, are about other projects.
_KEPT = re.compile(
    r"UV_(DEFAULT_INDEX|INDEX\w*|EXTRA_INDEX_URL|FIND_LINKS|NO_INDEX|HTTP_\w+|REQUEST_TIMEOUT|"
    r"OFFLINE|SYSTEM_CERTS|NATIVE_TLS|INSECURE_HOST|PYTHON_INSTALL_MIRROR|KEYRING_PROVIDER|"
    r"CONCURRENT_\w+|LINK_MODE|PYTHON_DOWNLOADS\w*|CACHE_DIR|PYTHON_INSTALL_DIR)"
)
_WOULD_INSTALL = re.compile(r"^ \+ ([A-Za-z0-9._-]+)==(\S+)", re.MULTILINE)


class Uv:
    """uv for one user.

    Attributes:
        program: The program.
        sources: Where packages come from.
        folders: Variables that name uv's folders; empty for its own defaults.
    """

    def __init__(
        self,
        program: Path,
        commands: Commands,
        sources: Sources,
        folders: Mapping[str, str],
        reporter: Reporter,
    ) -> None:
        self.program = program
        self.sources = sources
        self.folders = folders
        self._commands = commands
        self._reporter = reporter

    def make_environment(self, folder: Path, options: Sequence[str] = ()) -> None:
        """Make an environment; downloads a Python if there is no suitable one.

        Args:
            folder: May hold files.
            options: Further options of `uv venv`.

        Raises:
            SetupError: That is impossible.
        """
        fixed = ("venv", "--allow-existing", "--relocatable", *_python_options())
        self._run(*fixed, *options, str(folder))

    def install(self, python: Path, arguments: Sequence[str]) -> None:
        """Install packages into an environment.

        Args:
            python: of the environment.
            arguments: requirements and options beside the sources.

        Raises:
            SetupError: that is impossible.
        """
        self._run(*self._install_words(python, arguments))

    def would_install(
        self, python: Path, arguments: Sequence[str], timeout_s: float, retries: int
    ) -> tuple[tuple[str, str], ...] | None:
        """Return what an installation would install, as (name, version); None if it would fail."""
        env = {**self._env(), "UV_HTTP_RETRIES": str(retries), "UV_HTTP_TIMEOUT": "8"}
        words = self._install_words(python, arguments)
        command = [str(self.program), *words, "--dry-run"]
        answer = self._commands.capture(command, timeout_s, env)
        for line in answer.text.splitlines():
            self._reporter.line(line)
        if answer.status != 0:
            return None
        return tuple(_WOULD_INSTALL.findall(answer.text))

    def variables(self) -> dict[str, str]:
        """Return the environment of a program that runs this uv itself."""
        beside = str(self.program.with_name("launch.py"))  # it looks for uv beside its launcher
        return {**self._env(), **self.sources.variables(), "MEDUSA_BOOTSTRAP": beside}

    def forget(self, packages: Sequence[str]) -> None:
        """Remove packages from the cache, so that they are downloaded again."""
        command = [str(self.program), "cache", "clean", *packages]
        answer = self._commands.capture(command, CLEAN_TIMEOUT_S, self._env())
        for line in answer.text.splitlines():
            self._reporter.line(line)

    def _install_words(self, python: Path, arguments: Sequence[str]) -> tuple[str, ...]:
        # No source is built: that would run what it says, and needs compilers.
        options = ("--python", str(python), "--no-build", *self.sources.options)
        return ("pip", "install", *options, *arguments)

    def _run(self, *words: str) -> None:
        command = [str(self.program), *words]
        self._reporter.line(f"> uv {' '.join(words)} ({self.sources.described})")
        output = self._commands.follow(
            command, self._env(), self._reporter.line, self._reporter.is_cancelled
        )
        if output.status != 0:
            raise explain_uv(output.text)

    def _env(self) -> dict[str, str]:
        own = {
            "UV_PYTHON_PREFERENCE": "system",
            "UV_NO_PROGRESS": "1",
            # A computer that is busy, or sleeps for a while, is no failure.
            "UV_COMPILE_BYTECODE_TIMEOUT": "0",
            "NO_COLOR": "1",
        }
        return {**_kept_variables(os.environ), **self.sources.env, **own, **self.folders}


class Log:
    """Log of uv's output in the last installation; the previous one is kept beside it.

    Where it can't be written, an installation goes on without it.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / LOG_NAME
        self._file: TextIO | None = None
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            if self.path.exists():
                self.path.replace(folder / f"{LOG_NAME}.1")
            # Names of folders may be no text.
            self._file = self.path.open("w", encoding="utf-8", errors="backslashreplace")

    def write(self, line: str) -> None:
        """Append a line."""
        if self._file is not None:
            with suppress(OSError):
                self._file.write(line + "\n")
                self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()


def _python_options() -> tuple[str, str]:
    """Return options for the running Python if it suits; else uv finds or downloads one."""
    if OLDEST_PYTHON <= sys.version_info[:2] <= NEWEST_PYTHON:
        return ("--python", sys.executable)
    oldest, newest = OLDEST_PYTHON, NEWEST_PYTHON
    return ("--python", f">={oldest[0]}.{oldest[1]},<{newest[0]}.{newest[1] + 1}")


def _kept_variables(environ: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith("UV_") or _KEPT.fullmatch(name)
    }
