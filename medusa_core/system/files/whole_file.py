"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from medusa_core.system.files.own_folder import make_own_folder


def replace_file(path: Path, pieces: Iterable[bytes], is_durable: bool = True) -> None:
    """Write a file that only this user reads; it is complete, or as it was before.

    A full disk leaves nothing of it behind, and a power cut doesn't leave half of it.

    Args:
        path: The file, in a folder that is there.
        pieces: What it is to hold.
        is_durable: It must outlive a power cut; False for what can be made again, since waiting for
            the disk takes milliseconds.

    Raises:
        OSError: It can't be written.
    """
    handle, name = tempfile.mkstemp(prefix=".", suffix=".part", dir=path.parent)  # mode 0600
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(pieces)
            if is_durable:
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
    make_own_folder(path.parent)
    replace_file(path, [text.encode()])
