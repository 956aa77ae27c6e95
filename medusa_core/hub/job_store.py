"""Downloads on disk, so that a restart finds them as they were."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from medusa_core.errors import HubError
from medusa_core.hub.job import Job, JobState, Pair

_VERSION = 1
_SCHEMA = """
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


class JobStore:
    """The table of downloads."""

    def __init__(self, path: Path) -> None:
        """Open or make it.

        Raises:
            HubError: It can't be opened, or a newer version made it.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=5.0, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA foreign_keys = ON")
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            if version == 0:
                self._db.executescript(
                    f"BEGIN; {_SCHEMA} PRAGMA user_version = {_VERSION}; COMMIT;"
                )
        except (sqlite3.Error, OSError) as error:
            raise HubError(
                f"The list of downloads {path} can't be opened: {error}.",
                "Move the file away: downloads themselves are not lost.",
            ) from error
        if version > _VERSION:
            self._db.close()
            raise HubError(
                f"The list of downloads {path} was made by a newer version.",
                "Update Medusa Chat, or move the file away.",
            )

    def add(self, pair: Pair) -> Job:
        """A new download, queued."""
        cursor = self._db.execute(
            "INSERT INTO jobs (model, heads, revision, converts, state) VALUES (?, ?, ?, ?, ?)",
            (pair.model, pair.heads, pair.revision, pair.converts, JobState.QUEUED.value),
        )
        assert cursor.lastrowid is not None
        return Job(cursor.lastrowid, pair, JobState.QUEUED)

    def save(self, job: Job) -> None:
        """Write down how far a download is."""
        self._db.execute(
            "UPDATE jobs SET state = ?, reason = ?, hint = ?, done_bytes = ?, total_bytes = ?"
            " WHERE id = ?",
            (job.state.value, job.reason, job.hint, job.done_bytes, job.total_bytes, job.id),
        )

    def remove(self, job_id: int) -> None:
        """Forget a download."""
        self._db.execute("DELETE FROM jobs WHERE id = ?", (job_id,))

    def all(self) -> tuple[Job, ...]:
        """Every download, the oldest first."""
        rows = self._db.execute(
            "SELECT id, model, heads, revision, converts, state, reason, hint,"
            " done_bytes, total_bytes FROM jobs ORDER BY id"
        )
        return tuple(
            Job(
                id=number,
                pair=Pair(model, heads, revision, bool(converts)),
                state=JobState(state),
                reason=reason,
                hint=hint,
                done_bytes=done,
                total_bytes=total,
            )
            for number, model, heads, revision, converts, state, reason, hint, done, total in rows
        )

    def close(self) -> None:
        """Close the file."""
        self._db.close()
