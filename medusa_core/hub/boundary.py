"""Check names, ids and paths; the only module that changes files in the shared cache.

Names and ids come from the Hub, links from any program that wrote to the cache. So names are
checked on arrival, and every path is resolved and must be inside the cache before it is written,
linked or removed.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from pathlib import Path
from typing import TypeGuard

from medusa_core.errors import NotFoundError, RequestError
from medusa_core.hub.bounds import (
    MAX_NAME_BYTES,
    MAX_PATH_BYTES,
    MAX_REPO_CHARS,
    SHOWN_CHARS,
)
from medusa_core.i18n import tr

_SHA1 = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_REPO = re.compile(r"(\w[\w.-]*/)?\w[\w.-]*", re.ASCII)
# Opens a file without following a link; Windows has no such flag.
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)


def is_sha1(text: object) -> TypeGuard[str]:
    """Return whether a value is a sha1 of 40 hexadecimal digits."""
    return isinstance(text, str) and _SHA1.fullmatch(text) is not None


def is_sha256(text: object) -> TypeGuard[str]:
    """Return whether a value is a sha256 of 64 hexadecimal digits."""
    return isinstance(text, str) and _SHA256.fullmatch(text) is not None


def is_id(text: object) -> TypeGuard[str]:
    """Return whether a value is a sha1 or sha256."""
    return is_sha1(text) or is_sha256(text)


def is_safe_path(text: object) -> TypeGuard[str]:
    """Return whether a relative path stays in its folder on every system."""
    if not isinstance(text, str) or not text.isprintable() or "\\" in text:
        return False
    parts = text.split("/")
    return len(text.encode()) <= MAX_PATH_BYTES and all(
        part not in ("", ".", "..") and len(part.encode()) <= MAX_NAME_BYTES for part in parts
    )


def is_repo(text: object) -> TypeGuard[str]:
    """Return whether a value is a name of a repository, `owner/name`."""
    if not isinstance(text, str) or len(text) > MAX_REPO_CHARS or not _REPO.fullmatch(text):
        return False
    return not any(word in text for word in ("--", "..")) and not text.endswith((".git", "-", "."))


def check_repo(repo: str) -> None:
    """Check the name of a repository.

    Raises:
        NotFoundError: It is none.
    """
    if not is_repo(repo):
        raise NotFoundError(
            tr("{0} is no name of a repository.", repr(printable(repo))), "Write owner/name."
        )


def check_revision(revision: str) -> None:
    """Check the name of a branch, tag or commit.

    Raises:
        NotFoundError: It is none.
    """
    if not is_safe_path(revision):
        raise NotFoundError(
            tr("{0} is no name of a revision.", repr(printable(revision))),
            "Write a branch, a tag or a commit.",
        )


def printable(text: str) -> str:
    """Return an untrusted name for a message, printable and shortened."""
    seen = text if text.isprintable() else ascii(text)[1:-1]
    return seen if len(seen) <= SHOWN_CHARS else f"{seen[: SHOWN_CHARS - 1]}…"


def printable_value(value: object) -> str:
    """Return an untrusted value for a message; only the type of a list or object."""
    return (
        printable(repr(value))
        if isinstance(value, str | int | float | None)
        else (f"a {type(value).__name__}")
    )


class Boundary:
    """Changes of files in the shared cache.

    Attributes:
        root: Folder of the cache, links resolved.
    """

    def __init__(self, cache_dir: Path) -> None:
        self.root = cache_dir.resolve()

    def check(self, path: Path) -> Path:
        """Return a path in the cache with its folder resolved; the file may itself be a link.

        Raises:
            RequestError: Its path leaves the cache.
        """
        try:
            folder = path.parent.resolve()
        except (OSError, RuntimeError) as error:  # links in a circle
            raise self._outside(path) from error
        if path.name in ("", "..") or not folder.is_relative_to(self.root):
            raise self._outside(path)
        return folder / path.name

    def holds(self, path: Path) -> bool:
        """Return whether a file is in the cache after links are resolved."""
        try:
            return path.resolve().is_relative_to(self.root)
        except (OSError, RuntimeError):  # links in a circle
            return False

    def make_folder(self, folder: Path) -> Path:
        """Create a folder and its parents; returns its resolved path.

        Raises:
            RequestError: Its path leaves the cache.
            OSError: It can't be made.
        """
        if folder.absolute() != self.root:
            self.check(folder / "any")
        folder.mkdir(parents=True, exist_ok=True)
        return self.check(folder / "any").parent

    def write_text(self, path: Path, text: str) -> None:
        """Replace a file atomically.

        Raises:
            RequestError: Its path leaves the cache.
            OSError: It can't be written.
        """
        part = self._fresh_part(path)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
            file.write(text.encode())
        part.replace(part.with_name(path.name))

    def link(self, blob: Path, name: Path) -> None:
        """Link a blob under a name.

        Raises:
            RequestError: A path leaves the cache.
            OSError: It can't be linked.
        """
        if not self.holds(blob):
            raise self._outside(blob)
        place = self.make_folder(name.parent) / name.name
        target = os.path.relpath(self.check(blob), place.parent)
        if place.is_symlink() and os.readlink(place) == target:  # noqa: PTH115 - as it is written
            return
        place.unlink(missing_ok=True)
        try:
            place.symlink_to(target)
        except OSError:
            # Windows without the privilege for links: huggingface_hub copies there, too.
            part = self._fresh_part(place)
            shutil.copyfile(blob, part)
            part.replace(place)

    def move(self, source: Path, target: Path) -> None:
        """Move a file, replacing any other.

        Raises:
            RequestError: A path leaves the cache.
            OSError: It can't be moved.
        """
        self.check(source).replace(self.check(target))

    def remove(self, path: Path) -> None:
        """Remove a file or a link, if it exists.

        Raises:
            RequestError: Its path leaves the cache.
            OSError: It can't be removed.
        """
        self.check(path).unlink(missing_ok=True)

    def remove_tree(self, folder: Path) -> None:
        """Remove a folder and its contents; links aren't followed.

        Raises:
            RequestError: Its path leaves the cache.
            OSError: It can't be removed.
        """
        shutil.rmtree(self.check(folder))

    def open_regular(self, path: Path) -> int:
        """Open or create a regular file for reading and writing; returns its descriptor.

        A link, or a file that has a second name elsewhere, gives way to a new one.

        Raises:
            RequestError: Its path leaves the cache.
            OSError: It can't be opened.
        """
        place = self.check(path)
        if (seen := _seen(place)) is not None and not _is_alone(seen):
            place.unlink()
        flags = os.O_RDWR | os.O_CREAT | NO_FOLLOW | getattr(os, "O_BINARY", 0)
        return os.open(place, flags, 0o666)

    def _fresh_part(self, path: Path) -> Path:
        """Return an unused path for a file before it is moved into place."""
        place = self.make_folder(path.parent) / f"{path.name}.part"
        place.unlink(missing_ok=True)
        return place

    def _outside(self, path: Path) -> RequestError:
        """Make the error for a path outside of the cache."""
        return RequestError(
            tr("{0} leads out of the cache {1}.", printable(str(path)), printable(str(self.root))),
            "Nothing was changed there; look at the links among its folders.",
        )


def is_same_file(path: Path, opened: int) -> bool:
    """Return whether a path still names an opened file."""
    seen = _seen(path)
    return seen is not None and os.path.samestat(seen, os.fstat(opened))


def _seen(path: Path) -> os.stat_result | None:
    """Return the status of a path without following links; None if it doesn't exist."""
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


def _is_alone(status: os.stat_result) -> bool:
    """Whether it is a regular file without further hard links."""
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1
