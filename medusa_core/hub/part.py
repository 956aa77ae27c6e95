"""The bytes of a file that are here already, and how they become a blob.

What counts is the disk: its size says where to go on, and what is read back from it is what is
hashed and moved into place.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from types import TracebackType

from medusa_core.hub.boundary import is_same_file
from medusa_core.hub.cache_folder import RepoCache, open_file_hash
from medusa_core.hub.listing import RemoteFile
from medusa_core.hub.refusals import unwritable


class PartialFile:
    """A file as it grows. Only who holds the blob's lock may open it.

    Attributes:
        length: How many of its bytes are here; never more than were declared.
        num_restarts: How often it was begun anew.
    """

    def __init__(self, cache: RepoCache, file: RemoteFile) -> None:
        """Go on with what an earlier download left, or begin.

        Raises:
            DiskFullError: It can't be written.
            RequestError: It leads out of the cache.
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()

    @property
    def missing(self) -> int:
        """Bytes that aren't here."""
        return self._file.size - self.length

    def append(self, chunk: bytes) -> None:
        """Write bytes behind those that are here, all of them.

        Raises:
            DiskFullError: The disk doesn't take them.
        """
        assert len(chunk) <= self.missing
        left = memoryview(chunk)
        try:
            while left:
                # A disk that is full takes a few bytes, and says how many, before it refuses.
                count = self._open.write(left)
                if not count:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                left = left[count:]
                self.length += count
        except OSError as error:
            raise unwritable(self._path.parent, error) from error

    def forget(self) -> None:
        """Begin anew.

        Raises:
            DiskFullError: The disk doesn't let us.
        """
        try:
            self._open.truncate(0)
            self._open.seek(0)
        except OSError as error:
            raise unwritable(self._path.parent, error) from error
        self.length = 0
        self.num_restarts += 1

    def become_blob(self, check: Callable[[int], None]) -> bool:
        """Read it back from the disk, and move it into place if it is right.

        Args:
            check: Called with every piece that was read; may raise.

        Returns:
            Is it? Then nothing more can be done with the part.

        Raises:
            DiskFullError: The disk doesn't let us.
            RequestError: Its place leads out of the cache.
        """
        boundary, blob = self._cache.boundary, self._cache.blob(self._file)
        try:
            os.fsync(self._open.fileno())
            digest = open_file_hash(self._open, self._file.is_large, check)
            self._open.seek(0, os.SEEK_END)
            is_ours = is_same_file(self._path, self._open.fileno())
            if digest != self._file.blob_id or not is_ours:
                return False
            self._open.close()  # Windows moves no open file
            boundary.move(self._path, blob)
        except OSError as error:
            raise unwritable(self._path.parent, error) from error
        return True
