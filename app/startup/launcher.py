"""Tells the launcher of a system package, which counts failed starts, that the window is up."""

from __future__ import annotations

import logging
import os
from pathlib import Path

STARTED_VARIABLE = "MEDUSA_STARTED_FILE"
log = logging.getLogger(__name__)


def notify_launcher() -> None:
    """Write the file that the launcher waits for, if one started this window."""
    # Programs that are started from here aren't what the launcher waits for.
    name = os.environ.pop(STARTED_VARIABLE, "")
    if not name:
        return
    try:
        Path(name).write_text("", encoding="utf-8")
    except OSError as error:
        log.warning("the launcher isn't told that the window came up: %s", error)
