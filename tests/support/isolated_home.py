"""Give every test process a home folder of its own, and keep the real one unchanged.

`tests/conftest.py` loads this plugin. Child processes and xdist workers inherit the environment;
each worker makes a home of its own in it. What tests still need from the real home comes through
variables, and nothing else does:

- `PIP_CONFIG_FILE`: where package indexes are configured, for slow tests that install packages.
- `PYENV_ROOT`: the Pythons that pyenv's shims start.
- `MEDUSA_REAL_MODELS`: the files that `tests.tools.real_models` and `tests.tools.llama_cpp_files`
  fetch, several hundred megabytes. Slow tests may write there.

Two checks fail the run. Python code of the tests' processes that tries to write into the real home
is refused and reported. And a small real home, which belongs to the run alone (`.ci/run`,
`HOME=$(mktemp -d)`), must be the same at the end as at the beginning, whoever wrote; in a large one
other programs write at the same time.
"""

from __future__ import annotations

import atexit
import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.tools import real_models

SMALL_HOME_FILES = 2000
# Variables that would lead the program or a library past HOME.
_LEADING_ELSEWHERE = (
    *("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "MEDUSA_HOME"),
    *("HF_HOME", "HF_HUB_CACHE", "HF_ASSETS_CACHE", "HF_XET_CACHE", "HF_TOKEN_PATH", "HF_TOKEN"),
    *("HUGGINGFACE_HUB_CACHE", "HUGGINGFACE_ASSETS_CACHE", "HUGGING_FACE_HUB_TOKEN"),
    *("TORCH_HOME", "TRITON_HOME", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"),
    *("MPLCONFIGDIR", "PIP_CACHE_DIR", "UV_CACHE_DIR", "ZIG_GLOBAL_CACHE_DIR", "WINEPREFIX"),
)
# For workers, whose controller has changed the environment.
_REAL_FOLDERS = "MEDUSA_TEST_REAL_FOLDERS"
_REFUSED_FILE = "MEDUSA_TEST_REFUSED_WRITES"
_IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ
_ROOT = Path(__file__).resolve().parents[2]

# Audit events of Python that change files, and which arguments name these.
_FIRST, _SECOND, _BOTH = slice(1), slice(1, 2), slice(2)
_CHANGES = {
    **dict.fromkeys(("os.chmod", "os.chown", "os.mkdir", "os.remove", "os.rmdir"), _FIRST),
    **dict.fromkeys(("os.truncate", "os.utime", "os.setxattr", "os.removexattr"), _FIRST),
    "shutil.rmtree": _FIRST,
    "os.rename": _BOTH,
    "os.link": _SECOND,
    "os.symlink": _SECOND,
}
_RELATIVE_TO_FOLDER = ("os.remove", "os.rmdir", "os.mkdir")  # with a descriptor as last argument
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

State = dict[Path, tuple[int, int]]


def real_folders(home: Path, environment: Mapping[str, str]) -> list[Path]:
    """Return the home and the folders for configuration, data, state and caches outside of it."""
    names = ("CONFIG", "DATA", "STATE", "CACHE")
    others = [Path(environment.get(f"XDG_{name}_HOME", "") or home) for name in names]
    folders = [home, *dict.fromkeys(path for path in others if not path.is_relative_to(home))]
    return [path for path in folders if path != path.parent]  # some users without a home have "/"


def read_state(folders: list[Path], ignored: Path) -> State:
    """Return all paths below folders with modification times in nanoseconds and sizes in bytes.

    Args:
        folders: What is read.
        ignored: A folder that isn't read; the folders around it may be created.
    """
    paths = (path for folder in folders for path in _paths(folder, ignored))
    around = {ignored, *ignored.parents}
    return {path: _stamp(path) for path in paths if path not in around}


def changed(before: State, after: State) -> list[str]:
    """Return a line for each path that was created, changed or removed."""
    lines = [f"created: {path}" for path in after.keys() - before.keys()]
    lines += [f"removed: {path}" for path in before.keys() - after.keys()]
    both = before.keys() & after.keys()
    return sorted(lines + [f"changed: {path}" for path in both if before[path] != after[path]])


def _paths(root: Path, ignored: Path | None = None) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if Path(folder, name) != ignored]
        yield from (Path(folder, name) for name in [*folders, *names])


def _stamp(path: Path) -> tuple[int, int]:
    found = path.lstat()
    # A folder's time changes with its entries, which are compared themselves.
    return (0, 0) if path.is_dir() else (found.st_mtime_ns, found.st_size)


class WriteGuard:
    """An audit hook that refuses writes into the real home and notes them for the end of the run.

    Attributes:
        is_active: Whether tests run; pytest's own reports may lie anywhere.
        allowed: Folders in the real home that may be written: the checkout, the environment,
            temporary files.
    """

    def __init__(self, folders: list[Path], refused: Path) -> None:
        self.is_active = False
        self._folders, self._refused = folders, refused
        self.allowed = [_ROOT, Path(sys.prefix), Path(sys.base_prefix), real_models.folder()]
        self.allowed.append(Path(tempfile.gettempdir()))

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.is_active:
            return
        if event == "open":
            path, _, flags = args
            if flags & _WRITING:
                self._check(event, path)
        elif event in _CHANGES:
            if event in _RELATIVE_TO_FOLDER and args[-1] != -1:
                return  # shutil.rmtree within a folder whose own removal was checked
            for path in args[_CHANGES[event]]:
                self._check(event, path)
        elif event == "sqlite3.connect" and args[0] != ":memory:":
            self._check(event, args[0])

    def _check(self, event: str, given: Any) -> None:
        if isinstance(given, int):
            return
        path = Path(os.path.abspath(os.fsdecode(given)))  # noqa: PTH100 - links stay as they are
        if not any(path.is_relative_to(folder) for folder in self._folders):
            return
        inside = (place for place in self.allowed if self._is_inside(place))
        may_be_made = event == "os.mkdir" and real_models.folder().is_relative_to(path)
        if may_be_made or "__pycache__" in path.parts:
            return
        if any(path.is_relative_to(place) for place in inside):
            return
        test = os.environ.get("PYTEST_CURRENT_TEST", "outside of a test")
        with self._refused.open("a", encoding="utf-8") as file:
            file.write(f"refused: {event} {path} ({test})\n")
        raise PermissionError(errno.EPERM, "a test may not write into the real home", str(path))

    def _is_inside(self, place: Path) -> bool:
        """Return whether a path is in the real home; folders around it don't count."""
        return any(place.is_relative_to(folder) for folder in self._folders)


def _keep_readable() -> None:
    """Name what tests need from the real home, before HOME leads elsewhere."""
    os.environ["MEDUSA_REAL_MODELS"] = str(real_models.folder())
    home = Path.home()
    places = [Path(os.environ.get("XDG_CONFIG_HOME", "") or home / ".config") / "pip" / "pip.conf"]
    places.append(home / ".pip" / "pip.conf")
    if sys.platform == "darwin":
        places.insert(0, home / "Library" / "Application Support" / "pip" / "pip.conf")
    if sys.platform == "win32":
        places = [Path(os.environ.get("APPDATA", home)) / "pip" / "pip.ini"]
    configured = [path for path in places if path.is_file()]
    if configured:
        os.environ.setdefault("PIP_CONFIG_FILE", str(configured[0]))
    if (home / ".pyenv").is_dir():
        os.environ.setdefault("PYENV_ROOT", str(home / ".pyenv"))


def _isolate() -> None:
    """Lead this process and its children to a new home, deleted when this process ends."""
    # A worker's home is in its controller's, which is deleted when all workers have ended.
    around = os.environ["HOME"] if _IS_WORKER else None
    home = Path(tempfile.mkdtemp(prefix="medusa-tests-", dir=around))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    for name in _LEADING_ELSEWHERE:
        os.environ.pop(name, None)
    os.environ |= {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache")}
    if sys.platform == "win32":
        local, roaming = str(home / "AppData" / "Local"), str(home / "AppData" / "Roaming")
        os.environ |= {"USERPROFILE": str(home), "LOCALAPPDATA": local, "APPDATA": roaming}
        # platformdirs asks Windows itself unless these are set.
        os.environ |= {"WIN_PD_OVERRIDE_LOCAL_APPDATA": local, "WIN_PD_OVERRIDE_APPDATA": roaming}
    # Windows and commands begin with the demo model, whether the installer has fetched one or not.
    os.environ["MEDUSA_MODELS"] = str(home / "no-models")
    if not _IS_WORKER:
        os.environ[_REFUSED_FILE] = str(home / "refused-writes")
    (home / ".cache").mkdir()


_before: State | None = None
if not _IS_WORKER:
    _keep_readable()
    _real = real_folders(Path.home(), os.environ)
    os.environ[_REAL_FOLDERS] = os.pathsep.join(map(str, _real))
    _found = (path for folder in _real for path in _paths(folder))
    if len(list(islice(_found, SMALL_HOME_FILES))) < SMALL_HOME_FILES:
        _before = read_state(_real, real_models.folder())
_real = [Path(folder) for folder in os.environ[_REAL_FOLDERS].split(os.pathsep)]
_isolate()
guard = WriteGuard(_real, Path(os.environ[_REFUSED_FILE]))
sys.addaudithook(guard)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Refuse writes from here on."""
    if basetemp := session.config.option.basetemp:
        guard.allowed.append(Path(basetemp).absolute())
    guard.is_active = True


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None]:
    """Fail the run if the real home was written; with xdist after all workers have ended."""
    guard.is_active = False  # pytest's reports may be anywhere
    yield
    if not _IS_WORKER and _problems():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name what was written there."""
    lines = [] if _IS_WORKER else _problems()
    if lines:
        terminalreporter.section("the run wrote into the real home folder", red=True)
        for line in lines:
            terminalreporter.write_line(line)


def _problems() -> list[str]:
    refused = Path(os.environ[_REFUSED_FILE])
    lines = refused.read_text(encoding="utf-8").splitlines() if refused.is_file() else []
    if _before is not None:
        lines += changed(_before, read_state(_real, real_models.folder()))
    return lines
