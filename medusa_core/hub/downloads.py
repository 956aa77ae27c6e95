"""The queue of downloads.

Coroutines of one event loop. A state is saved before listeners are notified.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from medusa_core.errors import DiskFullError, MedusaError
from medusa_core.hub.job import DownloadJob, JobState, Pair
from medusa_core.hub.job_store import JobStore
from medusa_core.hub.pair_download import Tally, download_pair, forget_pair
from medusa_core.hub.refusals import as_hub_error
from medusa_core.hub.settings import HubSettings
from medusa_core.hub.watch import Stopped

log = logging.getLogger(__name__)

OnChange = Callable[[DownloadJob], None]

_REPORT_EVERY_S = 0.25
_SAVE_EVERY = 8  # reports; a restart counts the bytes on the disk anyway


class Downloads:
    """Runs downloads one after another, each with several files at a time."""

    def __init__(self, store_path: Path, settings: HubSettings) -> None:
        """Open the list of downloads.

        Args:
            store_path: Database of downloads.
            settings: Settings of the Hub, which may be replaced at any time.

        Raises:
            HubError: A newer version of the program created the database.
        """
        self.settings = settings
        self._store = JobStore(store_path)
        self._jobs = {job.id: job for job in self._store.all()}
        self._listeners: list[OnChange] = []
        self._stops: dict[int, threading.Event] = {}
        self._wanted: dict[int, JobState] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._running = asyncio.Lock()
        self._is_closed = False

    @property
    def notice(self) -> str:
        """Problem at opening the database, for people; mostly empty."""
        return self._store.notice

    @property
    def jobs(self) -> tuple[DownloadJob, ...]:
        """Return all downloads, the oldest first."""
        return tuple(self._jobs.values())

    def subscribe(self, on_change: OnChange) -> None:
        """Call a function after every change."""
        self._listeners.append(on_change)

    def start(self) -> None:
        """Continue what ran or waited when the program ended."""
        for job in self.jobs:
            if job.state in (JobState.QUEUED, JobState.DOWNLOADING, JobState.VERIFYING):
                self._run(job.id)

    def add(self, pair: Pair) -> DownloadJob:
        """Download a pair, or return its download that isn't over."""
        for job in self.jobs:
            if job.pair == pair and not job.state.is_over:
                if job.state is JobState.PAUSED:
                    self.resume(job.id)
                return self._jobs[job.id]
        job = self._store.add(pair)
        self._jobs[job.id] = job
        self._notify(job)
        self._run(job.id)
        return job

    def pause(self, job_id: int) -> None:
        """Stop a download; its bytes stay."""
        self._end(job_id, JobState.PAUSED)

    def cancel(self, job_id: int) -> None:
        """End a download and remove its incomplete files."""
        self._end(job_id, JobState.CANCELLED)

    def resume(self, job_id: int) -> None:
        """Continue a download that is paused or failed."""
        if self._jobs[job_id].state in (JobState.PAUSED, JobState.FAILED):
            self._set_state(job_id, JobState.QUEUED)
            self._run(job_id)

    def forget(self, job_id: int) -> None:
        """Remove a download that is over from the list; its files stay."""
        if self._jobs[job_id].state.is_over:
            self._store.remove(job_id)
            self._notify(self._jobs.pop(job_id))

    async def wait(self, job_id: int) -> DownloadJob:
        """Wait until a download ends or pauses."""
        if task := self._tasks.get(job_id):
            await asyncio.wait([task])
        return self._jobs[job_id]

    async def close(self, timeout_s: float = 3.0) -> None:
        """Stop all downloads; the next start continues them.

        Args:
            timeout_s: Longest wait for threads with a silent server.
        """
        for stop in self._stops.values():
            stop.set()
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=timeout_s)
        self._is_closed = True
        self._store.close()

    def _run(self, job_id: int) -> None:
        """Start the task of a download, after an earlier one of it has ended."""
        self._stops[job_id] = threading.Event()
        self._wanted.pop(job_id, None)
        before = self._tasks.get(job_id)
        self._tasks[job_id] = asyncio.ensure_future(self._work(job_id, before))

    def _end(self, job_id: int, state: JobState) -> None:
        """Stop a download and set the state that it ends in."""
        if self._jobs[job_id].state.is_over:
            return
        self._wanted[job_id] = state
        # Shown at once: a thread with a silent server notices later.
        self._set_state(job_id, state)
        stop = self._stops.get(job_id)
        if stop is not None:
            stop.set()
        if state is JobState.CANCELLED:
            before, pair = self._tasks.get(job_id), self._jobs[job_id].pair
            self._tasks[job_id] = asyncio.ensure_future(self._clean(job_id, pair, before))

    async def _clean(self, job_id: int, pair: Pair, earlier: asyncio.Task[None] | None) -> None:
        """Remove incomplete files once the download's task has ended."""
        if earlier is not None:
            await asyncio.wait([earlier])
        self._set_state(job_id, JobState.CANCELLED)
        await forget_pair(self.settings, pair)

    async def _work(self, job_id: int, earlier: asyncio.Task[None] | None) -> None:
        """Download one pair once its earlier task has ended, and set its final state."""
        if earlier is not None:
            await asyncio.wait([earlier])
        stop = self._stops[job_id]
        async with self._running:
            if stop.is_set():
                return
            pair = self._jobs[job_id].pair
            self._set_state(job_id, JobState.DOWNLOADING)
            tally = Tally()
            reporter = asyncio.ensure_future(self._report_progress(job_id, tally))
            try:
                await download_pair(self.settings, pair, tally, stop)
                outcome = (JobState.READY, "", "")
            except Stopped:
                # Without a wanted state the program is closing, and the next start continues.
                present = self._jobs[job_id].state if job_id in self._jobs else JobState.CANCELLED
                outcome = (self._wanted.get(job_id, present), "", "")
            except DiskFullError as error:
                outcome = (JobState.PAUSED, error.message, error.hint)
            except Exception as error:  # noqa: BLE001 - the list of downloads must live on
                outcome = self._failure(error)
            finally:
                reporter.cancel()
                with suppress(asyncio.CancelledError):
                    await reporter
        self._count(job_id, tally)
        self._set_state(job_id, *outcome)

    def _failure(self, error: Exception) -> tuple[JobState, str, str]:
        """Return the final state of a failed download, with reason and hint."""
        if not isinstance(error, MedusaError):
            log.error("a download failed", exc_info=error)
        failure = error if isinstance(error, MedusaError) else as_hub_error(self.settings, error)
        return JobState.FAILED, failure.message, failure.hint

    async def _report_progress(self, job_id: int, tally: Tally) -> None:
        """Update and save the progress of a running download."""
        count = 0
        while True:
            await asyncio.sleep(_REPORT_EVERY_S)
            count += 1
            self._count(job_id, tally)
            if (job := self._jobs.get(job_id)) is None:
                return
            if count % _SAVE_EVERY == 0:
                self._store.save(job)
            self._notify(job)

    def _count(self, job_id: int, tally: Tally) -> None:
        """Update the bytes and speed of a download."""
        job = self._jobs.get(job_id)
        if job is None:
            return  # a cancelled download was forgotten before its thread noticed
        state = job.state
        if state is JobState.DOWNLOADING and tally.verifies:
            state = JobState.VERIFYING
        self._jobs[job_id] = replace(
            job,
            state=state,
            waits_for=tally.waiting,
            done_bytes=tally.done_bytes if tally.total_bytes else job.done_bytes,
            total_bytes=tally.total_bytes or job.total_bytes,
            bytes_per_s=tally.bytes_per_s,
        )

    def _set_state(self, job_id: int, state: JobState, reason: str = "", hint: str = "") -> None:
        """Change, save and announce the state of a download."""
        job = self._jobs.get(job_id)
        if self._is_closed or job is None:
            return  # a late thread: the next start finds the saved state, or the job is forgotten
        job = replace(job, state=state, reason=reason, hint=hint, waits_for="", bytes_per_s=0.0)
        self._jobs[job_id] = job
        self._store.save(job)
        self._notify(job)

    def _notify(self, job: DownloadJob) -> None:
        """Tell all listeners about a change."""
        for listener in self._listeners:
            listener(job)
