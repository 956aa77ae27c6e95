"""How large an installation is, and whether there is room for it."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from installer.bootstrap.files import folder_bytes
from installer.bootstrap.first_model import FILE_BYTES
from installer.errors import SetupError
from installer.torch_choice import TorchBuild

MB = 1_000_000
GB = 1000 * MB
LEAST_BYTES = 100 * MB  # the program itself, twice; compiled files
FLOOR_BYTES = GB // 2  # never fill a disk to its end


@dataclass(frozen=True, slots=True)
class Size:
    """An approximate size.

    Attributes:
        download: bytes to fetch.
        installed: bytes on the disk.
    """

    download: int
    installed: int

    def __add__(self, other: "Size") -> "Size":
        return Size(self.download + other.download, self.installed + other.installed)


FIRST_MODEL = Size(93 * MB, FILE_BYTES)
PYTHON = Size(35 * MB, 110 * MB)
# With torch 2.13 on Linux; the CPU build is measured, the CUDA builds are estimated.
_SIZES = {
    TorchBuild.CPU: Size(420 * MB, 1660 * MB),
    TorchBuild.CU126: Size(3 * GB, 7 * GB),
    TorchBuild.CU130: Size(3 * GB, 7 * GB),
    TorchBuild.PIP: Size(300 * MB, 1100 * MB),
}


def size_of_version(build: TorchBuild) -> Size:
    """Return the size of an environment with all packages."""
    return _SIZES[build]


def free_bytes(path: Path) -> int:
    """Return the free bytes at a folder that may not exist yet.

    Raises:
        OSError: that can't be found out.
    """
    while not path.exists() and path != path.parent:
        path = path.parent
    return shutil.disk_usage(path).free


def needed_size(cache: Path, size: Size) -> Size:
    """Return what an installation will add to the disk: downloads in the cache are used again.

    Args:
        cache: Folder of uv's cache.
        size: Size of everything that will be installed.
    """
    installed = max(size.installed - folder_bytes(cache), LEAST_BYTES)
    return Size(round(size.download * installed / size.installed), installed)


def check_space(
    folder: Path, size: Size, mend: str, measure: Callable[[Path], int] = free_bytes
) -> None:
    """Refuse an installation that would fill the disk.

    Args:
        folder: Where it goes.
        size: What it will add to the disk.
        mend: What to do if there is too little room.
        measure: Free bytes at a path; replaced in tests.

    Raises:
        SetupError: There is too little room.
    """
    needed = size.installed + FLOOR_BYTES
    free = measure(folder)
    if free < needed:
        raise SetupError(
            f"{shown_bytes(needed)} are needed in {folder}; {shown_bytes(free)} are free.", mend
        )


def shown_bytes(count: int) -> str:
    """Format a number of bytes: 4 kB, 93 MB, 1.4 GB."""
    if count < MB:
        return f"{count / 1000:.0f} kB"
    if count < GB:
        return f"{count / MB:.0f} MB"
    return f"{count / GB:.1f} GB"
