"""Notices at a start that the last run ended by itself, however hard."""

from __future__ import annotations

import faulthandler
import logging
from pathlib import Path
from typing import IO

log = logging.getLogger(__name__)

MARKER_NAME = "running"
DUMP_NAME = "crash.log"
LAST_DUMP_NAME = "crash-last.log"


class CrashGuard:
    """A marker that a clean end removes, and a file for what Python was doing at a hard one.

    Attributes:
        last_dump: What the last hard end left.
    """

    def __init__(self, state: Path, logs: Path) -> None:
        """Prepare; nothing is written yet.

        Args:
            state: Where the marker lies.
            logs: Where the dump lies.
        """
        self._marker = state / MARKER_NAME
        self._dump = logs / DUMP_NAME
        self.last_dump = logs / LAST_DUMP_NAME
        self._file: IO[str] | None = None

    def begin(self) -> bool:
        """Mark that a run has begun.

        Returns:
            Whether the one before had no clean end.
        """
        try:
            has_crashed = self._marker.exists()
            if self._dump.exists() and self._dump.stat().st_size:
                self._dump.replace(self.last_dump)
            self._marker.parent.mkdir(parents=True, exist_ok=True)
            self._marker.write_text("", encoding="utf-8")
            self._dump.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._dump.open("w", encoding="utf-8")
            faulthandler.enable(self._file, all_threads=True)
        except OSError as error:
            log.warning("a crash won't be noticed: %s", error)
            return False
        return has_crashed

    def end(self) -> None:
        """Mark that the run ended as it should."""
        if self._file is not None:
            faulthandler.disable()
            self._file.close()
        try:
            self._marker.unlink(missing_ok=True)
        except OSError as error:
            log.warning("the marker of this run stays: %s", error)
