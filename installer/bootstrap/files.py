"""Writing a small file whole, the size of a folder, and removing one."""

import base64
import csv
import hashlib
import os
import re
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write a file atomically, readable by its owner only.

    Raises:
        OSError: it can't be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(_open_private(part), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def copy_whole(source: Path, target: Path) -> None:
    """Copy a file atomically.

    Raises:
        OSError: it can't be read, or the copy can't be written.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        shutil.copyfile(source, part)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def folder_bytes(folder: Path) -> int:
    """Return the disk space of the files below a folder, each once, without following links."""
    seen: set[tuple[int, int]] = set()
    total = 0
    for about in _files_below(folder):
        if about.st_nlink > 1:
            if (about.st_dev, about.st_ino) in seen:
                continue
            seen.add((about.st_dev, about.st_ino))
        total += about.st_size
    return total


def remove_folder(folder: Path) -> None:
    """Remove a folder and everything below it; of a link only the link itself.

    Raises:
        OSError: something of it can't be removed.
    """
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    elif folder.exists():
        _remove_tree(folder)


def _open_private(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)


def _files_below(folder: Path) -> Iterator[os.stat_result]:
    waiting = [str(folder)]
    while waiting:
        # A folder may go away while it is read.
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        yield entry.stat(follow_symlinks=False)


def _make_writable(remove: Callable[[str], object], path: str, _: object) -> None:
    """Make a read-only file or folder writable, and retry its removal."""
    for one in (os.path.dirname(path), path):  # noqa: PTH120
        with suppress(OSError):
            os.chmod(one, stat.S_IRWXU)  # noqa: PTH101
    if os.path.lexists(path):
        remove(path)


if sys.version_info >= (3, 12):

    def _remove_tree(folder: Path) -> None:
        shutil.rmtree(folder, onexc=_make_writable)

else:

    def _remove_tree(folder: Path) -> None:
        shutil.rmtree(folder, onerror=_make_writable)


BLOCK_BYTES = 1 << 20


def changed_packages(environment: Path) -> list[str]:
    """Return the packages of which a file is missing or differs from its record.

    Args:
        environment: its folder.
    """
    libraries = environment / "Lib" / "site-packages"
    folders = [libraries] if libraries.is_dir() else environment.glob("lib/python3.*/site-packages")
    records = [record for folder in folders for record in sorted(folder.glob("*.dist-info/RECORD"))]
    return [_name_of(record) for record in records if not _is_as_recorded(record)]


def _name_of(record: Path) -> str:
    name = record.parent.name.removesuffix(".dist-info").partition("-")[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def _is_as_recorded(record: Path) -> bool:
    folder = record.parent.parent
    try:
        with record.open(encoding="utf-8", newline="") as file:
            rows = [row for row in csv.reader(file) if len(row) == len(("path", "hash", "size"))]
        return bool(rows) and all(_is_same(folder / path, digest) for path, digest, _ in rows)
    except (OSError, ValueError, csv.Error):
        return False


def _is_same(path: Path, digest: str) -> bool:
    kind, _, value = digest.partition("=")
    # The record itself has no hash; what Python compiles changes with where it lies.
    if not value or path.suffix == ".pyc":
        return True
    found = hashlib.new(kind)
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            found.update(block)
    # The specification wants base64; packages with hexadecimal digits are about, too.
    return value in (
        base64.urlsafe_b64encode(found.digest()).rstrip(b"=").decode(),
        found.hexdigest(),
    )
