"""Free space on a disk for offloaded data, and errors of writing it."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

from medusa_core.errors import TierError
from medusa_core.i18n import tr

FLOOR_BYTES = 1 << 30  # of free space that must remain
_FULL = (errno.ENOSPC, errno.EDQUOT)


def check_room(folder: Path, num_bytes: int, what: str) -> None:
    """Check that a disk has room, before anything is written.

    Args:
        folder: Folder on the disk.
        num_bytes: Bytes to write.
        what: Name of the data in the plural, such as "The layers".

    Raises:
        TierError: There is too little room.
    """
    free = shutil.disk_usage(folder).free
    if free < num_bytes + FLOOR_BYTES:
        raise TierError(
            tr(
                "{0} need {1:.1f} GiB in {2}, where {3:.1f} GiB are free and 1 must stay free.",
                what,
                num_bytes / (1 << 30),
                folder,
                free / (1 << 30),
            ),
            "Make room, or name a folder on another disk.",
            needed_bytes=num_bytes,
            free_bytes=free,
        )


def write_error(folder: Path, error: OSError, what: str) -> TierError:
    """Return the error for a failed write; see `check_room` for the arguments."""
    if error.errno in _FULL:
        return TierError(
            tr("The disk is full: {0}{1} have no room in {2}.", what[0].lower(), what[1:], folder),
            "Make room, or name a folder on another disk.",
        )
    return TierError(
        tr("{0} can't be written to {1}: {2}.", what, folder, error.strerror or error),
        "Name another folder.",
    )
