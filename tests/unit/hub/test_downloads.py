"""The list of downloads: jobs that pause, resume, fail, and outlive the application."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from medusa_core.errors import HubError
from medusa_core.hub.downloads import Downloads
from medusa_core.hub.job import DownloadJob, JobState, Pair
from medusa_core.hub.settings import HubSettings, HubTimeouts
from tests.support.hub.fixtures import LoopbackHub, random_file
from tests.support.hub.pairs import HEADS, MIB, MODEL, fill, run, sent, throttled_settings
from tests.support.hub.scripted import SHA, ScriptedHub, silent


async def until(
    downloads: Downloads, job_id: int, holds: Callable[[DownloadJob], bool]
) -> DownloadJob:
    """The download once something holds of it."""
    async with asyncio.timeout(120):
        while not holds(job := next(j for j in downloads.jobs if j.id == job_id)):
            await asyncio.sleep(0.01)
    return job


def test_a_job_passes_through_its_states_and_listeners_are_notified(
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


def test_pause_and_resume_download_nothing_twice(
    hub: LoopbackHub, settings: HubSettings, tmp_path: Path
) -> None:
    fill(hub, 4 * MIB)

    async def work() -> None:
        downloads = Downloads(tmp_path / "jobs.db", throttled_settings(settings))
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


def test_a_restart_resumes_downloads_and_keeps_pauses(
    hub: LoopbackHub, settings: HubSettings, tmp_path: Path
) -> None:
    fill(hub, 4 * MIB)
    random_file(hub.root / "org" / "other" / "model.safetensors", 1000)

    async def first() -> None:
        downloads = Downloads(tmp_path / "jobs.db", throttled_settings(settings))
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


def test_a_cancelled_job_is_removed_and_never_restarts(
    hub: LoopbackHub, settings: HubSettings, tmp_path: Path
) -> None:
    fill(hub, 4 * MIB)

    async def first() -> None:
        downloads = Downloads(tmp_path / "jobs.db", throttled_settings(settings))
        job = downloads.add(Pair(MODEL))
        await until(downloads, job.id, lambda j: j.done_bytes > MIB)
        downloads.cancel(job.id)
        assert (await downloads.wait(job.id)).state is JobState.CANCELLED
        await downloads.close()

    async def second() -> None:
        downloads = Downloads(tmp_path / "jobs.db", settings)
        downloads.start()
        downloads.resume(1)
        assert (await downloads.wait(1)).state is JobState.CANCELLED
        downloads.forget(1)
        assert downloads.jobs == ()
        await downloads.close()

    run(first())
    assert list(settings.cache_dir.rglob("*.part")) == []
    before = sent(hub)
    run(second())
    assert sent(hub) == before


def test_a_download_can_be_removed_while_its_thread_stops(
    hub: LoopbackHub, settings: HubSettings, tmp_path: Path
) -> None:
    fill(hub, 4 * MIB)

    async def forget() -> None:
        downloads = Downloads(tmp_path / "jobs.db", throttled_settings(settings))
        job = downloads.add(Pair(MODEL))
        await until(downloads, job.id, lambda j: j.done_bytes > MIB)
        work = downloads._tasks[job.id]
        downloads.cancel(job.id)
        downloads.forget(job.id)
        await asyncio.gather(work, downloads._tasks[job.id])  # raises what they raised
        assert downloads.jobs == ()
        await downloads.close()

    run(forget())
    assert list(settings.cache_dir.rglob("*.part")) == []


def test_a_full_disk_pauses_and_says_how_much_is_missing(
    hub: LoopbackHub, settings: HubSettings, tmp_path: Path
) -> None:
    fill(hub)

    async def work() -> None:
        downloads = Downloads(tmp_path / "jobs.db", replace(settings, floor_bytes=1 << 60))
        job = downloads.add(Pair(MODEL))
        paused = await downloads.wait(job.id)
        assert paused.state is JobState.PAUSED
        assert "Needs" in paused.reason
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


def test_a_silent_server_is_reported_while_waiting(
    hub: LoopbackHub, settings: HubSettings, tmp_path: Path
) -> None:
    fill(hub)
    hub.set_faults(config__json={"kind": "broken", "times": 2})

    async def work() -> None:
        patient = HubTimeouts(backoff_s=0.6, max_backoff_s=0.6)
        downloads = Downloads(tmp_path / "jobs.db", replace(settings, timeouts=patient))
        job = downloads.add(Pair(MODEL))
        waiting = await until(downloads, job.id, lambda j: bool(j.waits_for))
        assert "trying again" in waiting.waits_for
        assert (await downloads.wait(job.id)).state is JobState.READY
        await downloads.close()

    run(work())


def test_the_same_repositories_are_not_downloaded_twice_at_once(
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


def test_a_list_of_a_newer_version_is_not_changed(settings: HubSettings, tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "jobs.db"
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(HubError, match="newer version"):
        Downloads(path, settings)
    (tmp_path / "broken.db").write_bytes(b"not a database at all" * 100)
    downloads = Downloads(tmp_path / "broken.db", settings)
    assert "damaged" in downloads.notice
    assert downloads.jobs == ()
    run(downloads.close())


def test_a_silent_server_delays_neither_pause_nor_exit(
    scripted: ScriptedHub, scripted_settings: HubSettings, tmp_path: Path
) -> None:
    """Were they heard after the server's silence only, this test would run into its time limit."""
    reached = threading.Event()
    scripted.publish(MODEL, {"model.safetensors": b"weights"})
    path = f"/{MODEL}/resolve/{SHA}/model.safetensors"
    scripted.answers[path] = silent(scripted, b"", reached)

    async def work() -> None:
        patient = replace(scripted_settings, timeouts=HubTimeouts(stall_s=3600.0))
        downloads = Downloads(tmp_path / "jobs.db", patient)
        job = downloads.add(Pair(MODEL))
        assert await asyncio.to_thread(reached.wait, 120)
        downloads.pause(job.id)
        assert downloads.jobs[0].state is JobState.PAUSED
        downloads.resume(job.id)
        assert downloads.jobs[0].state is JobState.QUEUED
        await downloads.close(timeout_s=0.1)

    run(work())
    again = Downloads(tmp_path / "jobs.db", scripted_settings)
    assert again.jobs[0].state is JobState.QUEUED
    again._store.close()
