"""Fetching a pair: whatever happens, what is here is right, and little is fetched twice."""

import socket
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from medusa_core.errors import (
    AccessError,
    DiskFullError,
    HubError,
    IntegrityError,
    NetworkError,
    NotFoundError,
    OfflineError,
    UnusableRepoError,
)
from medusa_core.hub import cache_folder as cache_module
from medusa_core.hub.cache_folder import RepoCache, find_snapshot
from medusa_core.hub.job import Pair
from medusa_core.hub.listing import list_repo
from medusa_core.hub.pair_download import Tally, download_pair
from medusa_core.hub.settings import HubSettings
from medusa_core.hub.watch import Stopped
from tests.support.hub.fixtures import LoopbackHub, random_file
from tests.support.hub.pairs import (
    MIB,
    MODEL,
    QUICK,
    check_whole,
    fetch,
    fill,
    run,
    sent,
)


def test_existing_files_are_checked_and_not_downloaded(
    hub: LoopbackHub, settings: HubSettings
) -> None:
    fill(hub)
    (model,) = fetch(settings, Pair(MODEL))
    before = sent(hub)
    fetch(settings, Pair(MODEL))
    assert sent(hub) == before
    blob = (model / "model-00001-of-00002.safetensors").resolve()
    damaged = bytearray(blob.read_bytes())
    damaged[5] ^= 1
    blob.write_bytes(damaged)
    fetch(settings, Pair(MODEL))
    assert sent(hub) == before + MIB, "only the damaged file"
    check_whole(hub, MODEL, model)


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "truncated", "after": 300_000},
        {"kind": "truncated", "after": 300_000, "times": 3},
        {"kind": "whole_for_range"},
        {"kind": "flipped"},
        {"kind": "busy", "retry_after": 0},
        {"kind": "broken", "times": 2},
        {"kind": "bad_range"},
        {"kind": "silent", "seconds": 3},
        {"kind": "stall", "after": 300_000, "seconds": 3},
    ],
    ids=lambda fault: f"{fault['kind']}-{fault.get('times', 1)}",
)
def test_a_transient_error_is_retried(
    fault: dict[str, object], hub: LoopbackHub, settings: HubSettings
) -> None:
    fill(hub)
    hub.set_faults(**{"model-00001-of-00002__safetensors": fault})
    tally = Tally()
    (model,) = fetch(replace(settings, timeouts=QUICK), Pair(MODEL), tally)
    check_whole(hub, MODEL, model)
    assert tally.done_bytes == tally.total_bytes
    assert not list(model.parents[1].glob("blobs/*.part"))


def test_an_interrupted_download_resumes_where_it_was_cut(
    hub: LoopbackHub, settings: HubSettings
) -> None:
    fill(hub)
    cut = {"kind": "truncated", "after": 300_000, "times": 2}
    hub.set_faults(**{"model-00001-of-00002__safetensors": cut})
    tally = Tally()
    fetch(replace(settings, timeouts=QUICK), Pair(MODEL), tally)
    assert tally.fetched_bytes == tally.total_bytes
    assert [e["range"] for e in hub.log if "00001" in e["path"]][1:] == [
        "bytes=300000-",
        "bytes=600000-",
    ]


def test_retry_after_is_respected(hub: LoopbackHub, settings: HubSettings) -> None:
    fill(hub)
    hub.set_faults(config__json={"kind": "busy", "retry_after": 1})
    started = time.monotonic()
    fetch(replace(settings, timeouts=QUICK), Pair(MODEL))
    assert time.monotonic() - started >= 1.0


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        ({"kind": "gated"}, AccessError, "Accept its terms at"),
        ({"kind": "unauthorized"}, AccessError, "token"),
        ({"kind": "missing"}, NotFoundError, "any more"),
        ({"kind": "changed_etag"}, IntegrityError, "has changed"),
        ({"kind": "flipped", "times": 9}, IntegrityError, "damaged twice"),
        ({"kind": "broken", "times": 9}, NetworkError, "nothing is lost"),
        ({"kind": "silent", "times": 9, "seconds": 1}, NetworkError, "silent"),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_a_permanent_error_is_reported(
    fault: dict[str, object],
    error: type[HubError],
    words: str,
    hub: LoopbackHub,
    settings: HubSettings,
) -> None:
    fill(hub)
    hub.set_faults(**{"model-00002-of-00002__safetensors": fault})
    quick = replace(QUICK, stall_s=0.3, max_tries=2)
    with pytest.raises(error, match=words):
        fetch(replace(settings, timeouts=quick), Pair(MODEL))
    assert find_snapshot(settings.cache_dir, MODEL) is None, "half a model must not be found"


@pytest.mark.parametrize(
    ("kind", "error", "words"),
    [
        ("gated", AccessError, "Accept its terms"),
        ("no_repo", NotFoundError, "no repository"),
        ("broken", NetworkError, "Can't reach"),
    ],
)
def test_refusals_of_the_hub_have_messages_of_ours(
    kind: str, error: type[HubError], words: str, hub: LoopbackHub, settings: HubSettings
) -> None:
    fill(hub)
    hub.fail_api(MODEL, kind, times=9)
    with pytest.raises(error, match=words):
        list_repo(settings, MODEL)


def test_missing_names_and_revisions_are_reported(hub: LoopbackHub, settings: HubSettings) -> None:
    fill(hub)
    with pytest.raises(NotFoundError, match="no repository"):
        list_repo(settings, "org/nothing")
    with pytest.raises(NotFoundError, match="no such revision"):
        list_repo(settings, MODEL, "v9")
    with pytest.raises(NotFoundError, match="no name"):
        list_repo(settings, "a//b")


def test_an_unreachable_hub_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    settings = HubSettings(endpoint="http://127.0.0.1:9", cache_dir=tmp_path)
    with pytest.raises(NetworkError, match="Can't reach"):
        list_repo(settings, MODEL)


@pytest.mark.parametrize(
    ("names", "words"),
    [(["a.gguf", "b.gguf"], "--file a.gguf"), (["model.bin"], "pickles")],
)
def test_a_repository_that_cannot_be_loaded_says_what_it_contains(
    names: list[str], words: str, hub: LoopbackHub, settings: HubSettings
) -> None:
    for name in names:
        random_file(hub.root / MODEL / name, 1000)
    with pytest.raises(UnusableRepoError, match=words):
        fetch(settings, Pair(MODEL))
    assert sent(hub) == 0


def test_offline_no_request_is_sent(
    hub: LoopbackHub, settings: HubSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(hub)

    def forbidden(*_: object) -> None:
        raise AssertionError("a request left")

    offline = replace(settings, is_offline=True)
    monkeypatch.setattr(socket.socket, "connect", forbidden)
    with pytest.raises(OfflineError, match="Offline mode"):
        list_repo(offline, MODEL)
    with pytest.raises(OfflineError):
        run(download_pair(offline, Pair(MODEL), Tally(), threading.Event()))
    monkeypatch.undo()
    assert hub.log == []


def test_disk_space_is_checked_before_and_during_a_download(
    hub: LoopbackHub, settings: HubSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("medusa_core.hub.transfer._SPACE_EVERY", 4 * MIB)
    fill(hub, 6 * MIB)
    free = cache_module.shutil.disk_usage(hub.root).free
    with pytest.raises(DiskFullError, match=r"Needs \d+\.\d GB more"):
        fetch(replace(settings, floor_bytes=free + (1 << 30)), Pair(MODEL))
    assert sent(hub) == 0
    looks = iter([10**12] * 6)
    real = cache_module.shutil._ntuple_diskusage  # type: ignore[attr-defined]
    monkeypatch.setattr(
        cache_module.shutil, "disk_usage", lambda _: real(10**12, 0, next(looks, 10))
    )
    with pytest.raises(DiskFullError, match="nothing is lost"):
        fetch(replace(settings, floor_bytes=1), Pair(MODEL))


def test_the_rate_limit_is_kept(hub: LoopbackHub, settings: HubSettings) -> None:
    fill(hub, 2 * MIB)
    started = time.monotonic()
    tally = Tally()
    fetch(replace(settings, bytes_per_s=4 * MIB), Pair(MODEL), tally)
    assert time.monotonic() - started >= 0.9 * tally.total_bytes / (4 * MIB) - 0.5


def test_stopping_keeps_downloaded_parts(hub: LoopbackHub, settings: HubSettings) -> None:
    fill(hub, 4 * MIB)
    stop, blobs = threading.Event(), RepoCache(settings.cache_dir, MODEL).folder / "blobs"

    class Stopping(Tally):
        def add_stored(self, nbytes: int) -> None:
            super().add_stored(nbytes)
            if self.done_bytes > MIB:
                stop.set()

    with pytest.raises(Stopped):
        run(download_pair(settings, Pair(MODEL), Stopping(), stop))
    assert list(blobs.glob("*.part"))


def test_a_name_that_cannot_be_resolved_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    settings = HubSettings(endpoint="http://nowhere.invalid", cache_dir=tmp_path, timeouts=QUICK)
    with pytest.raises(NetworkError, match="Can't reach"):
        list_repo(settings, MODEL)
