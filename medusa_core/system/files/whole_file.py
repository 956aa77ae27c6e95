"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path


def replace_file(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file that only this user reads; it is complete, or as it was before.

    A full disk leaves nothing of it behind, and a power cut doesn't leave half of it.

    Args:
        path: The file, in a folder that is there.
        pieces: What it is to hold.

    Raises:
        OSError: It can't be written.
    """
    handle, name = tempfile.mkstemp(prefix=".", suffix=".part", dir=path.parent)  # mode 0600
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def replace_text(path: Path, text: str) -> None:
    """Write text as `replace_file` writes bytes, in UTF-8; folders that are missing are made.

    Raises:
        OSError: It can't be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, [text.encode()])
