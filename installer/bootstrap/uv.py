"""uv: makes environments, and fetches and installs packages."""

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from installer.bootstrap.commands import Commands
from installer.bootstrap.folders import ProgramData
from installer.bootstrap.sources import Sources, shown_address
from installer.bootstrap.trouble import explain_uv

OLDEST_PYTHON = (3, 11)
NEWEST_PYTHON = (3, 13)
CLEAN_TIMEOUT_S = 60.0
LOG_NAME = "installation.log"
# uv's variables about networks. Others, as UV_TARGET or UV_CONSTRAINT, are about other projects.
_KEPT = re.compile(
    r"UV_(DEFAULT_INDEX|INDEX\w*|EXTRA_INDEX_URL|FIND_LINKS|NO_INDEX|HTTP_\w+|REQUEST_TIMEOUT|"
    r"OFFLINE|SYSTEM_CERTS|NATIVE_TLS|INSECURE_HOST|PYTHON_INSTALL_MIRROR|KEYRING_PROVIDER|"
    r"CONCURRENT_\w+|LINK_MODE|PYTHON_DOWNLOADS\w*)"
)
_WOULD_INSTALL = re.compile(r"^ \+ ([A-Za-z0-9._-]+)==(\S+)", re.MULTILINE)


class Uv:
    """uv on behalf of one user.

    Attributes:
        data: where its cache and its Pythons lie.
        sources: where packages come from.
    """

    def __init__(
        self,
        program: Path,
        data: ProgramData,
        commands: Commands,
        sources: Sources,
        heard: Callable[[str], None],
        is_cancelled: Callable[[], bool],
    ) -> None:
        self.data = data
        self.sources = sources
        self._program = program
        self._commands = commands
        self._heard = heard
        self._is_cancelled = is_cancelled

    def make_environment(self, folder: Path) -> None:
        """Make an environment in a folder that may hold files; fetches a Python where none is.

        Raises:
            SetupError: that is impossible.
        """
        self._run("venv", "--allow-existing", "--relocatable", *_python_wanted(), str(folder))

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
        """What an installation would bring, as (name, version); None where it would fail."""
        env = {**self._env(), "UV_HTTP_RETRIES": str(retries), "UV_HTTP_TIMEOUT": "8"}
        words = self._install_words(python, arguments)
        command = [str(self._program), *words, "--dry-run"]
        answer = self._commands.capture(command, timeout_s, env)
        for line in answer.text.splitlines():
            self._say(line)
        if answer.status != 0:
            return None
        return tuple(_WOULD_INSTALL.findall(answer.text))

    def variables(self) -> dict[str, str]:
        """The environment of a program that runs this uv by itself, for packages from here too."""
        beside = str(self._program.with_name("launch.py"))  # it looks for uv beside its launcher
        return {**self._env(), **self.sources.variables(), "MEDUSA_BOOTSTRAP": beside}

    def forget(self, packages: Sequence[str]) -> None:
        """Remove packages from the cache; they are fetched again when they are needed."""
        command = [str(self._program), "cache", "clean", *packages]
        answer = self._commands.capture(command, CLEAN_TIMEOUT_S, self._env())
        for line in answer.text.splitlines():
            self._say(line)

    def _install_words(self, python: Path, arguments: Sequence[str]) -> tuple[str, ...]:
        # No source is built: that would run what it says, and needs compilers.
        options = ("--python", str(python), "--no-build", *self.sources.options)
        return ("pip", "install", *options, *arguments)

    def _run(self, *words: str) -> None:
        command = [str(self._program), *words]
        # A password in an address doesn't belong into a log; where one is, no option names it.
        self._say(f"> uv {' '.join(map(shown_address, words))} ({self.sources.described})")
        output = self._commands.follow(command, self._env(), self._say, self._is_cancelled)
        if output.status != 0:
            raise explain_uv(output.text)

    def _say(self, line: str) -> None:
        self._heard(line)

    def _env(self) -> dict[str, str]:
        own = {
            "UV_CACHE_DIR": str(self.data.cache),
            "UV_PYTHON_INSTALL_DIR": str(self.data.pythons),
            "UV_PYTHON_PREFERENCE": "system",
            "UV_NO_PROGRESS": "1",
            # A computer that is busy, or sleeps for a while, is no failure.
            "UV_COMPILE_BYTECODE_TIMEOUT": "0",
            "NO_COLOR": "1",
        }
        return {**_kept_variables(os.environ), **self.sources.env, **own}


class Log:
    """The file of what uv said in the last installation; the one before is kept beside it.

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


def _python_wanted() -> tuple[str, str]:
    """The Python that runs this, if it suits; else uv looks for one, and fetches one."""
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
