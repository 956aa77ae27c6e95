"""Database of downloads, from which a restart continues."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from medusa_core.errors import HubError, StorageError
from medusa_core.hub.job import DownloadJob, JobState, Pair
from medusa_core.i18n import text_from_json, text_to_json, tr
from medusa_core.system.storage.database import (
    Database,
    open_database,
    open_in_memory,
)

log = logging.getLogger(__name__)

_VERSION_1 = """
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    model TEXT NOT NULL,
    heads TEXT NOT NULL,
    revision TEXT NOT NULL,
    converts INTEGER NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    hint TEXT NOT NULL DEFAULT '',
    done_bytes INTEGER NOT NULL DEFAULT 0,
    total_bytes INTEGER NOT NULL DEFAULT 0
) STRICT;
"""
_VERSION_2 = "ALTER TABLE jobs ADD COLUMN file TEXT NOT NULL DEFAULT '';"
_VERSION_3 = "ALTER TABLE jobs ADD COLUMN heads_file TEXT NOT NULL DEFAULT '';"
_MIGRATIONS = (_VERSION_1, _VERSION_2, _VERSION_3)


class JobStore:
    """Table of downloads.

    Attributes:
        notice: Problem at opening, for people; mostly empty.
    """

    def __init__(self, path: Path) -> None:
        """Open or create the database; if it can't be written, an in-memory one.

        Raises:
            HubError: A newer version of the program created it.
        """
        try:
            self._database = open_database(path, _MIGRATIONS)
        except StorageError as error:
            if "version" in error.data:
                raise HubError(error.message, error.hint) from error
            log.warning("downloads are kept in memory: %s", error)
            self._database = _in_memory(path, error)
        self.notice = self._database.notice

    def add(self, pair: Pair) -> DownloadJob:
        """Add a queued download.

        Raises:
            HubError: It can't be written.
        """
        try:
            number = self._database.write(
                "INSERT INTO jobs (model, heads, revision, converts, file, heads_file, state)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                *(pair.model, pair.heads, pair.revision, pair.converts),
                *(pair.file, pair.heads_file),
                JobState.QUEUED.value,
            )
        except StorageError as error:
            raise HubError(error.message, error.hint) from error
        return DownloadJob(number, pair, JobState.QUEUED)

    def save(self, job: DownloadJob) -> None:
        """Save the state of a download; a failure is only logged."""
        self._try(
            "UPDATE jobs SET state = ?, reason = ?, hint = ?, done_bytes = ?, total_bytes = ?"
            " WHERE id = ?",
            *(job.state.value, _stored(job.reason), _stored(job.hint)),
            *(job.done_bytes, job.total_bytes, job.id),
        )

    def remove(self, job_id: int) -> None:
        """Delete a download."""
        self._try("DELETE FROM jobs WHERE id = ?", job_id)

    def _try(self, sql: str, *parameters: object) -> None:
        """Write to the database; a failure is only logged, as downloads don't depend on it."""
        try:
            self._database.write(sql, *parameters)
        except StorageError as error:
            log.warning("the list of downloads isn't written: %s", error)

    def all(self) -> tuple[DownloadJob, ...]:
        """Return all downloads, the oldest first; invalid rows are left out."""
        try:
            rows = self._database.rows(
                "SELECT id, model, heads, revision, converts, file, heads_file, state, reason,"
                " hint, done_bytes, total_bytes FROM jobs ORDER BY id"
            )
        except StorageError as error:
            log.warning("the list of downloads isn't read: %s", error)
            return ()
        jobs = []
        for row in rows:
            try:
                jobs.append(_job(row))
            except ValueError:
                log.warning("download %d makes no sense", row[0])
        return tuple(jobs)

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def _in_memory(path: Path, error: StorageError) -> Database:
    """Open a temporary database if the file can't be used."""
    notice = tr("{0} Downloads of today won't be remembered. {1}", error.message, error.hint)
    return open_in_memory(_MIGRATIONS, path, notice)


def _stored(text: str) -> str:
    """A text as it is stored: one with values as JSON, so that it can be translated later."""
    raw = text_to_json(text)
    return raw if isinstance(raw, str) else json.dumps(raw)


def _read(stored: str) -> str:
    """A text of `_stored`, or of an older version, which stored sentences."""
    if not stored.startswith('["'):
        return stored
    try:
        return text_from_json(json.loads(stored))
    except ValueError:
        return stored


def _job(row: tuple[Any, ...]) -> DownloadJob:
    """Parse a row; invalid names raise."""
    number, model, heads, revision, converts, file, heads_file, *progress = row
    state, reason, hint, done, total = progress
    # A damaged name would be requested from the Hub and created as a folder.
    for repo in (model, heads):
        if not (repo + revision + file + heads_file).isprintable():
            raise ValueError(repo)
    return DownloadJob(
        id=number,
        pair=Pair(model, heads, revision, bool(converts), file, heads_file),
        state=JobState(state),
        reason=_read(reason),
        hint=_read(hint),
        done_bytes=max(0, done),
        total_bytes=max(0, total),
    )
