"""Compare files of an installed model with the Hub's hashes, and remove damaged ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from medusa_core.errors import Cancelled, CheckpointError, ModelError
from medusa_core.hub.boundary import Boundary
from medusa_core.hub.cache_folder import new_hash
from medusa_core.hub.convert.convert_source import INDEX_FILE
from medusa_core.hub.library.library_files import (
    Expected,
    expected_files,
    expected_of,
    files_of_model,
    first_hop,
    indexed_files,
    repo_of,
)
from medusa_core.i18n import tr
from medusa_core.system.files.safetensors_header import read_header

_READ_BYTES = 1 << 22


class FileState(Enum):
    """Result of checking a file."""

    WHOLE = "whole"
    DAMAGED = "damaged"
    MISSING = "missing"
    UNCHECKED = "unchecked"


@dataclass(frozen=True, slots=True)
class FileCheck:
    """Result of comparing a file with its expected hash.

    Attributes:
        name: Path in the model's folder.
        state: Result.
        reason: Why it is damaged, missing or unchecked; empty if it is whole.
        nbytes: Size; 0 if it is missing.
    """

    name: str
    state: FileState
    reason: str = ""
    nbytes: int = 0


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """Checks of a model.

    Attributes:
        folder: Folder of the model.
        files: Checks of all files.
    """

    folder: Path
    files: tuple[FileCheck, ...]

    def names(self, *states: FileState) -> tuple[str, ...]:
        """Return the files with a result."""
        return tuple(file.name for file in self.files if file.state in states)

    @property
    def to_fetch(self) -> tuple[str, ...]:
        """Names of files that must be downloaded again."""
        return self.names(FileState.DAMAGED, FileState.MISSING)

    @property
    def is_whole(self) -> bool:
        """Whether no file is damaged or missing."""
        return not self.to_fetch


@dataclass(frozen=True, slots=True)
class Repair:
    """Files that a repair removed, and the bytes freed.

    Attributes:
        to_fetch: Files that must be downloaded again.
        freed_bytes: Bytes of damaged files that were removed.
        left: Damaged files outside of the cache, which stay.
    """

    to_fetch: tuple[str, ...]
    freed_bytes: int
    left: tuple[str, ...]


def verify(
    folder: Path,
    on_progress: Callable[[int, int], None] | None = None,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> VerifyReport:
    """Read every file of a model and compare it with its hash; takes as long as the disk does.

    Args:
        folder: A snapshot of the cache, any other folder, or a GGUF file. Without hashes to compare
            with, only headers are checked, and the files are named as unchecked.
        on_progress: Called with bytes read and bytes to read.
        is_cancelled: Called every few megabytes.

    Raises:
        Cancelled: It was stopped.
        ModelError: A file can't be read.
    """
    paths = files_of_model(folder)
    folder = folder if folder.is_dir() else folder.parent
    listed = expected_files(folder)
    total = sum(path.stat().st_size for path in paths if path.exists())
    done = 0

    def count(nbytes: int) -> None:
        """Report progress and check for cancellation."""
        nonlocal done
        done += nbytes
        if is_cancelled():
            raise Cancelled(tr("The check was stopped."))
        if on_progress is not None:
            on_progress(done, total)

    checks = []
    for path in paths:
        name = path.relative_to(folder).as_posix()
        checks.append(_check(path, name, expected_of(path, listed.get(name)), count))
    return VerifyReport(folder, (*checks, *_absent(folder, {check.name for check in checks})))


def repair(report: VerifyReport) -> Repair:
    """Remove damaged files from the cache, so that the next download fetches them again.

    Revisions that share a damaged file lose it too: it is the same one. Nothing outside of the
    cache is touched.

    Raises:
        ModelError: A file can't be removed.
    """
    repo = repo_of(report.folder)
    damaged = report.names(FileState.DAMAGED)
    if repo is None:
        return Repair(report.to_fetch, 0, damaged)
    freed = 0
    left = []
    for name in damaged:
        removable = _removable(repo, report.folder / name)
        if not removable:
            left.append(name)
        freed += sum(_removed_bytes(Boundary(repo.parent), path) for path in removable)
    return Repair(report.to_fetch, freed, tuple(left))


def _removed_bytes(boundary: Boundary, path: Path) -> int:
    """Remove a file of the cache and return the freed bytes."""
    try:
        nbytes = 0 if path.is_symlink() else path.stat().st_size
        boundary.remove(path)
    except FileNotFoundError:
        return 0  # two names of one blob
    except OSError as error:
        raise ModelError(
            tr("{0} can't be removed: {1}.", path, error.strerror or error),
            "Close the programs that use it.",
        ) from error
    return nbytes


def _check(path: Path, name: str, expected: Expected, count: Callable[[int], None]) -> FileCheck:
    """Compare a file's size and hash with the expected ones."""
    if not path.exists():
        return FileCheck(name, FileState.MISSING, tr("its blob is gone"))
    size = path.stat().st_size
    if expected.nbytes not in (-1, size):
        count(size)
        reason = tr("{0:,} bytes instead of {1:,}", size, expected.nbytes)
        return FileCheck(name, FileState.DAMAGED, reason, size)
    if not expected.digest:
        count(size)
        return _check_header(path, name, size)
    found = _digest(path, size, expected.is_large, count)
    if found == expected.digest:
        return FileCheck(name, FileState.WHOLE, "", size)
    kind = "sha256" if expected.is_large else "git's sha1"
    reason = tr("{0} is {1}…, not {2}…", kind, found[:12], expected.digest[:12])
    return FileCheck(name, FileState.DAMAGED, reason, size)


def _check_header(path: Path, name: str, size: int) -> FileCheck:
    """Check the header of a file without a known hash."""
    if path.suffix == ".safetensors":
        try:
            read_header(path)
        except CheckpointError as error:
            return FileCheck(name, FileState.DAMAGED, error.message, size)
    return FileCheck(name, FileState.UNCHECKED, tr("nothing says which hash it should have"), size)


def _digest(path: Path, size: int, is_large: bool, count: Callable[[int], None]) -> str:
    """Compute the hash of a file."""
    digest = new_hash(is_large, size)
    try:
        with path.open("rb") as file:
            while chunk := file.read(_READ_BYTES):
                digest.update(chunk)
                count(len(chunk))
    except OSError as error:
        raise ModelError(
            tr("{0} can't be read: {1}.", path, error.strerror or error), "Check the disk."
        ) from error
    return digest.hexdigest()


def _absent(folder: Path, present: set[str]) -> list[FileCheck]:
    """Return checks of weight files that the index names and that don't exist."""
    if not (folder / INDEX_FILE).exists():
        return []
    try:
        names = indexed_files(folder)
    except CheckpointError:
        return []  # a damaged index is found by its hash
    return [
        FileCheck(name, FileState.MISSING, tr("{0} names it", INDEX_FILE))
        for name in names
        if name not in present
    ]


def _removable(repo: Path, path: Path) -> list[Path]:
    """Return the name, its blob and the linked file, as far as they are in the cache."""
    blob = first_hop(path)
    if blob != path and blob.parent.resolve() != (repo / "blobs").resolve():
        return []
    if not Boundary(repo.parent).holds(blob):
        return []
    return list({path: None, blob: None, blob.resolve(): None})
