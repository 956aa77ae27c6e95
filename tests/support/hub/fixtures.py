"""A Hub on loopback, and a cache with a model and its heads in it."""

import atexit
import functools
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from medusa_core.hub.settings import HubSettings
from tests.support.hub.installed import HEADS, MODEL, SPEC, add_revision, read_files
from tests.support.hub.scripted import ScriptedHub, scripted_hub
from tests.support.models.tiny import random_heads, write_heads, write_tiny

REPOSITORY = Path(__file__).parents[3]


@functools.cache
def _server() -> str:
    """Address of the server's process, one for all tests of a worker."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.hub.server"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
    )
    assert process.stdout is not None
    address = f"http://127.0.0.1:{int(process.stdout.readline())}"

    def end() -> None:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()

    atexit.register(end)
    return address


class LoopbackHub:
    """A Hub in the server's process, until the next one is made.

    Attributes:
        root: Its repositories.
        endpoint: Its address.
    """

    def __init__(self, root: Path, bytes_per_s: int = 0) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.endpoint = _server()
        begin = {"root": str(root), "bytes_per_s": bytes_per_s}
        self._call("/__begin", json.dumps(begin).encode())

    def set_faults(self, **faults: dict[str, Any]) -> None:
        """Set faults by file name; two underscores stand for a dot."""
        named = {name.replace("__", "."): fault for name, fault in faults.items()}
        self._call("/__faults", json.dumps(named).encode())

    def fail_api(self, repo: str, kind: str, times: int = 1) -> None:
        self._call(
            "/__faults", json.dumps({f"api:{repo}": {"kind": kind, "times": times}}).encode()
        )

    @property
    def log(self) -> list[dict[str, Any]]:
        """Return all requests so far except those of the tests."""
        found = self._call("/__log")
        assert isinstance(found, list)
        return found

    def _call(self, path: str, body: bytes | None = None) -> Any:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self.endpoint + path, body) as answer:
            return json.loads(answer.read())


def random_file(path: Path, size: int, seed: int = 0) -> Path:
    """A file of bytes that don't repeat."""
    import numpy as np

    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(np.random.default_rng(seed).bytes(size))
    return path


@pytest.fixture
def hub(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> LoopbackHub:
    """A Hub on loopback; a test may ask for a slower line (bytes/s) as its parameter."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "HF_HUB_CACHE", "HF_HOME", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    return LoopbackHub(tmp_path / "hub", getattr(request, "param", 0))


@pytest.fixture
def settings(hub: LoopbackHub, tmp_path: Path) -> HubSettings:
    return HubSettings(endpoint=hub.endpoint, cache_dir=tmp_path / "cache", floor_bytes=0)


def in_library(hub: LoopbackHub, cache: Path, code: str, offline: bool = False) -> str:
    """Return the output of huggingface_hub in a process of its own."""
    environment = {
        **os.environ,
        "HF_ENDPOINT": hub.endpoint,
        "HF_HUB_CACHE": str(cache),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "NO_PROXY": "127.0.0.1",
        **({"HF_HUB_OFFLINE": "1"} if offline else {}),
    }
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="session")
def model_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return read_files(write_tiny(tmp_path_factory.mktemp("model"), SPEC))


@pytest.fixture(scope="session")
def heads_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = write_heads(tmp_path_factory.mktemp("heads"), random_heads(SPEC))
    config = json.dumps({"base_model_name_or_path": MODEL}).encode()
    return {**read_files(folder), "config.json": config}


@pytest.fixture
def cache(tmp_path: Path, model_files: dict[str, bytes], heads_files: dict[str, bytes]) -> Path:
    """A model and its heads, as huggingface_hub would have left them."""
    folder = tmp_path / "cache"
    add_revision(folder, MODEL, model_files)
    add_revision(folder, HEADS, heads_files)
    return folder


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedHub]:
    """Hub whose answers are given by the test."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with scripted_hub() as hub:
        yield hub


@pytest.fixture
def scripted_settings(scripted: ScriptedHub, tmp_path: Path) -> HubSettings:
    return HubSettings(endpoint=scripted.endpoint, cache_dir=tmp_path / "cache", floor_bytes=0)


@pytest.fixture
def converts_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Convert pickles without a process; tests/system/hub has tests of that one."""
    from tests.support.hub.pickled import run_in_process

    monkeypatch.setattr("medusa_core.hub.convert.convert.run_job", run_in_process)
