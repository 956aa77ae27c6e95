"""Fetching one file, so that whatever happens no byte is fetched twice without need.

Blocks: it is run in threads. The bytes gather in a `.part` that is named by the file's hash, and
appear as a blob once what is on the disk has that hash. One transfer at a time does so, over all
processes; the others wait and use what it left.
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
from medusa_core.hub.bounds import MOST_RESTARTS, MOST_RETRY_AFTER_S, WORTHWHILE_BYTES
from medusa_core.hub.cache_folder import RepoCache, file_hash, missing_bytes
from medusa_core.hub.listing import Listing, RemoteFile
from medusa_core.hub.part import PartialFile
from medusa_core.hub.refusals import access_error, disk_full, unwritable
from medusa_core.hub.settings import HubSettings, HubTimeouts
from medusa_core.hub.speed import Limiter
from medusa_core.hub.watch import Stopped, Watch
from medusa_core.hub.wire import BrokenError, Exchange, Head, Wire

log = logging.getLogger(__name__)

_SPACE_EVERY = 64 << 20  # bytes between two looks at the disk
_HTTP = {"ok": 200, "partial": 206, "unauthorized": 401, "forbidden": 403}
_NOT_FOUND, _BAD_RANGE, _TOO_MANY = 404, 416, 429
_SECONDS = re.compile(r"[0-9]{1,6}")
_RANGE = re.compile(r"bytes ([0-9]{1,18})-")


class _Again(Exception):  # noqa: N818 - caught by the loop over tries
    """This try failed in a way that another may not."""

    def __init__(self, reason: str, wait_s: float | None = None, is_anew: bool = False) -> None:
        super().__init__(reason)
        self.wait_s = wait_s
        self.is_anew = is_anew


class Transfer:
    """Fetches files of one repository at one commit."""

    def __init__(
        self, settings: HubSettings, listing: Listing, wire: Wire, limiter: Limiter
    ) -> None:
        self._settings = settings
        self._listing = listing
        self._wire = wire
        self._limiter = limiter
        self._cache = RepoCache(settings.cache_dir, listing.repo)

    def fetch(self, file: RemoteFile, watch: Watch) -> Path:
        """Have a file whole in the cache.

        Returns:
            Its blob.

        Raises:
            HubError: It can't be had.
            RequestError: Its place leads out of the cache.
            Stopped: Somebody asked for the end.
        """
        blob = self._cache.blob(file)
        lock = self._cache.lock(file.blob_id)
        with hold(self._cache.boundary, lock, watch.stop, watch.waits_for):
            if not self._is_there(file, watch):
                self._fetch_anew(file, watch)
        return blob

    def _fetch_anew(self, file: RemoteFile, watch: Watch) -> None:
        with PartialFile(self._cache, file) as part:
            watch.settled(part.length)
            for _ in range(2):
                self._fill(file, part, watch)
                if part.become_blob(watch.check):
                    return
                log.warning("%s arrived damaged", file.path)
                _begin_anew(part, watch)
        raise IntegrityError(
            f"{printable(file.path)} arrived damaged twice: its hash isn't what "
            f"{self._listing.repo} says.",
            "Try again later, or over another network.",
        )

    def _is_there(self, file: RemoteFile, watch: Watch) -> bool:
        """Is the blob there and right? Other programs put files there, too."""
        blob = self._cache.blob(file)
        try:
            if self._cache.boundary.holds(blob) and blob.is_file():
                if (
                    blob.stat().st_size == file.size
                    and file_hash(blob, file.is_large, watch.check) == file.blob_id
                ):
                    watch.settled(file.size)
                    return True
                log.warning("%s in the cache is damaged and is fetched anew", blob)
            self._cache.boundary.remove(blob)
        except OSError as error:
            raise unwritable(blob.parent, error) from error
        return False

    def _fill(self, file: RemoteFile, part: PartialFile, watch: Watch) -> None:
        """Let the part grow until it has all bytes, in as many tries as are worth it."""
        failures = 0
        while part.missing:
            before = part.length
            try:
                self._fetch_rest(file, part, watch)
            except _Again as again:
                is_worth_it = part.length - before >= WORTHWHILE_BYTES
                failures = 1 if is_worth_it else failures + 1
                if again.is_anew:
                    _begin_anew(part, watch)
                is_hopeless = part.num_restarts > MOST_RESTARTS
                self._wait(again, failures, is_hopeless, watch)

    def _wait(self, again: _Again, failures: int, is_hopeless: bool, watch: Watch) -> None:
        patience = self._settings.patience
        if is_hopeless or failures > patience.most_tries:
            raise NetworkError(
                f"{self._listing.repo} can't be fetched: {again}.",
                "Check the network connection, and resume the download later: nothing is lost.",
            )
        wait_s = again.wait_s if again.wait_s is not None else _backoff_s(patience, failures)
        log.info("%s; another try in %.1f s", again, wait_s)
        watch.waits_for(f"{again}; trying again in {wait_s:.0f} s")
        if watch.stop.wait(wait_s):
            raise Stopped
        watch.waits_for("")

    def _fetch_rest(self, file: RemoteFile, part: PartialFile, watch: Watch) -> None:
        headers = {"Accept-Encoding": "identity"}
        if part.length:
            headers["Range"] = f"bytes={part.length}-"
        try:
            with self._wire.get(self._url(file), watch.stop, headers) as exchange:
                if self._is_whole(exchange.head(), file, part):
                    _begin_anew(part, watch)
                self._write(exchange, file, part, watch)
        except BrokenError as error:
            raise _Again(str(error)) from error
        if part.missing:
            raise _Again("the server ended before the file did")

    def _is_whole(self, head: Head, file: RemoteFile, part: PartialFile) -> bool:
        """Refuse answers that don't go on with this file; True if it comes from its beginning."""
        status = head.status
        if status in (_HTTP["unauthorized"], _HTTP["forbidden"]):
            raise access_error(self._settings, self._listing.repo)
        if status == _NOT_FOUND:
            raise NotFoundError(
                f"{self._listing.repo} has no {printable(file.path)} any more.",
                "Start the download anew.",
            )
        if status == _BAD_RANGE:
            raise _Again("the server refused to go on where it was cut", is_anew=True)
        if status == _TOO_MANY:
            raise _Again("the server asks for patience", _retry_after_s(head))
        if status not in (_HTTP["ok"], _HTTP["partial"]):
            raise _Again(f"the server failed ({status})", _retry_after_s(head))
        self._check_etag(head, file)
        if status == _HTTP["partial"]:
            header = _RANGE.match(head.headers.get("Content-Range", ""))
            if header is None or int(header[1]) != part.length:
                raise _Again("the server sent another part than was asked for")
            return False
        return part.length > 0

    def _check_etag(self, head: Head, file: RemoteFile) -> None:
        etag = head.first.get("X-Linked-Etag") or head.first.get("ETag") or ""
        etag = etag.removeprefix("W/").strip('"')
        if etag and etag not in (file.blob_id, file.git_id):
            raise IntegrityError(
                f"{printable(file.path)} has changed on the Hub while it was fetched.",
                "Start the download anew: it takes the new version.",
            )

    def _write(self, exchange: Exchange, file: RemoteFile, part: PartialFile, watch: Watch) -> None:
        looked_at = part.length
        self._check_space(part.missing)
        for piece in exchange.pieces():
            # What the server sends beyond the declared size stays where it is.
            chunk = piece[: part.missing]
            self._limiter.pass_bytes(len(chunk), watch.stop)
            part.append(chunk)
            watch.fetched(len(chunk))
            watch.settled(len(chunk))
            if not part.missing:
                return
            if part.length - looked_at >= _SPACE_EVERY:
                looked_at = part.length
                self._check_space(part.missing)

    def _check_space(self, wanted: int) -> None:
        missing = missing_bytes(self._cache.folder, wanted, self._settings.floor_bytes)
        if missing:
            raise disk_full(self._settings.cache_dir, missing)

    def _url(self, file: RemoteFile) -> str:
        listing = self._listing
        return f"{self._settings.endpoint}/{listing.repo}/resolve/{listing.sha}/{quote(file.path)}"


def _begin_anew(part: PartialFile, watch: Watch) -> None:
    if part.length:
        log.info("a file is fetched from its beginning again")
    watch.settled(-part.length)
    part.forget()


def _backoff_s(patience: HubTimeouts, failures: int) -> float:
    # Not all at once: a server that has just come back would fail again.
    jitter = 0.5 + random.random()
    return float(min(patience.longest_s, patience.backoff_s * 2 ** (failures - 1)) * jitter)


def _retry_after_s(head: Head) -> float | None:
    header = head.headers.get("Retry-After", "")
    return min(float(header), MOST_RETRY_AFTER_S) if _SECONDS.fullmatch(header) else None
