"""Files and folders that a power cut must not take back."""

from __future__ import annotations

import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk; only POSIX systems can do this.

    Raises:
        OSError: The folder can't be opened, or the disk fails.
    """
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
