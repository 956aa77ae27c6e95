"""Find the files of a collection's folders, without following links."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from medusa_core.i18n import tr

MOST_FILE_BYTES = 100 << 20
_MOST_ENTRIES = 20_000
_GENERATED = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})


class FoundFile(NamedTuple):
    """A file, or what is skipped.

    Attributes:
        path: Absolute path.
        num_bytes: Size.
        changed_ns: Time of its last change.
        reason: Why it is skipped; empty for a file to be read.
        is_unreachable: Whether it can't be opened, which may pass.
    """

    path: str
    num_bytes: int
    changed_ns: int
    reason: str = ""
    is_unreachable: bool = False


def scan(roots: Iterable[str]) -> dict[str, FoundFile]:
    """Return the files of folders by path, in order.

    Args:
        roots: Absolute paths of files and folders. One that is a link by now, or is reached through
            one, is skipped.
    """
    found: dict[str, FoundFile] = {}
    for root in roots:
        for file in _walk(root):
            if not _is_text(file.path):
                shown = file.path.encode("utf-8", "replace").decode()
                file = FoundFile(shown, 0, 0, tr("Its name isn't valid text."))
            found.setdefault(file.path, file)
            if len(found) > _MOST_ENTRIES:
                reason = tr("Only the first {0:,} files and folders were searched.", _MOST_ENTRIES)
                found[root] = FoundFile(root, 0, 0, reason)
                return found
    return found


def _walk(root: str) -> Iterator[FoundFile]:
    """Yield a file, or the files of a folder and of all folders in it."""
    if not os.path.lexists(root):
        return
    if os.path.realpath(root) != root:
        yield FoundFile(root, 0, 0, tr("Links aren't followed."))
        return
    if not Path(root).is_dir():
        yield _file(root)
        return
    folders = [root]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as listing:
                some = islice(listing, _MOST_ENTRIES + 1)
                entries = sorted(some, key=lambda entry: entry.name)
        except OSError as error:
            yield _unreachable(folder, error)
            continue
        inner = []
        for entry in entries:
            reason = _reason_to_skip(entry)
            if reason:
                yield FoundFile(entry.path, 0, 0, reason)
            elif entry.is_dir(follow_symlinks=False):
                inner.append(entry.path)
            else:
                yield _file(entry.path)
        folders += reversed(inner)


def _reason_to_skip(entry: os.DirEntry[str]) -> str:
    """Return why a file or folder within a folder is skipped; empty if it isn't."""
    if entry.is_symlink() or _is_junction(entry):
        return tr("Links aren't followed.")
    if entry.name.startswith(".") or _is_hidden(entry):
        return tr("Hidden files and folders aren't read.")
    if entry.name in _GENERATED and entry.is_dir(follow_symlinks=False):
        return tr("Folders of installed packages aren't read.")
    return ""


def _is_junction(entry: os.DirEntry[str]) -> bool:
    """Whether a folder of Windows is a junction, a link which may lead back to its own parents."""
    if sys.platform == "win32":
        tag = entry.stat(follow_symlinks=False).st_reparse_tag
        return tag == stat.IO_REPARSE_TAG_MOUNT_POINT
    return False


def _is_hidden(entry: os.DirEntry[str]) -> bool:
    """Whether a file or folder of Windows is hidden, such as AppData."""
    if sys.platform == "win32":
        attributes = entry.stat(follow_symlinks=False).st_file_attributes
        return bool(attributes & stat.FILE_ATTRIBUTE_HIDDEN)
    return False


def _is_text(path: str) -> bool:
    """Whether a path is valid UTF-8; Python decodes other bytes as surrogates."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _file(path: str) -> FoundFile:
    """Describe a file by its status."""
    try:
        status = os.lstat(path)
    except OSError as error:
        return _unreachable(path, error)
    reason = ""
    if not stat.S_ISREG(status.st_mode):
        reason = tr("It isn't a file.")
    elif status.st_size > MOST_FILE_BYTES:
        reason = tr("It is larger than {0} MB.", MOST_FILE_BYTES >> 20)
    elif not status.st_size:
        reason = tr("It is empty.")
    return FoundFile(path, status.st_size, status.st_mtime_ns, reason)


def _unreachable(path: str, error: OSError) -> FoundFile:
    """Describe a file or folder that can't be opened."""
    reason = tr("It can't be opened: {0}.", error.strerror or error)
    return FoundFile(path, 0, 0, reason, is_unreachable=True)
