"""Is there room for what will be installed?"""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from installer.errors import SetupError
from installer.torch_choice import TorchBuild

GB = 1_000_000_000
FLOOR_BYTES = GB  # never fill a disk to its end


def free_bytes(path: Path) -> int:
    """Free bytes of the file system that holds `path`, for an ordinary user."""
    return shutil.disk_usage(path).free


def check_space(root: Path, build: TorchBuild, measure: Callable[[Path], int] = free_bytes) -> None:
    """Refuse to start an installation that would fill the disk.

    Args:
        root: the repository, whose environment grows.
        build: the build of torch, by far the largest part.
        measure: free bytes at a path; replaced in tests.

    Raises:
        SetupError: there is too little room in the repository or for temporary files.
    """
    installed, unpacked = (7 * GB, 4 * GB) if build.is_cuda else (2 * GB, GB)
    free = measure(root)
    if free < installed + FLOOR_BYTES:
        raise SetupError(
            f"The installation needs {(installed + FLOOR_BYTES) / GB:.0f} GB in {root}; "
            f"{free / GB:.1f} GB are free.",
            "Free some space (python3 -m pip cache purge removes pip's copies), then run again.",
        )
    temporary = Path(tempfile.gettempdir())
    free = measure(temporary)
    if free < unpacked:
        raise SetupError(
            f"pip needs {unpacked / GB:.0f} GB for temporary files in {temporary}; "
            f"{free / GB:.1f} GB are free.",
            "Set TMPDIR to a directory with more room, for example:\n"
            f"mkdir -p {root.parent / 'tmp'} && TMPDIR={root.parent / 'tmp'} python3 installer run",
        )
