"""Text files of a folder that the user named, from which drafts are looked up.

A thread lists the folder and reads its files, at first and after they have changed; answers use
what has been read so far. Only regular files inside of the folder are read: no links are followed,
and hidden files and folders are left out, as are files that aren't UTF-8 text. Nothing is stored.
"""

from __future__ import annotations

import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from medusa_core.models.datastore.suffix_array import SuffixArray

log = logging.getLogger(__name__)

MAX_TOKENS = 1 << 19  # 4 MB in memory
_MAX_FILES = 4096
_MAX_ENTRIES = 1 << 16  # files and folders that are listed
_MAX_FILE_BYTES = 2 << 20  # larger ones are data
_MAX_READ_S = 60.0
_MIN_INTERVAL_S = 5.0  # between two listings
# Longer parts would keep other threads waiting; shorter ones would replace the prompts in the
# tokenizer's cache.
_PART_CHARS = 8192
_BREATH_S = 0.002  # after each part, so that an answer isn't slowed


class _File(NamedTuple):
    """A file as it was listed, to notice changes."""

    path: Path
    size: int
    modified_ns: int


class FolderTexts:
    """The text files of a folder as one suffix array, kept up to date in the background."""

    def __init__(
        self,
        folder: Path,
        encode: Callable[[str], Sequence[int]],
        vocab_size: int,
        max_tokens: int = MAX_TOKENS,
    ) -> None:
        """Start to read the folder.

        Args:
            folder: The folder. If it is missing or unreadable, there are no texts.
            encode: Tokenizes a text.
            vocab_size: Size of the model's vocabulary.
            max_tokens: Number of tokens that are read.
        """
        self.folder = folder
        self._encode, self._vocab_size, self._max_tokens = encode, vocab_size, max_tokens
        self._array = SuffixArray()  # replaced as a whole
        self._files: tuple[_File, ...] = ()
        self._listed = -_MIN_INTERVAL_S
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self.refresh()

    @property
    def array(self) -> SuffixArray:
        """Suffix array of the texts read so far; changed files give a new array."""
        return self._array

    def refresh(self) -> None:
        """Look for changes in the background, unless that was done a moment ago; never waits."""
        is_reading = self._thread is not None and self._thread.is_alive()
        if is_reading or self._ended.is_set():
            return
        if time.monotonic() - self._listed >= _MIN_INTERVAL_S:
            self._listed = time.monotonic()
            self._thread = threading.Thread(target=self._read, name="suffix-folder", daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Wait for the thread that reads the files, if there is one."""
        if self._thread is not None:
            self._thread.join()

    def close(self) -> None:
        """Stop reading, and forget the texts."""
        self._ended.set()
        self.wait()
        self._array = SuffixArray()

    def _read(self) -> None:
        """Read all files if one has changed."""
        try:
            files = tuple(list_files(self.folder))
            if files == self._files:
                return
            array = self._read_files(files)
        except OSError as error:
            log.warning("%s can't be read: %s", self.folder, error)
            files, array = (), SuffixArray()
        if not self._ended.is_set():
            self._files, self._array = files, array
            log.info("%d tokens of %d files in %s", len(array), len(files), self.folder)

    def _read_files(self, files: Sequence[_File]) -> SuffixArray:
        """Tokenize files until there are too many tokens, or it takes too long."""
        array, until = SuffixArray(), time.monotonic() + _MAX_READ_S
        for file in files:
            begins = True
            for part in _parts(_text_of(file.path)):
                token_ids = self._encode(part)[: self._max_tokens - len(array)]
                if token_ids and max(token_ids) < self._vocab_size:
                    array.add_text(token_ids, 0) if begins else array.extend(token_ids)
                    begins = False
                if self._ended.wait(_BREATH_S):
                    return array
            if len(array) >= self._max_tokens or time.monotonic() > until:
                log.info("%s and what follows it is left out", file.path)
                break
        array.sort_new()
        return array


def list_files(folder: Path) -> Iterator[_File]:
    """Yield the files that may be text, in the order of their paths.

    Subfolders that can't be listed are left out, as are files that are removed meanwhile.

    Raises:
        OSError: The folder itself can't be listed.
    """
    folders, num_entries, num_found = [folder], 0, 0
    while folders:
        outer = folders.pop()
        try:
            with os.scandir(outer) as entries:
                listed = list(islice(entries, _MAX_ENTRIES - num_entries))
        except OSError as error:
            if outer == folder:
                raise
            log.info("%s can't be listed: %s", outer, error)
            continue
        num_entries += len(listed)
        inner = []
        for entry in sorted(listed, key=lambda entry: entry.name):
            if entry.name.startswith(".") or entry.is_symlink():
                continue
            if entry.is_dir(follow_symlinks=False):
                inner.append(Path(entry.path))
            elif (file := _listed_file(entry)) is not None:
                yield file
                num_found += 1
                if num_found == _MAX_FILES:
                    return
        folders += reversed(inner)


def _listed_file(entry: os.DirEntry[str]) -> _File | None:
    """Return a file that may be text; None if it isn't one, or was removed."""
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode) or not 0 < status.st_size <= _MAX_FILE_BYTES:
        return None
    return _File(Path(entry.path), status.st_size, status.st_mtime_ns)


def _open_listed(path: str, flags: int) -> int:
    """Open a file that may have been replaced: follow no link, and wait for no writer of a FIFO."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _text_of(path: Path) -> str:
    """Return the text of a file; empty if it isn't UTF-8 text, or was removed."""
    try:
        with open(path, "rb", opener=_open_listed) as opened:
            if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
                return ""
            data = opened.read(_MAX_FILE_BYTES)
        return "" if b"\0" in data else data.decode().replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError):
        return ""


def _parts(text: str) -> Iterator[str]:
    """Split a text at line ends where possible."""
    begin = 0
    while begin < len(text):
        end = begin + _PART_CHARS
        if end < len(text):
            end = text.rfind("\n", begin + _PART_CHARS // 2, end) + 1 or end
        yield text[begin:end]
        begin = end
