r"""Whether a path that comes from elsewhere, such as a file of settings, is a folder here.

On Windows a look at `\\server\share` asks that server, with the user's name and a proof of the
password, and waits for it; so such a path isn't touched.
"""

from __future__ import annotations

import os
from pathlib import PurePath, PureWindowsPath


def is_local_path(text: str, kind: type[PurePath] = PurePath) -> bool:
    """Whether a text is a whole path on a drive of this computer; nothing is touched.

    Args:
        text: From anywhere.
        kind: How paths are written: `PurePosixPath`, `PureWindowsPath`, or as they are here.
    """
    path = kind(text)
    if isinstance(path, PureWindowsPath):
        # `\\server\share` and `\\?\…` have longer ones; `\x`, to which `\??\UNC` belongs, has none.
        return len(path.drive) == len("C:") and path.is_absolute()
    return path.is_absolute() and not text.startswith("//")


def is_local_folder(text: str) -> bool:
    """Whether there is such a folder on this computer; one of another machine isn't asked for."""
    return is_local_path(text) and os.path.isdir(text)  # noqa: PTH112  # `Path.is_dir` may raise
