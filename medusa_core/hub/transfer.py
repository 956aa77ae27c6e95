"""Download one file, resuming after interruptions.

Blocks; runs in threads. Bytes are appended to a `.part` named by the file's hash, which becomes a
blob once the data on the disk has that hash. A lock lets one transfer of all processes do so; the
others wait and use its result.
"""

from __future__ import annotations

import logging
import random
import re
from pathlib import Path
from urllib.parse import quote

from medusa_core.errors import IntegrityError, NetworkError, NotFoundError
from medusa_core.hub.blob_lock import hold
from medusa_core.hub.boundary import printable
from medusa_core.hub.bounds import MAX_RESTARTS, MAX_RETRY_AFTER_S, WORTHWHILE_BYTES
from medusa_core.hub.cache_folder import RepoCache, file_hash, missing_bytes
from medusa_core.hub.listing import Listing, RemoteFile
from medusa_core.hub.part import PartialFile
from medusa_core.hub.refusals import access_error, disk_full, unwritable
from medusa_core.hub.settings import HubSettings, HubTimeouts
from medusa_core.hub.speed import RateLimiter
from medusa_core.hub.watch import Stopped, TransferMonitor
from medusa_core.hub.wire import BrokenError, Exchange, Head, Wire
from medusa_core.i18n import tr

log = logging.getLogger(__name__)

_SPACE_EVERY = 64 << 20  # bytes between two checks of the disk's room
_HTTP = {"ok": 200, "partial": 206, "unauthorized": 401, "forbidden": 403}
_NOT_FOUND, _BAD_RANGE, _TOO_MANY = 404, 416, 429
_SECONDS = re.compile(r"[0-9]{1,6}")
_RANGE = re.compile(r"bytes ([0-9]{1,18})-")


class _Retry(Exception):  # noqa: N818 - caught by the loop over attempts
    """An attempt failed, but another may succeed."""

    def __init__(self, reason: str, wait_s: float | None = None, restarts: bool = False) -> None:
        super().__init__(reason)
        self.wait_s = wait_s
        self.restarts = restarts


class Transfer:
    """Downloads files of one repository at one commit."""

    def __init__(
        self, settings: HubSettings, listing: Listing, wire: Wire, limiter: RateLimiter
    ) -> None:
        self._settings = settings
        self._listing = listing
        self._wire = wire
        self._limiter = limiter
        self._cache = RepoCache(settings.cache_dir, listing.repo)

    def fetch(self, file: RemoteFile, watch: TransferMonitor) -> Path:
        """Download a file into the cache unless it is there.

        Returns:
            Path of its blob.

        Raises:
            HubError: It can't be downloaded.
            RequestError: Its path leaves the cache.
            Stopped: The transfer was cancelled.
        """
        blob = self._cache.blob(file)
        lock = self._cache.lock(file.blob_id)
        with hold(self._cache.boundary, lock, watch.stop, watch.waits_for):
            if not self._is_there(file, watch):
                self._download(file, watch)
        return blob

    def _download(self, file: RemoteFile, watch: TransferMonitor) -> None:
        """Fetch a file and check its hash; a damaged one is fetched once more."""
        with PartialFile(self._cache, file) as part:
            watch.stored(part.length)
            for _ in range(2):
                self._fill(file, part, watch)
                if part.become_blob(watch.check):
                    return
                log.warning("%s arrived damaged", file.path)
                _restart(part, watch)
        raise IntegrityError(
            tr(
                "{0} arrived damaged twice: its hash isn't what {1} says.",
                printable(file.path),
                self._listing.repo,
            ),
            "Try again later, or over another network.",
        )

    def _is_there(self, file: RemoteFile, watch: TransferMonitor) -> bool:
        """Check an existing blob's hash, since other programs write there, too."""
        blob = self._cache.blob(file)
        try:
            if self._cache.boundary.holds(blob) and blob.is_file():
                if (
                    blob.stat().st_size == file.size
                    and file_hash(blob, file.is_large, watch.check) == file.blob_id
                ):
                    watch.stored(file.size)
                    return True
                log.warning("%s in the cache is damaged and is fetched anew", blob)
            self._cache.boundary.remove(blob)
        except OSError as error:
            raise unwritable(blob.parent, error) from error
        return False

    def _fill(self, file: RemoteFile, part: PartialFile, watch: TransferMonitor) -> None:
        """Fetch the missing bytes, with retries while they bring enough."""
        failures = 0
        while part.missing:
            before = part.length
            try:
                self._fetch_rest(file, part, watch)
            except _Retry as retry:
                is_progress = part.length - before >= WORTHWHILE_BYTES
                failures = 1 if is_progress else failures + 1
                if retry.restarts:
                    _restart(part, watch)
                is_hopeless = part.num_restarts > MAX_RESTARTS
                self._wait(retry, failures, is_hopeless, watch)

    def _wait(
        self, retry: _Retry, failures: int, is_hopeless: bool, watch: TransferMonitor
    ) -> None:
        """Wait before the next attempt, longer after each failure; raise after too many."""
        timeouts = self._settings.timeouts
        if is_hopeless or failures > timeouts.max_tries:
            raise NetworkError(
                tr("{0} can't be fetched: {1}.", self._listing.repo, retry),
                "Check the network connection, and resume the download later: nothing is lost.",
            )
        wait_s = retry.wait_s if retry.wait_s is not None else _backoff_s(timeouts, failures)
        log.info("%s; another attempt in %.1f s", retry, wait_s)
        watch.waits_for(tr("{0}; trying again in {1:.0f} s", retry, wait_s))
        if watch.stop.wait(wait_s):
            raise Stopped
        watch.waits_for("")

    def _fetch_rest(self, file: RemoteFile, part: PartialFile, watch: TransferMonitor) -> None:
        """Request the missing bytes and append them."""
        headers = {"Accept-Encoding": "identity"}
        if part.length:
            headers["Range"] = f"bytes={part.length}-"
        try:
            with self._wire.get(self._url(file), watch.stop, headers) as exchange:
                if self._is_whole(exchange.head(), file, part):
                    _restart(part, watch)
                self._write(exchange, file, part, watch)
        except BrokenError as error:
            raise _Retry(str(error)) from error
        if part.missing:
            raise _Retry(tr("the server ended before the file did"))

    def _is_whole(self, head: Head, file: RemoteFile, part: PartialFile) -> bool:
        """Check the response; return whether it starts at the first byte in place of resuming."""
        status = head.status
        if status in (_HTTP["unauthorized"], _HTTP["forbidden"]):
            raise access_error(self._settings, self._listing.repo)
        if status == _NOT_FOUND:
            raise NotFoundError(
                tr("{0} has no {1} any more.", self._listing.repo, printable(file.path)),
                "Start the download anew.",
            )
        if status == _BAD_RANGE:
            raise _Retry(tr("the server refused to go on where it was cut"), restarts=True)
        if status == _TOO_MANY:
            raise _Retry(tr("the server asks for patience"), _retry_after_s(head))
        if status not in (_HTTP["ok"], _HTTP["partial"]):
            raise _Retry(tr("the server failed ({0})", status), _retry_after_s(head))
        self._check_etag(head, file)
        if status == _HTTP["partial"]:
            header = _RANGE.match(head.headers.get("Content-Range", ""))
            if header is None or int(header[1]) != part.length:
                raise _Retry(tr("the server sent another part than was asked for"))
            return False
        return part.length > 0

    def _check_etag(self, head: Head, file: RemoteFile) -> None:
        """Check that the file is still the listed version."""
        etag = head.first.get("X-Linked-Etag") or head.first.get("ETag") or ""
        etag = etag.removeprefix("W/").strip('"')
        if etag and etag not in (file.blob_id, file.git_id):
            raise IntegrityError(
                tr("{0} has changed on the Hub while it was fetched.", printable(file.path)),
                "Start the download anew: it takes the new version.",
            )

    def _write(
        self, exchange: Exchange, file: RemoteFile, part: PartialFile, watch: TransferMonitor
    ) -> None:
        """Append the response's bytes within the rate limit, and detect stalls."""
        looked_at = part.length
        self._check_space(part.missing)
        for piece in exchange.pieces():
            # Bytes beyond the declared size are discarded.
            chunk = piece[: part.missing]
            self._limiter.throttle(len(chunk), watch.stop)
            part.append(chunk)
            watch.fetched(len(chunk))
            watch.stored(len(chunk))
            if not part.missing:
                return
            if part.length - looked_at >= _SPACE_EVERY:
                looked_at = part.length
                self._check_space(part.missing)

    def _check_space(self, num_bytes: int) -> None:
        """Raise if the disk has too little room."""
        missing = missing_bytes(self._cache.folder, num_bytes, self._settings.floor_bytes)
        if missing:
            raise disk_full(self._settings.cache_dir, missing)

    def _url(self, file: RemoteFile) -> str:
        """Return the download URL of a file."""
        listing = self._listing
        return f"{self._settings.endpoint}/{listing.repo}/resolve/{listing.sha}/{quote(file.path)}"


def _restart(part: PartialFile, watch: TransferMonitor) -> None:
    """Discard what was fetched of a file."""
    if part.length:
        log.info("a file is fetched from its beginning again")
    watch.stored(-part.length)
    part.forget()


def _backoff_s(timeouts: HubTimeouts, failures: int) -> float:
    """Return the seconds to wait, exponential with jitter."""
    # Jitter: a server that has just come back would fail under all clients at once.
    jitter = 0.5 + random.random()
    return float(min(timeouts.max_backoff_s, timeouts.backoff_s * 2 ** (failures - 1)) * jitter)


def _retry_after_s(head: Head) -> float | None:
    """Return the seconds that the server asks to wait; None without."""
    header = head.headers.get("Retry-After", "")
    return min(float(header), MAX_RETRY_AFTER_S) if _SECONDS.fullmatch(header) else None
