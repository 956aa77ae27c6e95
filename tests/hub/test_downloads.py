"""Downloads: whatever happens, what is here is right, and little is fetched twice."""

import asyncio
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

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
from medusa_core.hub import cache as cache_module
from medusa_core.hub.cache import RepoCache, find_snapshot
from medusa_core.hub.downloads import Downloads
from medusa_core.hub.job import Job, JobState, Pair
from medusa_core.hub.listing import list_repo
from medusa_core.hub.pair_download import Tally, download_pair
from medusa_core.hub.settings import HubSettings, Patience, save_token, settings_from
from medusa_core.hub.transfer import Stopped
from tests.hub.conftest import REPOSITORY, LoopbackHub, in_library, random_file

T = TypeVar("T")
MIB = 1 << 20
MODEL, HEADS = "org/model", "org/heads"
QUICK = Patience(stall_s=0.5, backoff_s=0.01, longest_s=0.05, most_tries=3)


def run(work: Awaitable[T]) -> T:
    async def main() -> T:
        return await work

    return asyncio.run(main())


def fill(hub: LoopbackHub, nbytes: int = MIB) -> None:
    """A model in two shards, and heads."""
    folder = hub.root / MODEL
    for index in (1, 2):
        random_file(folder / f"model-0000{index}-of-00002.safetensors", nbytes, seed=index)
    (folder / "config.json").write_text('{"model_type": "llama"}', encoding="utf-8")
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
    (folder / "model.safetensors.index.json").write_text("{}", encoding="utf-8")
    random_file(folder / "pytorch_model.bin", 1000)
    random_file(folder / "consolidated.safetensors", 1000)
    (folder / "README.md").write_text("about", encoding="utf-8")
    random_file(hub.root / HEADS / "medusa_lm_head.safetensors", nbytes // 2, seed=3)
    (hub.root / HEADS / "config.json").write_text("{}", encoding="utf-8")


def fetch(settings: HubSettings, pair: Pair, tally: Tally | None = None) -> tuple[Path, ...]:
    return run(download_pair(settings, pair, tally or Tally(), threading.Event()))


def check_whole(hub: LoopbackHub, repo: str, snapshot: Path) -> None:
    names = [p.name for p in snapshot.iterdir()]
    assert "README.md" not in names
    for path in snapshot.iterdir():
        assert path.read_bytes() == (hub.root / repo / path.name).read_bytes()


def sent(hub: LoopbackHub) -> int:
    """Bytes of files that left the server."""
    return sum(entry["sent"] for entry in hub.log)


def test_a_pair_arrives_and_the_library_finds_it(hub: LoopbackHub, settings: HubSettings) -> None:
    fill(hub)
    tally = Tally()
    model, heads = fetch(settings, Pair(MODEL, HEADS), tally)
    check_whole(hub, MODEL, model)
    check_whole(hub, HEADS, heads)
    assert tally.done_bytes == tally.total_bytes == tally.fetched_bytes
    names = {path.name for path in model.iterdir()}
    assert {"pytorch_model.bin", "consolidated.safetensors"}.isdisjoint(names)
    assert find_snapshot(settings.cache_dir, MODEL) == model
    # The library itself, offline, and with what it knows of snapshots.
    patterns = "allow_patterns=['*.json', 'model-*.safetensors']"
    code = f"from huggingface_hub import snapshot_download as s; print(s('{MODEL}', {patterns}"
    assert in_library(hub, settings.cache_dir, f"{code}, local_files_only=True))") == str(model)
    assert in_library(hub, settings.cache_dir, f"{code}, local_files_only=True))", offline=True)
    before = sent(hub)
    assert in_library(hub, settings.cache_dir, f"{code}))") == str(model)
    assert sent(hub) == before, "the library fetched again what was here"


def test_the_library_itself_can_use_this_hub(hub: LoopbackHub, tmp_path: Path) -> None:
    import numpy as np
    from safetensors.numpy import save_file

    fill(hub)
    save_file({"a": np.zeros((2, 3), np.float32)}, hub.root / "org" / "heads" / "model.safetensors")
    code = (
        "from huggingface_hub import HfApi, snapshot_download as s; a = HfApi();"
        f"print(len(a.model_info('{MODEL}').siblings),"
        f"len(list(a.list_repo_tree('{MODEL}'))), [m.id for m in a.list_models(search='head')],"
        f"len(a.get_paths_info('{MODEL}', ['config.json'])),"
        f"a.get_safetensors_metadata('{HEADS}').parameter_count, bool(s('{MODEL}')))"
    )
    printed = in_library(hub, tmp_path / "library-cache", code)
    assert printed == "8 8 ['org/heads'] 1 {'F32': 6} True"


def test_what_is_here_already_is_looked_at_and_not_fetched(
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
def test_a_fault_is_survived(
    fault: dict[str, object], hub: LoopbackHub, settings: HubSettings
) -> None:
    fill(hub)
    hub.set_faults(**{"model-00001-of-00002__safetensors": fault})
    tally = Tally()
    (model,) = fetch(replace(settings, patience=QUICK), Pair(MODEL), tally)
    check_whole(hub, MODEL, model)
    assert tally.done_bytes == tally.total_bytes
    assert not list(model.parents[1].glob("blobs/*.part"))


def test_a_cut_answer_is_gone_on_with_where_it_was_cut(
    hub: LoopbackHub, settings: HubSettings
) -> None:
    fill(hub)
    cut = {"kind": "truncated", "after": 300_000, "times": 2}
    hub.set_faults(**{"model-00001-of-00002__safetensors": cut})
    tally = Tally()
    fetch(replace(settings, patience=QUICK), Pair(MODEL), tally)
    assert tally.fetched_bytes == tally.total_bytes
    assert [e["range"] for e in hub.log if "00001" in e["path"]][1:] == [
        "bytes=300000-",
        "bytes=600000-",
    ]


def test_the_server_is_given_the_time_it_asks_for(hub: LoopbackHub, settings: HubSettings) -> None:
    fill(hub)
    hub.set_faults(config__json={"kind": "busy", "retry_after": 1})
    started = time.monotonic()
    fetch(replace(settings, patience=QUICK), Pair(MODEL))
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
def test_what_can_not_be_survived_is_said(
    fault: dict[str, object],
    error: type[HubError],
    words: str,
    hub: LoopbackHub,
    settings: HubSettings,
) -> None:
    fill(hub)
    hub.set_faults(**{"model-00002-of-00002__safetensors": fault})
    quick = replace(QUICK, stall_s=0.3, most_tries=2)
    with pytest.raises(error, match=words):
        fetch(replace(settings, patience=quick), Pair(MODEL))
    assert find_snapshot(settings.cache_dir, MODEL) is None, "half a model must not be found"


@pytest.mark.parametrize(
    ("kind", "error", "words"),
    [
        ("gated", AccessError, "Accept its terms"),
        ("no_repo", NotFoundError, "no repository"),
        ("broken", NetworkError, "doesn't answer"),
    ],
)
def test_the_hubs_refusals_are_in_our_words(
    kind: str, error: type[HubError], words: str, hub: LoopbackHub, settings: HubSettings
) -> None:
    fill(hub)
    hub.fail_api(MODEL, kind, times=9)
    with pytest.raises(error, match=words):
        list_repo(settings, MODEL)


def test_names_and_revisions_that_are_not_there(hub: LoopbackHub, settings: HubSettings) -> None:
    fill(hub)
    with pytest.raises(NotFoundError, match="no repository"):
        list_repo(settings, "org/nothing")
    with pytest.raises(NotFoundError, match="no such revision"):
        list_repo(settings, MODEL, "v9")
    with pytest.raises(NotFoundError, match="no name"):
        list_repo(settings, "a//b")


def test_a_hub_that_is_not_there_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    settings = HubSettings(endpoint="http://127.0.0.1:9", cache_dir=tmp_path)
    with pytest.raises(NetworkError, match="doesn't answer"):
        list_repo(settings, MODEL)


@pytest.mark.parametrize(
    ("name", "words"), [("model.gguf", "llama.cpp"), ("pytorch_model.bin", "pickles")]
)
def test_a_repository_that_can_not_be_loaded_says_what_it_is(
    name: str, words: str, hub: LoopbackHub, settings: HubSettings
) -> None:
    random_file(hub.root / MODEL / name, 1000)
    with pytest.raises(UnusableRepoError, match=words):
        fetch(settings, Pair(MODEL))
    assert sent(hub) == 0


def test_offline_no_request_leaves(
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


def test_room_is_looked_for_first_and_while_it_runs(
    hub: LoopbackHub, settings: HubSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(hub, 70 * MIB)
    free = cache_module.shutil.disk_usage(hub.root).free
    with pytest.raises(DiskFullError, match=r"lacks \d+\.\d GB"):
        fetch(replace(settings, floor_bytes=free - 100 * MIB), Pair(MODEL))
    assert sent(hub) == 0
    looks = iter([10**12] * 6)
    real = cache_module.shutil._ntuple_diskusage  # type: ignore[attr-defined]
    monkeypatch.setattr(
        cache_module.shutil, "disk_usage", lambda _: real(10**12, 0, next(looks, 10))
    )
    with pytest.raises(DiskFullError, match="nothing is lost"):
        fetch(replace(settings, floor_bytes=1), Pair(MODEL))


def test_the_limit_is_kept(hub: LoopbackHub, settings: HubSettings) -> None:
    fill(hub, 2 * MIB)
    started = time.monotonic()
    tally = Tally()
    fetch(replace(settings, bytes_per_s=4 * MIB), Pair(MODEL), tally)
    assert time.monotonic() - started >= 0.9 * tally.total_bytes / (4 * MIB) - 0.5


def test_a_token_is_the_users_alone_and_is_never_shown(tmp_path: Path) -> None:
    environment = {"HF_HOME": str(tmp_path)}
    path = save_token(" hf_secret \n", environment)
    assert path.stat().st_mode & 0o777 == 0o600
    settings = settings_from(environment)
    assert settings.token == "hf_secret"
    assert "hf_secret" not in repr(settings)


def test_the_environment_is_heeded(tmp_path: Path) -> None:
    told = {
        "HF_ENDPOINT": "https://mirror.example/",
        "HF_HUB_CACHE": str(tmp_path / "cache"),
        "HF_HUB_OFFLINE": "1",
        "HF_TOKEN": "x",
    }
    settings = settings_from(told)
    assert settings.endpoint == "https://mirror.example"
    assert settings.cache_dir == tmp_path / "cache"
    assert settings.is_offline
    assert settings_from({"HF_HOME": "/h"}).cache_dir == Path("/h/hub")


CHILD = """
import asyncio, sys, threading
from pathlib import Path
from medusa_core.hub.job import Pair
from medusa_core.hub.pair_download import Tally, download_pair
from medusa_core.hub.settings import HubSettings
settings = HubSettings(endpoint=sys.argv[1], cache_dir=Path(sys.argv[2]), floor_bytes=0)
tally = Tally()
asyncio.run(download_pair(settings, Pair("org/model", "org/heads"), tally, threading.Event()))
print(tally.fetched_bytes)
"""


def kill_and_resume(hub: LoopbackHub, settings: HubSettings, nbytes: int, num_kills: int) -> None:
    """Kill the downloading process again and again: all is right, and little was sent twice."""
    fill(hub, nbytes)
    total = sum(list_repo(settings, repo).needed_bytes for repo in (MODEL, HEADS))
    order = random.Random(5)
    command = [sys.executable, "-c", CHILD, hub.endpoint, str(settings.cache_dir)]
    lost = []
    for kill in range(num_kills):
        sent_before, here_before = sent(hub), here(settings.cache_dir)
        target = total * (kill + order.random()) / (num_kills + 1)
        with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.DEVNULL) as child:
            while here(settings.cache_dir) < target and child.poll() is None:
                time.sleep(0.002)
            assert child.poll() is None, "it ended before it could be killed"
            child.send_signal(signal.SIGKILL)
        time.sleep(0.1)  # the server notices
        came = here(settings.cache_dir) - here_before
        # What the server put on its way and nobody took counts too.
        lost.append(sent(hub) - sent_before - came)
        assert find_snapshot(settings.cache_dir, MODEL) is None
    last = subprocess.run(command, cwd=REPOSITORY, capture_output=True, check=True)
    model = find_snapshot(settings.cache_dir, MODEL)
    heads = find_snapshot(settings.cache_dir, HEADS)
    assert model is not None
    assert heads is not None
    check_whole(hub, MODEL, model)
    check_whole(hub, HEADS, heads)
    fetched_at_last = int(last.stdout)
    assert fetched_at_last < total
    assert max(lost) <= 16 * MIB, f"{max(lost)} bytes were fetched twice after one kill"
    lost_mib = ", ".join(f"{nbytes / MIB:.0f}" for nbytes in lost)
    print(f"{num_kills} kills of {total / MIB:.0f} MiB: sent twice, in MiB: {lost_mib}")
    code = (
        f"from huggingface_hub import snapshot_download as s; s('{HEADS}', local_files_only=True)"
    )
    in_library(hub, settings.cache_dir, code)


def here(cache: Path) -> int:
    """Bytes of blobs, whole or not."""
    return sum(size_of(path) for path in cache.glob("*/blobs/*"))


def size_of(path: Path) -> int:
    """A file's size; nothing while it changes its name."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


# Without a limit loopback fills the kernel's buffers, megabytes for each connection, whenever the
# reader is kept waiting by other work; a line has no such room.
fast_line = pytest.mark.parametrize("hub", [64 * MIB], indirect=True, ids=["fast_line"])


@fast_line
def test_a_killed_download_goes_on_where_it_was(hub: LoopbackHub, settings: HubSettings) -> None:
    kill_and_resume(hub, settings, nbytes=26 * MIB, num_kills=5)


@pytest.mark.slow
@fast_line
def test_a_large_download_that_is_killed_twenty_times(
    hub: LoopbackHub, settings: HubSettings
) -> None:
    kill_and_resume(hub, settings, nbytes=820 * MIB, num_kills=20)


# The list of downloads -------------------------------------------------------------------------


async def until(downloads: Downloads, job_id: int, holds: Callable[[Job], bool]) -> Job:
    """The download once something holds of it."""
    async with asyncio.timeout(20):
        while not holds(job := next(j for j in downloads.jobs if j.id == job_id)):
            await asyncio.sleep(0.01)
    return job


def slow_settings(settings: HubSettings) -> HubSettings:
    return replace(settings, bytes_per_s=4 * MIB)


def test_a_job_goes_through_its_states_and_everybody_is_told(
    hub: LoopbackHub, settings: HubSettings, tmp_path: Path
) -> None:
    fill(hub)

    async def work() -> None:
        downloads = Downloads(tmp_path / "jobs.db", settings)
        seen: list[JobState] = []
        downloads.subscribe(lambda job: seen.append(job.state))
        job = downloads.add(Pair(MODEL, HEADS))
        assert (await downloads.wait(job.id)).state is JobState.READY
        assert list(dict.fromkeys(seen))[:2] == [JobState.QUEUED, JobState.DOWNLOADING]
        assert seen[-1] is JobState.READY
        (done,) = downloads.jobs
        assert done.done_bytes == done.total_bytes > 0
        await downloads.close()

    run(work())


def test_pause_and_resume_fetch_nothing_twice(
    hub: LoopbackHub, settings: HubSettings, tmp_path: Path
) -> None:
    fill(hub, 4 * MIB)

    async def work() -> None:
        downloads = Downloads(tmp_path / "jobs.db", slow_settings(settings))
        job = downloads.add(Pair(MODEL))
        await until(downloads, job.id, lambda j: j.done_bytes > MIB)
        downloads.pause(job.id)
        paused = await downloads.wait(job.id)
        assert paused.state is JobState.PAUSED
        assert 0 < paused.done_bytes < paused.total_bytes
        downloads.settings = settings
        downloads.resume(job.id)
        assert (await downloads.wait(job.id)).state is JobState.READY
        await downloads.close()

    run(work())
    assert sent(hub) <= 8 * MIB + 8 * MIB  # what was on its way when it was paused


def test_a_restart_goes_on_and_pauses_stay(
    hub: LoopbackHub, settings: HubSettings, tmp_path: Path
) -> None:
    fill(hub, 4 * MIB)
    random_file(hub.root / "org" / "other" / "model.safetensors", 1000)

    async def first() -> None:
        downloads = Downloads(tmp_path / "jobs.db", slow_settings(settings))
        job = downloads.add(Pair(MODEL))
        other = downloads.add(Pair("org/other"))
        downloads.pause(other.id)
        await until(downloads, job.id, lambda j: j.done_bytes > MIB)
        await downloads.close()

    async def second() -> None:
        downloads = Downloads(tmp_path / "jobs.db", settings)
        states = [job.state for job in downloads.jobs]
        assert states == [JobState.DOWNLOADING, JobState.PAUSED]
        downloads.start()
        assert (await downloads.wait(1)).state is JobState.READY
        assert downloads.jobs[1].state is JobState.PAUSED
        await downloads.close()

    run(first())
    run(second())


def test_a_cancelled_job_is_gone_and_never_starts_again(
    hub: LoopbackHub, settings: HubSettings, tmp_path: Path
) -> None:
    fill(hub, 4 * MIB)

    async def first() -> None:
        downloads = Downloads(tmp_path / "jobs.db", slow_settings(settings))
        job = downloads.add(Pair(MODEL))
        await until(downloads, job.id, lambda j: j.done_bytes > MIB)
        downloads.cancel(job.id)
        assert (await downloads.wait(job.id)).state is JobState.CANCELLED
        await downloads.close()

    async def second() -> None:
        downloads = Downloads(tmp_path / "jobs.db", settings)
        downloads.start()
        downloads.resume(1)
        await asyncio.sleep(0.1)
        assert downloads.jobs[0].state is JobState.CANCELLED
        downloads.forget(1)
        assert downloads.jobs == ()
        await downloads.close()

    run(first())
    assert list(settings.cache_dir.rglob("*.part")) == []
    before = sent(hub)
    run(second())
    assert sent(hub) == before


def test_a_full_disk_pauses_and_says_how_much_is_missing(
    hub: LoopbackHub, settings: HubSettings, tmp_path: Path
) -> None:
    fill(hub)

    async def work() -> None:
        downloads = Downloads(tmp_path / "jobs.db", replace(settings, floor_bytes=1 << 60))
        job = downloads.add(Pair(MODEL))
        paused = await downloads.wait(job.id)
        assert paused.state is JobState.PAUSED
        assert "lacks" in paused.reason
        downloads.settings = settings
        downloads.resume(job.id)
        assert (await downloads.wait(job.id)).state is JobState.READY
        await downloads.close()

    run(work())


def test_a_failure_has_a_reason_and_can_be_tried_again(
    hub: LoopbackHub, settings: HubSettings, tmp_path: Path
) -> None:
    fill(hub)
    hub.set_faults(config__json={"kind": "gated"})

    async def work() -> None:
        downloads = Downloads(tmp_path / "jobs.db", settings)
        job = downloads.add(Pair(MODEL))
        failed = await downloads.wait(job.id)
        assert failed.state is JobState.FAILED
        assert "gated" in failed.reason
        assert "Accept its terms" in failed.hint
        downloads.resume(job.id)
        assert (await downloads.wait(job.id)).state is JobState.READY
        await downloads.close()

    run(work())


def test_a_silent_server_is_told_about_while_it_is_waited_for(
    hub: LoopbackHub, settings: HubSettings, tmp_path: Path
) -> None:
    fill(hub)
    hub.set_faults(config__json={"kind": "broken", "times": 2})

    async def work() -> None:
        patient = Patience(backoff_s=0.6, longest_s=0.6)
        downloads = Downloads(tmp_path / "jobs.db", replace(settings, patience=patient))
        job = downloads.add(Pair(MODEL))
        waiting = await until(downloads, job.id, lambda j: bool(j.says))
        assert "trying again" in waiting.says
        assert (await downloads.wait(job.id)).state is JobState.READY
        await downloads.close()

    run(work())


def test_the_same_pair_is_not_fetched_twice_at_a_time(
    hub: LoopbackHub, settings: HubSettings, tmp_path: Path
) -> None:
    fill(hub)

    async def work() -> None:
        downloads = Downloads(tmp_path / "jobs.db", settings)
        first, second = (downloads.add(Pair(MODEL)) for _ in range(2))
        assert first.id == second.id
        await downloads.wait(first.id)
        await downloads.close()

    run(work())


def test_a_list_of_a_newer_version_is_left_alone(settings: HubSettings, tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "jobs.db"
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(HubError, match="newer version"):
        Downloads(path, settings)
    (tmp_path / "broken.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(HubError, match="can't be opened"):
        Downloads(tmp_path / "broken.db", settings)


def test_stopping_leaves_what_was_fetched(hub: LoopbackHub, settings: HubSettings) -> None:
    fill(hub, 4 * MIB)
    stop, tally = threading.Event(), Tally()
    threading.Timer(0.3, stop.set).start()
    with pytest.raises(Stopped):
        run(download_pair(slow_settings(settings), Pair(MODEL), tally, stop))
    assert list(RepoCache(settings.cache_dir, MODEL).folder.glob("blobs/*.part"))


def test_a_name_that_can_not_be_resolved_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    settings = HubSettings(endpoint="http://nowhere.invalid", cache_dir=tmp_path, patience=QUICK)
    with pytest.raises(NetworkError, match="doesn't answer"):
        list_repo(settings, MODEL)


def test_a_silent_server_keeps_nobody_from_pausing_or_leaving(
    hub: LoopbackHub, settings: HubSettings, tmp_path: Path
) -> None:
    fill(hub)
    hub.set_faults(config__json={"kind": "silent", "seconds": 2, "times": 9})

    async def work() -> None:
        patient = replace(settings, patience=Patience(stall_s=1.5, backoff_s=0.01))
        downloads = Downloads(tmp_path / "jobs.db", patient)
        job = downloads.add(Pair(MODEL))
        await until(downloads, job.id, lambda j: j.state is JobState.DOWNLOADING)
        await asyncio.sleep(0.2)
        downloads.pause(job.id)
        assert downloads.jobs[0].state is JobState.PAUSED
        downloads.resume(job.id)
        assert downloads.jobs[0].state is JobState.QUEUED
        started = time.monotonic()
        await downloads.close(timeout_s=0.1)
        assert time.monotonic() - started < 0.5

    run(work())
    again = Downloads(tmp_path / "jobs.db", settings)
    assert again.jobs[0].state is JobState.QUEUED
    again._store.close()
