"""The tests run in a home folder of their own, and a run that writes into the real one fails."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from medusa_core.hub.settings import settings_from
from medusa_core.system.user_folders import cache_dir, places
from tests.support.isolated_home import SMALL_HOME_FILES, WriteGuard, changed, read_state
from tests.tools import real_models

ROOT = Path(__file__).resolve().parents[2]
NESTED = pytest.mark.skipif(sys.platform == "win32", reason="HOME isn't Windows's word for it")
WORKERS = pytest.mark.parametrize("workers", [pytest.param("0", marks=pytest.mark.slow), "2"])

WELL_BEHAVED = """
import subprocess, sys
from pathlib import Path
import pytest
from medusa_core.system.user_folders import places

@pytest.mark.parametrize("num", range(4))
def test_writes_at_home(num):
    state = places().state
    state.mkdir(parents=True, exist_ok=True)
    (state / "bandwidths.json").write_text("{}")
    write = "from pathlib import Path; (Path.home() / 'of a child').touch()"
    subprocess.run([sys.executable, "-c", write], check=True)
    assert (Path.home() / "of a child").exists()
"""
BY_PYTHON = """
from pathlib import Path
import pytest

def test_writes_elsewhere():
    path = Path({path!r})
    with pytest.raises(PermissionError):
        path.write_text("planted")
"""
BY_ANOTHER_PROGRAM = """
import subprocess, sys

def test_writes_elsewhere():
    write = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text('planted')"
    subprocess.run([sys.executable, "-c", write, {path!r}], check=True)
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A real home as it looks to a nested run: with a file of the program and pip's settings."""
    home = tmp_path / "home"
    for name in (".local/state/medusa-chat/bandwidths.json", ".config/pip/pip.conf", ".profile"):
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return home


def run(home: Path, workers: str, text: str, **extra: str) -> subprocess.CompletedProcess[str]:
    """Run a file of tests as a user with this home."""
    folder = home.parent / "run"
    folder.mkdir()
    (folder / "test_it.py").write_text(text)
    # Not our own isolation: the nested run is a first process with a real home.
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    parallel = [] if workers == "0" else ["-p", "xdist", "-n", workers]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.support.isolated_home", *parallel, "."],
        cwd=folder,
        env=kept
        | {"HOME": str(home), "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        | extra,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_test_run_has_its_own_home() -> None:
    own = Path.home()
    assert own.name.startswith("medusa-tests-")
    ours = places()
    folders = [ours.config, ours.data, ours.state, ours.log, cache_dir()]
    folders += [settings_from(os.environ).cache_dir, Path("~/x").expanduser()]
    assert all(path.is_relative_to(own) for path in folders)


@NESTED
@WORKERS
def test_a_run_that_writes_only_into_its_own_home_passes(home: Path, workers: str) -> None:
    before = sorted(home.rglob("*"))
    ran = run(home, workers, WELL_BEHAVED)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "4 passed" in ran.stdout
    assert sorted(home.rglob("*")) == before


@NESTED
@pytest.mark.parametrize(
    ("workers", "name", "word"),
    [
        ("0", "planted.txt", "created"),
        ("2", ".local/state/medusa-chat/bandwidths.json", "changed"),
    ],
)
def test_a_run_that_changes_its_real_home_fails_and_names_the_file(
    home: Path, workers: str, name: str, word: str
) -> None:
    ran = run(home, workers, BY_ANOTHER_PROGRAM.format(path=str(home / name)))
    assert "1 passed" in ran.stdout
    assert ran.returncode == 1
    assert f"{word}: {home / name}" in ran.stdout


@NESTED
def test_python_refuses_to_write_into_a_real_home_and_the_run_fails(
    home: Path,
) -> None:
    for num in range(SMALL_HOME_FILES):  # so many that other programs may write there, too
        (home / f"{num}.txt").touch()
    path = home / ".local" / "state" / "medusa-chat" / "bandwidths.json"
    ran = run(home, "2", BY_PYTHON.format(path=str(path)))
    assert "1 passed" in ran.stdout
    assert ran.returncode == 1
    assert f"refused: open {path} (test_it.py::test_writes_elsewhere (call))" in ran.stdout
    assert path.read_text() == ""


@NESTED
def test_folders_named_outside_of_the_home_are_watched_too(home: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    planted = BY_ANOTHER_PROGRAM.format(path=str(elsewhere / "x"))
    ran = run(home, "0", planted, XDG_STATE_HOME=str(elsewhere))
    assert ran.returncode == 1
    assert f"created: {elsewhere / 'x'}" in ran.stdout


CHANGES: dict[str, Callable[[Path], object]] = {
    "os.mkdir": lambda home: (home / "new").mkdir(),
    "os.remove": lambda home: (home / ".profile").unlink(),
    "os.rename": lambda home: (home / ".profile").rename(home / "renamed"),
    "os.symlink": lambda home: (home / "link").symlink_to(home),
    "os.utime": lambda home: os.utime(home / ".profile"),
    "os.rmdir": lambda home: (home / ".config" / "pip").rmdir(),
    "shutil.rmtree": lambda home: shutil.rmtree(home),
    "sqlite3.connect": lambda home: sqlite3.connect(home / "new.db"),
    "open": lambda home: os.open(home / "new", os.O_CREAT | os.O_WRONLY),
}


@pytest.mark.parametrize("event", CHANGES)
def test_every_way_to_change_files_is_refused(
    event: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = tmp_path / "refused"
    guard = WriteGuard([home], refused)
    sys.addaudithook(guard)
    before = sorted(home.rglob("*"))
    (home / ".profile").read_text()
    guard.is_active = True
    with pytest.raises(PermissionError, match="may not write into the real home"):
        CHANGES[event](home)
    guard.is_active = False
    assert refused.read_text().startswith("refused: ")
    assert sorted(home.rglob("*")) == before


def test_files_of_the_test_run_itself_are_allowed(home: Path, tmp_path: Path) -> None:
    guard = WriteGuard([home], tmp_path / "refused")
    guard.allowed = [home / "checkout", tmp_path]
    sys.addaudithook(guard)
    (home / "checkout").mkdir()
    guard.is_active = True
    (home / "checkout" / "new").touch()
    (tmp_path / "new").touch()
    with pytest.raises(PermissionError):
        (home / "new").touch()
    guard.is_active = False


def test_real_models_may_be_fetched_into_a_watched_home(home: Path) -> None:
    models = home / ".cache" / "medusa-chat" / "real"
    before = read_state([home], models)
    models.mkdir(parents=True)
    (models / "model.gguf").touch()
    assert changed(before, read_state([home], models)) == []
    (home / ".profile").unlink()
    assert changed(before, read_state([home], models)) == [f"removed: {home / '.profile'}"]


@NESTED
def test_pip_and_real_models_are_still_found(home: Path) -> None:
    """Slow tests install packages and load models that were fetched."""
    asks = f"""
import os

def test_it():
    assert os.environ["PIP_CONFIG_FILE"] == {str(home / ".config" / "pip" / "pip.conf")!r}
    assert os.environ["MEDUSA_REAL_MODELS"] == {str(home / ".cache" / "medusa-chat" / "real")!r}
"""
    ran = run(home, "2", asks)
    assert ran.returncode == 0, ran.stdout
    assert not real_models.folder().is_relative_to(Path.home())
