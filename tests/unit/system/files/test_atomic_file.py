"""Files that are written whole or not at all, also where the disk is full."""

import signal
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from medusa_core.__main__ import main
from medusa_core.chats.history.history import open_history
from medusa_core.chats.presets import Preset, Presets
from medusa_core.chats.settings_file import SettingsFile, write_settings_file
from medusa_core.errors import MedusaError
from medusa_core.hub.settings import save_token
from medusa_core.remote.endpoints import Endpoint, Endpoints
from medusa_core.system.files.atomic_file import replace_text
from medusa_core.system.files.measurement_files import MeasurementFiles
from medusa_core.system.files.own_folder import make_own_folder
from medusa_core.system.jobs.batch.job import BatchSpec, OwnBatches
from medusa_core.system.jobs.batch.progress import BatchProgress, write_progress
from medusa_core.system.key_store import KeyStore
from medusa_core.system.running_models import RunningFile
from medusa_core.system.user_folders import places

resource = pytest.importorskip("resource")
LONG = "x" * 100


@contextmanager
def full_disk() -> Iterator[None]:
    """No file may have more than some bytes, as if that were all the room there is.

    No fixture: pytest reports the call before fixtures end, maybe into a larger file.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


WRITERS: dict[str, Callable[[Path], object]] = {
    "settings": lambda folder: write_settings_file(SettingsFile({}), folder / "settings.json"),
    "presets": lambda folder: Presets(folder).replace_own([Preset(LONG, {})], None),
    "endpoints": lambda folder: Endpoints(folder).add(Endpoint("http://localhost:1", LONG)),
    "keys": lambda folder: KeyStore(folder)._write({"http://localhost:1": LONG}),
    "progress": lambda folder: write_progress(folder / "progress.json", BatchProgress("done")),
    "token": lambda folder: save_token(LONG, {"HF_HOME": str(folder)}),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_a_full_disk_leaves_no_temporary_file(writer: str, tmp_path: Path) -> None:
    with pytest.raises((MedusaError, OSError)) as caught, full_disk():
        WRITERS[writer](tmp_path)
    assert not list(tmp_path.iterdir())
    if isinstance(caught.value, MedusaError):
        assert "room" in caught.value.hint


def test_a_full_disk_leaves_no_measurement_file(tmp_path: Path) -> None:
    with full_disk():
        for _ in range(3):
            MeasurementFiles(tmp_path).save("model", "costs", {"rows": LONG})
    assert not list(tmp_path.iterdir())


def test_a_value_without_json_leaves_no_measurement_file(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        MeasurementFiles(tmp_path).save("model", "costs", {"rows": object()})
    assert not list(tmp_path.iterdir())


MAKERS: dict[str, Callable[[Path], object]] = {
    "folder": lambda folder: make_own_folder(folder),
    "text": lambda folder: replace_text(folder / "file", LONG),
    "measurements": lambda folder: MeasurementFiles(folder).save("model", "costs", {}),
    "batch": lambda folder: OwnBatches(folder).begin(BatchSpec("prompts.jsonl", "answers.jsonl")),
    "history": lambda folder: open_history(folder / "history.db").close(),
    "running": lambda folder: RunningFile(folder, "serve"),
}


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no modes there")
@pytest.mark.parametrize("maker", MAKERS)
def test_created_folders_are_readable_by_their_user_only(maker: str, tmp_path: Path) -> None:
    MAKERS[maker](tmp_path / "state" / "deep")
    for folder in (tmp_path / "state", tmp_path / "state" / "deep"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no modes there")
def test_a_command_restricts_folders_of_earlier_versions() -> None:
    own = places()
    for folder in (own.config, own.data, own.state, own.log):
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)
    assert main(["list"]) == 0
    for folder in (own.config, own.data, own.state, own.log):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_replaced_file_is_readable_by_its_user_only(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file.json"
    for text in ("one", "äöü"):
        replace_text(path, text)
        assert path.read_text(encoding="utf-8") == text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_a_failed_write_keeps_the_previous_file(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    replace_text(path, "before")
    with full_disk(), pytest.raises(OSError, match="too large"):
        replace_text(path, LONG)
    assert path.read_text(encoding="utf-8") == "before"
    assert list(tmp_path.iterdir()) == [path]
