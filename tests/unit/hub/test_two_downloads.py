"""Two downloads of one file: one fetches it, the others wait for it and use it."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from huggingface_hub.utils import WeakFileLock

from medusa_core.__main__ import main
from medusa_core.hub.blob_lock import hold
from medusa_core.hub.cache_folder import RepoCache, find_snapshot
from medusa_core.hub.job import Pair
from medusa_core.hub.listing import RemoteFile, list_repo
from medusa_core.hub.pair_download import Tally, download_pair, forget_pair
from medusa_core.hub.part import PartialFile
from medusa_core.hub.settings import HubSettings
from medusa_core.hub.watch import Stopped
from tests.support.hub.fixtures import REPOSITORY, LoopbackHub, random_file
from tests.support.hub.pairs import MIB, MODEL, check_whole, fetch, fill, run, sent

NUM_DOWNLOADS = 3


def weights(settings: HubSettings) -> RemoteFile:
    """The first shard of the model."""
    return next(file for file in list_repo(settings, MODEL).files if "00001-of" in file.path)


def when_it_waits(work: Callable[[Tally, threading.Event], None]) -> tuple[threading.Thread, Tally]:
    """Start a download, and return once it waits for another one."""
    tally, waits = Tally(), threading.Event()

    class Says(dict[str, str]):
        def __setitem__(self, name: str, text: str) -> None:
            super().__setitem__(name, text)
            if "another download" in text:
                waits.set()

    tally.waits_for = Says()
    stop = threading.Event()
    thread = threading.Thread(target=work, args=(tally, stop))
    thread.start()
    assert waits.wait(20)
    return thread, tally


def test_threads_that_download_one_model_concurrently_download_each_byte_once(
    hub: LoopbackHub, settings: HubSettings
) -> None:
    fill(hub)
    tallies = [Tally() for _ in range(NUM_DOWNLOADS)]
    with ThreadPoolExecutor() as threads:
        for (folder,) in threads.map(lambda tally: fetch(settings, Pair(MODEL), tally), tallies):
            check_whole(hub, MODEL, folder)
    assert sum(tally.fetched_bytes for tally in tallies) == tallies[0].total_bytes == sent(hub)
    assert {tally.done_bytes for tally in tallies} == {tallies[0].total_bytes}


def test_a_model_may_contain_its_own_heads(
    hub: LoopbackHub, settings: HubSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(hub)
    monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
    cache = ("--cache-dir", str(settings.cache_dir))
    assert main(["pull", MODEL, "--heads", MODEL, *cache]) == 0
    snapshot = find_snapshot(settings.cache_dir, MODEL)
    assert snapshot is not None
    check_whole(hub, MODEL, snapshot)
    assert sent(hub) == list_repo(settings, MODEL).needed_bytes


def test_files_of_equal_content_are_downloaded_once(
    hub: LoopbackHub, settings: HubSettings
) -> None:
    for name in ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"):
        random_file(hub.root / MODEL / name, MIB, seed=7)
    (folder,) = fetch(settings, Pair(MODEL))
    check_whole(hub, MODEL, folder)
    assert sent(hub) == MIB


def test_waiting_for_another_download_can_be_stopped(
    hub: LoopbackHub, settings: HubSettings
) -> None:
    fill(hub)
    cache = RepoCache(settings.cache_dir, MODEL)
    stops: list[threading.Event] = []
    outcome: list[type[BaseException]] = []

    def work(tally: Tally, stop: threading.Event) -> None:
        stops.append(stop)
        try:
            run(download_pair(settings, Pair(MODEL), tally, stop))
        except Stopped as error:
            outcome.append(type(error))

    with hold(cache.boundary, cache.lock(weights(settings).blob_id), threading.Event()):
        thread, _ = when_it_waits(work)
        stops[0].set()
        thread.join(20)
    assert outcome == [Stopped]
    assert find_snapshot(settings.cache_dir, MODEL) is None


def test_huggingface_hubs_lock_is_respected_and_its_partial_file_used(
    hub: LoopbackHub, settings: HubSettings
) -> None:
    fill(hub)
    file, cache = weights(settings), RepoCache(settings.cache_dir, MODEL)
    cache.lock(file.blob_id).parent.mkdir(parents=True)
    with WeakFileLock(cache.lock(file.blob_id)):
        thread, tally = when_it_waits(
            lambda tally, stop: void(run(download_pair(settings, Pair(MODEL), tally, stop)))
        )
        cache.prepare()
        cache.blob(file).write_bytes((hub.root / MODEL / file.path).read_bytes())
    thread.join(20)
    assert tally.done_bytes == tally.total_bytes == tally.fetched_bytes + file.size


def void(_: object) -> None:
    """Drop a result."""


HOLDER = """
import sys, threading
from pathlib import Path
from medusa_core.hub.blob_lock import hold
from medusa_core.hub.boundary import Boundary
with hold(Boundary(Path(sys.argv[1])), Path(sys.argv[2]), threading.Event()):
    print("held", flush=True)
    threading.Event().wait()
"""


def test_the_file_of_a_killed_download_is_resumed(hub: LoopbackHub, settings: HubSettings) -> None:
    fill(hub)
    file, cache = weights(settings), RepoCache(settings.cache_dir, MODEL)
    cache.prepare()
    cache.part(file).write_bytes((hub.root / MODEL / file.path).read_bytes()[:1000])
    lock = str(cache.lock(file.blob_id))
    command = [sys.executable, "-c", HOLDER, str(settings.cache_dir), lock]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        thread, tally = when_it_waits(
            lambda tally, stop: void(run(download_pair(settings, Pair(MODEL), tally, stop)))
        )
        holder.send_signal(signal.SIGKILL)
    thread.join(20)
    assert tally.fetched_bytes == tally.total_bytes - 1000
    assert tally.done_bytes == tally.total_bytes


def test_a_cancelled_download_keeps_parts_that_another_is_writing(
    hub: LoopbackHub, settings: HubSettings
) -> None:
    fill(hub)
    cache = RepoCache(settings.cache_dir, MODEL)
    cache.prepare()
    mine, theirs = (replace(weights(settings), blob_id=digit * 64) for digit in "ab")
    for file in (mine, theirs):
        cache.part(file).write_bytes(b"begun")
    with hold(cache.boundary, cache.lock(theirs.blob_id), threading.Event()):
        run(forget_pair(settings, Pair(MODEL)))
    assert list(cache.folder.glob("blobs/*.part")) == [cache.part(theirs)]
    run(forget_pair(settings, Pair(MODEL)))
    assert list(cache.folder.glob("blobs/*.part")) == []


def test_a_finished_blob_is_flushed_to_the_disk(hub: LoopbackHub, settings: HubSettings) -> None:
    fill(hub)
    file, cache = weights(settings), RepoCache(settings.cache_dir, MODEL)
    data = (hub.root / MODEL / file.path).read_bytes()
    cache.prepare()
    with PartialFile(cache, file) as part:
        part.append(data)
        with cache.part(file).open("r+b") as other:
            other.write(b"spoiled")
        assert not part.become_blob(void)
        part.forget()
        part.append(data)
        cache.part(file).replace(settings.cache_dir / "moved")
        cache.part(file).write_bytes(b"another file")
        assert not part.become_blob(void)
    assert not cache.blob(file).exists()
    assert not Path(settings.cache_dir / "moved").samefile(cache.part(file))
