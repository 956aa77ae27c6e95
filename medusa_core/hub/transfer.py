"""Fetching one file, so that whatever happens no byte is fetched twice without need.

Blocks: it is run in threads. The bytes gather in a `.part` that is named by the file's hash, and
appear as a blob once the hash is right.
"""

from __future__ import annotations

import logging
import os
import random
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from medusa_core.errors import (
    DiskFullError,
    HubError,
    IntegrityError,
    NetworkError,
    NotFoundError,
)
from medusa_core.hub.cache import RepoCache, file_hash, missing_bytes, new_hash
from medusa_core.hub.listing import Listing, RemoteFile, access_error, unreachable
from medusa_core.hub.settings import HubSettings, Patience

if TYPE_CHECKING:
    import httpx2

log = logging.getLogger(__name__)

_CHUNK = 1 << 20
_SPACE_EVERY = 64 << 20  # bytes between two looks at the disk
_HTTP = {"ok": 200, "partial": 206, "unauthorized": 401, "forbidden": 403}
_NOT_FOUND, _BAD_RANGE, _TOO_MANY = 404, 416, 429


class Stopped(Exception):  # noqa: N818 - asked for, not an error
    """Somebody asked for the end."""


class _Again(Exception):  # noqa: N818 - caught by the loop over tries
    """This try failed in a way that another may not."""

    def __init__(self, reason: str, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.wait_s = wait_s


@dataclass(frozen=True, slots=True)
class Watch:
    """Who watches a transfer.

    Attributes:
        stop: Set to end it.
        fetched: Told of bytes that arrived.
        settled: Told of bytes that are right on the disk, negative if they turn out wrong.
        says: Told what it waits for; empty when it goes on.
    """

    stop: threading.Event
    fetched: Callable[[int], None]
    settled: Callable[[int], None]
    says: Callable[[str], None]


class Limiter:
    """Bytes a second over all connections."""

    def __init__(self, bytes_per_s: int) -> None:
        self._bytes_per_s = bytes_per_s
        self._lock = threading.Lock()
        self._free_at_s = 0.0

    def pass_bytes(self, nbytes: int, stop: threading.Event) -> None:
        """Wait until so many bytes may pass."""
        if not self._bytes_per_s:
            return
        with self._lock:
            now = time.monotonic()
            self._free_at_s = max(self._free_at_s, now) + nbytes / self._bytes_per_s
            wait_s = self._free_at_s - now
        stop.wait(wait_s)


class _Part:
    """The bytes of a file that are here already, and their hash.

    Attributes:
        path: Where they gather.
        length: How many there are.
    """

    def __init__(self, path: Path, file: RemoteFile) -> None:
        self.path = path
        self.length = 0
        self._file = file
        self._hash = new_hash(file.is_large, file.size)

    def take_up(self, stop: threading.Event) -> None:
        """Go on with what an earlier process left: hash it again, fetch nothing of it."""
        if not self.path.exists():
            return
        if self.path.stat().st_size > self._file.size:
            self.path.unlink()
            return
        with self.path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                if stop.is_set():
                    raise Stopped
                self.add(chunk)

    def add(self, chunk: bytes) -> None:
        """Count bytes that are written."""
        self._hash.update(chunk)
        self.length += len(chunk)

    def forget(self, watch: Watch) -> None:
        """Begin anew."""
        watch.settled(-self.length)
        self.path.unlink(missing_ok=True)
        self.length = 0
        self._hash = new_hash(self._file.is_large, self._file.size)

    @property
    def is_right(self) -> bool:
        """Is the whole file here, unharmed?"""
        found: str = self._hash.hexdigest()
        return found == self._file.blob_id


class Transfer:
    """Fetches files of one repository at one commit."""

    def __init__(
        self, settings: HubSettings, listing: Listing, client: httpx2.Client, limiter: Limiter
    ) -> None:
        self._settings = settings
        self._listing = listing
        self._client = client
        self._limiter = limiter
        self._cache = RepoCache(settings.cache_dir, listing.repo)

    def fetch(self, file: RemoteFile, watch: Watch) -> Path:
        """Have a file whole in the cache.

        Returns:
            Its blob.

        Raises:
            HubError: It can't be had.
            Stopped: Somebody asked for the end.
        """
        blob = self._cache.blob(file)
        if self._is_there(file, blob, watch):
            return blob
        part = _Part(self._cache.part(file), file)
        part.take_up(watch.stop)
        watch.settled(part.length)
        for _ in range(2):
            self._fill(file, part, watch)
            if part.is_right:
                with part.path.open("rb") as whole:
                    os.fsync(whole.fileno())
                part.path.replace(blob)
                return blob
            log.warning("%s arrived damaged", file.path)
            part.forget(watch)
        raise IntegrityError(
            f"{file.path} arrived damaged twice: its hash isn't what {self._listing.repo} says.",
            "Try again later, or over another network.",
        )

    def _is_there(self, file: RemoteFile, blob: Path, watch: Watch) -> bool:
        """Is the blob there and right? Other programs put files there, too."""
        if not blob.exists():
            return False
        if blob.stat().st_size == file.size and self._hash(blob, file, watch) == file.blob_id:
            watch.settled(file.size)
            return True
        log.warning("%s in the cache is damaged and is fetched anew", blob)
        blob.unlink()
        return False

    def _hash(self, path: Path, file: RemoteFile, watch: Watch) -> str:
        def check(_: int) -> None:
            if watch.stop.is_set():
                raise Stopped

        return file_hash(path, file.is_large, check)

    def _fill(self, file: RemoteFile, part: _Part, watch: Watch) -> None:
        """Let the part grow until it has all bytes, however many tries that takes."""
        failures = 0
        while part.length < file.size or not part.path.exists():
            before = part.length
            try:
                self._fetch_rest(file, part, watch)
            except _Again as again:
                failures = 1 if part.length > before else failures + 1
                self._wait(again, failures, watch)

    def _wait(self, again: _Again, failures: int, watch: Watch) -> None:
        patience = self._settings.patience
        if failures > patience.most_tries:
            raise NetworkError(
                f"{self._listing.repo} can't be fetched: {again}.",
                "Check the network connection, and resume the download later: nothing is lost.",
            )
        wait_s = again.wait_s if again.wait_s is not None else _backoff_s(patience, failures)
        log.info("%s; another try in %.1f s", again, wait_s)
        watch.says(f"{again}; trying again in {wait_s:.0f} s")
        if watch.stop.wait(wait_s):
            raise Stopped
        watch.says("")

    def _fetch_rest(self, file: RemoteFile, part: _Part, watch: Watch) -> None:
        import httpx2

        headers = {"Accept-Encoding": "identity"}
        if part.length:
            headers["Range"] = f"bytes={part.length}-"
        if self._settings.token:
            headers["Authorization"] = f"Bearer {self._settings.token}"
        try:
            with self._client.stream("GET", self._url(file), headers=headers) as response:
                self._check_answer(response, file, part, watch)
                self._write(response, file, part, watch)
        except httpx2.TimeoutException as error:
            seconds = self._settings.patience.stall_s
            raise _Again(f"the server has been silent for {seconds:.0f} s") from error
        except httpx2.HTTPError as error:
            if _is_name_error(error):
                raise _Again("the server's name can't be resolved") from error
            raise _Again(f"the connection failed ({type(error).__name__})") from error

    def _check_answer(
        self, response: httpx2.Response, file: RemoteFile, part: _Part, watch: Watch
    ) -> None:
        """Refuse answers that don't go on with this file."""
        status = response.status_code
        if status in (_HTTP["unauthorized"], _HTTP["forbidden"]):
            raise access_error(self._settings, self._listing.repo)
        if status == _NOT_FOUND:
            raise NotFoundError(
                f"{self._listing.repo} has no {file.path} any more.", "Start the download anew."
            )
        if status == _BAD_RANGE:
            part.forget(watch)
            raise _Again("the server refused to go on where it was cut")
        if status == _TOO_MANY:
            raise _Again("the server asks for patience", _retry_after_s(response))
        if status not in (_HTTP["ok"], _HTTP["partial"]):
            raise _Again(f"the server failed ({status})", _retry_after_s(response))
        self._check_etag(response, file)
        if status == _HTTP["partial"]:
            told = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
            if told is None or int(told[1]) != part.length:
                raise _Again("the server sent another part than was asked for")
        elif part.length:
            log.info("%s: the server sends the whole file again", file.path)
            part.forget(watch)

    def _check_etag(self, response: httpx2.Response, file: RemoteFile) -> None:
        first = response.history[0] if response.history else response
        etag = first.headers.get("X-Linked-Etag") or first.headers.get("ETag") or ""
        etag = etag.removeprefix("W/").strip('"')
        if etag and etag not in (file.blob_id, file.git_id):
            raise IntegrityError(
                f"{file.path} has changed on the Hub while it was fetched.",
                "Start the download anew: it takes the new version.",
            )

    def _write(
        self, response: httpx2.Response, file: RemoteFile, part: _Part, watch: Watch
    ) -> None:
        looked_at = part.length
        self._check_space(file.size - part.length)
        try:
            with part.path.open("ab" if part.length else "wb", buffering=0) as out:
                for chunk in response.iter_raw():
                    if watch.stop.is_set():
                        raise Stopped
                    self._limiter.pass_bytes(len(chunk), watch.stop)
                    out.write(chunk)
                    part.add(chunk)
                    watch.fetched(len(chunk))
                    watch.settled(len(chunk))
                    if part.length - looked_at >= _SPACE_EVERY:
                        looked_at = part.length
                        self._check_space(file.size - part.length)
        except OSError as error:
            raise DiskFullError(
                f"{part.path.parent} can't be written: {error.strerror}.",
                "Make room on the disk, or choose another folder; then resume.",
            ) from error
        if part.length < file.size:
            raise _Again("the server ended before the file did")
        if part.length > file.size:
            part.forget(watch)
            raise _Again("the server sent more than the file has")

    def _check_space(self, wanted: int) -> None:
        missing = missing_bytes(self._cache.folder, wanted, self._settings.floor_bytes)
        if missing:
            raise disk_full(self._settings.cache_dir, missing)

    def _url(self, file: RemoteFile) -> str:
        listing = self._listing
        return f"{self._settings.endpoint}/{listing.repo}/resolve/{listing.sha}/{quote(file.path)}"


def new_client(settings: HubSettings) -> httpx2.Client:
    """A client that heeds the proxy and certificate settings of the environment."""
    import httpx2

    seconds = settings.patience.stall_s
    return httpx2.Client(timeout=seconds, follow_redirects=True)


def disk_full(folder: Path, missing: int) -> DiskFullError:
    """The disk lacks room."""
    return DiskFullError(
        f"The disk with {folder} lacks {missing / 1e9:.1f} GB.",
        "Make room, or choose another folder; then resume: nothing is lost.",
        missing_bytes=missing,
    )


def as_hub_error(settings: HubSettings, error: Exception) -> HubError:
    """Any failure in our words."""
    return error if isinstance(error, HubError) else unreachable(settings, error)


def _backoff_s(patience: Patience, failures: int) -> float:
    # Not all at once: a server that has just come back would fail again.
    jitter = 0.5 + random.random()
    return float(min(patience.longest_s, patience.backoff_s * 2 ** (failures - 1)) * jitter)


def _retry_after_s(response: httpx2.Response) -> float | None:
    told: str = response.headers.get("Retry-After", "")
    return min(float(int(told)), 300.0) if told.isdigit() else None


def _is_name_error(error: Exception) -> bool:
    return any(words in str(error) for words in ("Name or service", "getaddrinfo", "resolution"))
