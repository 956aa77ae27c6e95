"""Download a pair of repositories, several files at a time."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from medusa_core.errors import Cancelled
from medusa_core.hub.blob_lock import hold
from medusa_core.hub.boundary import is_repo
from medusa_core.hub.bounds import SMALL_BYTES, SMALL_PER_CONNECTION
from medusa_core.hub.cache_folder import RepoCache, missing_bytes
from medusa_core.hub.job import Pair
from medusa_core.hub.listing import Listing, RemoteFile, list_repo
from medusa_core.hub.refusals import disk_full
from medusa_core.hub.settings import HubSettings
from medusa_core.hub.speed import RateLimiter
from medusa_core.hub.transfer import Transfer
from medusa_core.hub.watch import Stopped, TransferMonitor
from medusa_core.hub.wire import Wire

log = logging.getLogger(__name__)

_SPEED_OVER_S = 5.0
_CONVERSION = "conversion"


@dataclass(slots=True)
class Tally:
    """Progress of a download, updated by its threads.

    Attributes:
        done_bytes: Bytes on the disk.
        total_bytes: Size; 0 while unknown.
        fetched_bytes: Bytes from the network since the start.
        waits_for: Reasons of waits by file.
        verifies: All bytes are downloaded, and their hashes are checked.
    """

    done_bytes: int = 0
    total_bytes: int = 0
    fetched_bytes: int = 0
    waits_for: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _recent: deque[tuple[float, int]] = field(default_factory=deque)

    def add_stored(self, nbytes: int) -> None:
        """Count bytes on the disk."""
        with self._lock:
            self.done_bytes += nbytes

    def add_fetched(self, nbytes: int) -> None:
        """Count bytes from the network."""
        with self._lock:
            self.fetched_bytes += nbytes
            self._recent.append((time.monotonic(), nbytes))

    @property
    def bytes_per_s(self) -> float:
        """Speed over the last seconds."""
        with self._lock:
            now = time.monotonic()
            while self._recent and now - self._recent[0][0] > _SPEED_OVER_S:
                self._recent.popleft()
            if not self._recent:
                return 0.0
            seconds = max(0.5, now - self._recent[0][0])
            return sum(nbytes for _, nbytes in self._recent) / seconds

    @property
    def verifies(self) -> bool:
        """Whether all bytes are there, so that only hashes are computed."""
        return bool(self.total_bytes) and self.done_bytes >= self.total_bytes

    @property
    def waiting(self) -> str:
        """Reason of one file's wait; empty if none waits."""
        return next((text for text in list(self.waits_for.values()) if text), "")


@dataclass(frozen=True, slots=True)
class Slots:
    """Semaphores for files that are downloaded at a time.

    Attributes:
        large: For files that use the bandwidth.
        small: For files whose time is mostly latency.
    """

    large: asyncio.Semaphore
    small: asyncio.Semaphore


async def download_pair(
    settings: HubSettings, pair: Pair, tally: Tally, stop: threading.Event
) -> tuple[Path, ...]:
    """Download a pair into the cache.

    Args:
        settings: Settings of the Hub.
        pair: Repositories and files.
        tally: Receives the progress.
        stop: Set to cancel; downloaded bytes stay.

    Returns:
        Folders of the repositories' commits.

    Raises:
        HubError: It can't be had; what was fetched stays.
        Stopped: `stop` was set.
    """
    settings.require_online()
    listings = await _listings(settings, pair, stop)
    wanted = _wanted(listings)
    tally.total_bytes = sum(file.size for _, files in wanted for file in files)
    _make_ready(settings, wanted)
    limiter = RateLimiter(settings.bytes_per_s)
    num_small = settings.num_connections * SMALL_PER_CONNECTION
    slots = Slots(asyncio.Semaphore(settings.num_connections), asyncio.Semaphore(num_small))
    wire = Wire(settings)
    transfers = [Transfer(settings, listing, wire, limiter) for listing in listings]
    # Its own threads: waits for locks of other downloads would exhaust a shared pool.
    threads = ThreadPoolExecutor(settings.num_connections + num_small, "download")
    try:
        await _all_or_none(
            [
                _fetch(slots, threads, transfer, file, tally, stop)
                for transfer, (_, files) in zip(transfers, wanted, strict=True)
                for file in files
            ],
            stop,
        )
    finally:
        threads.shutdown()
        wire.close()
    return tuple([await asyncio.to_thread(_place, settings, one, tally, stop) for one in listings])


WantedFiles = Sequence[tuple[Listing, Sequence[RemoteFile]]]


def _wanted(listings: Sequence[Listing]) -> WantedFiles:
    """Return the files to download, those of equal content once."""
    seen: set[tuple[str, str]] = set()
    wanted = []
    for listing in listings:
        files = [file for file in listing.blobs if (listing.repo, file.blob_id) not in seen]
        seen |= {(listing.repo, file.blob_id) for file in files}
        wanted.append((listing, files))
    return wanted


def _place(settings: HubSettings, listing: Listing, tally: Tally, stop: threading.Event) -> Path:
    """Create the snapshot of a commit and convert its pickles, under a lock."""
    cache = RepoCache(settings.cache_dir, listing.repo)
    with hold(cache.boundary, cache.lock(listing.sha), stop):
        folder = cache.place(listing)
        if listing.converts:
            _convert(folder, tally, stop)
    return folder


def _convert(folder: Path, tally: Tally, stop: threading.Event) -> None:
    """Convert the pickles in a folder to safetensors, unless that was done before."""
    from medusa_core.hub.convert.convert import convert
    from medusa_core.hub.convert.convert_source import (
        HEADS_FILES,
        INDEX_FILE,
        MODEL_FILE,
        find_source,
    )

    if any((folder / name).exists() for name in (*HEADS_FILES, MODEL_FILE, INDEX_FILE)):
        return
    tally.waits_for[_CONVERSION] = "converting the pickle"
    try:
        convert(find_source(folder), is_consented=True, is_cancelled=stop.is_set)
    except Cancelled as error:
        raise Stopped from error
    finally:
        tally.waits_for[_CONVERSION] = ""


async def forget_pair(settings: HubSettings, pair: Pair) -> None:
    """Remove incomplete files."""
    for repo, _ in pair.repos:
        if is_repo(repo):
            await asyncio.to_thread(RepoCache(settings.cache_dir, repo).remove_partial_files)


async def _listings(
    settings: HubSettings, pair: Pair, stop: threading.Event
) -> tuple[Listing, ...]:
    """Request the file lists of all repositories at once, and check them."""
    files = [
        asyncio.to_thread(list_repo, settings, repo, revision, stop)
        for repo, revision in pair.repos
    ]
    found = await asyncio.gather(*files)
    listings = tuple(replace(listing, takes_pickles=pair.converts) for listing in found)
    model, *heads = listings
    listings = (
        replace(model, file=pair.file or model.only_gguf),
        *(replace(one, file=pair.heads_file or one.default_drafter) for one in heads),
    )
    for listing in listings:
        listing.check()
    return listings


def _make_ready(settings: HubSettings, wanted: WantedFiles) -> None:
    """Check that there is room for the missing bytes.

    Raises:
        DiskFullError: There isn't.
        RequestError: A repository's folder is outside of the cache.
    """
    lacking = 0
    for listing, files in wanted:
        cache = RepoCache(settings.cache_dir, listing.repo)
        cache.prepare()
        lacking += sum(cache.lacking_bytes(file) for file in files)
    missing = missing_bytes(settings.cache_dir, lacking, settings.floor_bytes)
    if lacking and missing:
        raise disk_full(settings.cache_dir, missing)


async def _fetch(
    slots: Slots,
    threads: ThreadPoolExecutor,
    transfer: Transfer,
    file: RemoteFile,
    tally: Tally,
    stop: threading.Event,
) -> None:
    """Download one file in a thread when a slot is free."""
    async with slots.small if file.size <= SMALL_BYTES else slots.large:
        if stop.is_set():
            raise Stopped

        def waits_for(text: str) -> None:
            """Note why the file waits."""
            tally.waits_for[file.path] = text

        watch = TransferMonitor(
            stop=stop, fetched=tally.add_fetched, stored=tally.add_stored, waits_for=waits_for
        )
        await asyncio.get_running_loop().run_in_executor(threads, transfer.fetch, file, watch)


async def _all_or_none(work: Sequence[Coroutine[None, None, None]], stop: threading.Event) -> None:
    """Run all; if one fails, stop the others, wait for their threads, and raise its error."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        await asyncio.gather(*tasks)
    except BaseException:
        stop.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
