"""Partial downloads: a file that grows until it becomes a blob of the cache.

The file's size says where to resume; the hash is computed from what is read back from the disk.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

from medusa_core.hub.boundary import is_same_file
from medusa_core.hub.cache_folder import RepoCache, open_file_hash
from medusa_core.hub.listing import RemoteFile
from medusa_core.hub.refusals import unwritable


class PartialFile:
    """A partial download, opened only under the blob's lock.

    Attributes:
        length: Bytes on the disk; at most the declared size.
        num_restarts: Number of restarts from the first byte.
    """

    def __init__(self, cache: RepoCache, file: RemoteFile) -> None:
        """Open the part of an earlier download, or create one.

        Raises:
            DiskFullError: It can't be written.
            RequestError: Its path leaves the cache.
        """
        self._cache = cache
        self._file = file
        self._path = cache.part(file)
        try:
            self._open = os.fdopen(cache.boundary.open_regular(self._path), "r+b", buffering=0)
        except OSError as error:
            raise unwritable(self._path.parent, error) from error
        self.num_restarts = 0
        self.length = self._open.seek(0, os.SEEK_END)
        if self.length > file.size:
            self.forget()

    def __enter__(self) -> PartialFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @property
    def missing(self) -> int:
        """Bytes that are still to fetch."""
        return self._file.size - self.length

    def append(self, chunk: bytes) -> None:
        """Append all bytes of a chunk.

        Raises:
            DiskFullError: The disk is full or refuses them.
        """
        assert len(chunk) <= self.missing
        left = memoryview(chunk)
        try:
            while left:
                # A full disk writes a few bytes, and says how many, before it fails.
                count = self._open.write(left)
                if not count:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                left = left[count:]
                self.length += count
        except OSError as error:
            raise unwritable(self._path.parent, error) from error

    def forget(self) -> None:
        """Truncate the part to restart from the first byte.

        Raises:
            DiskFullError: The disk refuses.
        """
        try:
            self._open.truncate(0)
            self._open.seek(0)
        except OSError as error:
            raise unwritable(self._path.parent, error) from error
        self.length = 0
        self.num_restarts += 1

    def become_blob(self, check: Callable[[int], None]) -> bool:
        """Hash the file on the disk, and move it into place if the hash is right.

        Args:
            check: Called after every piece that was read; may raise.

        Returns:
            Whether it was moved; the part can't be used any more then.

        Raises:
            DiskFullError: The disk refuses.
            RequestError: The blob's path leaves the cache.
        """
        boundary, blob = self._cache.boundary, self._cache.blob(self._file)
        try:
            os.fsync(self._open.fileno())
            digest = open_file_hash(self._open, self._file.is_large, check)
            self._open.seek(0, os.SEEK_END)
            is_unchanged = is_same_file(self._path, self._open.fileno())
            if digest != self._file.blob_id or not is_unchanged:
                return False
            self._open.close()  # Windows can't move an open file
            boundary.move(self._path, blob)
        except OSError as error:
            raise unwritable(self._path.parent, error) from error
        return True
