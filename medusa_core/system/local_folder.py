r"""Checks that untrusted paths, such as those in a settings file, are on this computer.

On Windows, any access to `\\server\share` connects to that server, with the user's name and a
password hash, and waits for it. So such paths are recognised without touching them.
"""

from __future__ import annotations

import os
from pathlib import PurePath, PureWindowsPath


def is_local_path(text: str, kind: type[PurePath] = PurePath) -> bool:
    """Whether a text is an absolute path on a drive of this computer; nothing is accessed.

    Args:
        text: Untrusted text.
        kind: Path syntax: `PurePosixPath`, `PureWindowsPath`, or `PurePath` for this system's.
    """
    path = kind(text)
    if isinstance(path, PureWindowsPath):
        # `\\server\share` and `\\?\…` have longer drives; `\x`, such as `\??\UNC`, has none.
        return len(path.drive) == len("C:") and path.is_absolute()
    return path.is_absolute() and not text.startswith("//")


def is_local_folder(text: str) -> bool:
    """Whether a text names an existing folder on this computer, without contacting others."""
    return is_local_path(text) and os.path.isdir(text)  # noqa: PTH112  # `Path.is_dir` may raise
