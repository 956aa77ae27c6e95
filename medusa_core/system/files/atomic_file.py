"""Files that are replaced atomically: a reader finds the old content or all of the new."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from medusa_core.system.files.own_folder import make_own_folder


class AtomicFile:
    """A temporary file that is renamed to its target when it is complete.

    As a context manager it is committed on success and deleted on an error, so that a full disk
    leaves nothing behind.

    Attributes:
        part: The temporary file, in the target's folder. It exists and is empty; write it by path.
    """

    def __init__(
        self,
        path: Path,
        *,
        durable: bool = True,
        private: bool = True,
        prefix: str = ".",
        suffix: str = ".part",
    ) -> None:
        """Create the temporary file.

        Args:
            path: Target, in an existing folder.
            durable: Flush the content to the disk before renaming, so that a power cut leaves a
                complete file. False for data that can be made again: flushing takes milliseconds.
            private: Let only this user read the file (mode 0600).
            prefix: Start of the temporary name.
            suffix: End of its name.

        Raises:
            OSError: The folder can't be written.
        """
        self._path = path
        self._durable = durable
        self.part = create_part(path.parent, prefix, suffix, 0o600 if private else 0o666)

    def commit(self) -> None:
        """Replace the target; all handles to the temporary file must be closed.

        Raises:
            OSError: The disk is full or fails.
        """
        if self._durable:
            sync_file(self.part)
        self.part.replace(self._path)

    def discard(self) -> None:
        """Delete the temporary file, if it hasn't been committed."""
        self.part.unlink(missing_ok=True)

    def __enter__(self) -> Path:
        return self.part

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.commit()
        finally:
            self.discard()


def create_part(folder: Path, prefix: str, suffix: str, mode: int = 0o600) -> Path:
    """Create an empty file with a random name.

    Raises:
        OSError: The folder can't be written.
    """
    part = folder / f"{prefix}{secrets.token_hex(6)}{suffix}"
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    return part


def replace_file(path: Path, pieces: Iterable[bytes], durable: bool = True) -> None:
    """Write a private file atomically.

    Args:
        path: Target, in an existing folder.
        pieces: Content of the file.
        durable: See `AtomicFile`.

    Raises:
        OSError: The disk is full or fails.
    """
    with AtomicFile(path, durable=durable) as part, part.open("wb") as file:
        file.writelines(pieces)


def replace_text(path: Path, text: str, durable: bool = True) -> None:
    """Write a private UTF-8 file atomically; missing folders are created, with mode 0700.

    Raises:
        OSError: The disk is full or fails.
    """
    make_own_folder(path.parent)
    replace_file(path, [text.encode()], durable)


def sync_file(path: Path) -> None:
    """Wait until a file's content is on the disk.

    Raises:
        OSError: The disk is full or fails.
    """
    with path.open("r+b") as file:  # Windows flushes only files that are open for writing
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until a folder's entries, such as a renamed file, are on the disk; POSIX only.

    Raises:
        OSError: The folder can't be opened, or the disk fails.
    """
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
