"""Folders that only their user may read."""

from __future__ import annotations

from pathlib import Path

OWN = 0o700


def make_own_folder(folder: Path) -> None:
    """Make a folder and the missing ones above it, all for this user only.

    `Path.mkdir` gives its mode to the last one only. A folder that is there keeps its mode.

    Args:
        folder: The folder.

    Raises:
        OSError: It can't be made.
    """
    if not folder.parent.is_dir():
        make_own_folder(folder.parent)
    folder.mkdir(mode=OWN, exist_ok=True)
