"""Folders that only the user may read (mode 0700)."""

from __future__ import annotations

from pathlib import Path

OWN = 0o700


def make_own_folder(folder: Path) -> None:
    """Create a folder and its missing parents with mode 0700.

    `Path.mkdir` applies its mode to the last folder only. Existing folders keep their mode.

    Raises:
        OSError: The folder can't be created.
    """
    if not folder.parent.is_dir():
        make_own_folder(folder.parent)
    folder.mkdir(mode=OWN, exist_ok=True)
