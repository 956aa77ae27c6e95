"""Detects at a start that the last run crashed."""

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
    """Marker file that a clean exit removes, and a file for tracebacks of crashes.

    Attributes:
        last_dump: Tracebacks of the last crash.
    """

    def __init__(self, state: Path, logs: Path) -> None:
        """Prepare; nothing is written yet.

        Args:
            state: Folder of the marker.
            logs: Folder of the tracebacks.
        """
        self._marker = state / MARKER_NAME
        self._dump = logs / DUMP_NAME
        self.last_dump = logs / LAST_DUMP_NAME
        self._file: IO[str] | None = None

    def begin(self) -> bool:
        """Set the marker.

        Returns:
            Whether the last run crashed.
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
        """Remove the marker at a clean exit."""
        if self._file is not None:
            faulthandler.disable()
            self._file.close()
        try:
            self._marker.unlink(missing_ok=True)
        except OSError as error:
            log.warning("the marker of this run stays: %s", error)
