"""Files that are written whole or not at all, also where the disk is full."""

import signal
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from medusa_core.chats.presets import Preset, Presets
from medusa_core.chats.settings_file import SettingsFile, write_settings_file
from medusa_core.errors import MedusaError
from medusa_core.hub.settings import save_token
from medusa_core.remote.endpoints import Endpoint, Endpoints
from medusa_core.remote.keys import KeyStore
from medusa_core.system.files.whole_file import replace_text
from medusa_core.system.jobs.batch.progress import BatchProgress, write_progress

resource = pytest.importorskip("resource")
LONG = "x" * 100


@pytest.fixture
def full_disk() -> Iterator[None]:
    """No file may have more than some bytes, as if that were all the room there is."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


WRITERS: dict[str, Callable[[Path], object]] = {
    "settings": lambda folder: write_settings_file(SettingsFile({}), folder / "settings.json"),
    "presets": lambda folder: Presets(folder).replace_own([Preset(LONG, {})], None),
    "endpoints": lambda folder: Endpoints(folder).connect(Endpoint("http://localhost:1", LONG)),
    "keys": lambda folder: KeyStore(folder)._write({"http://localhost:1": LONG}),
    "progress": lambda folder: write_progress(folder / "progress.json", BatchProgress("done")),
    "token": lambda folder: save_token(LONG, {"HF_HOME": str(folder)}),
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.usefixtures("full_disk")
def test_nothing_is_left_on_a_full_disk(writer: str, tmp_path: Path) -> None:
    with pytest.raises((MedusaError, OSError)) as caught:
        WRITERS[writer](tmp_path)
    assert not list(tmp_path.iterdir())
    if isinstance(caught.value, MedusaError):
        assert "room" in caught.value.hint


def test_a_file_takes_the_place_of_another_and_is_its_users_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file.json"
    for text in ("one", "äöü"):
        replace_text(path, text)
        assert path.read_text(encoding="utf-8") == text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_a_failure_leaves_what_was_there_before(tmp_path: Path, full_disk: None) -> None:
    path = tmp_path / "file.json"
    replace_text(path, "before")
    with pytest.raises(OSError, match="too large"):
        replace_text(path, LONG)
    assert path.read_text(encoding="utf-8") == "before"
    assert list(tmp_path.iterdir()) == [path]
