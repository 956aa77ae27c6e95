"""The cache that programs share, in huggingface_hub's layout.

`models--owner--name/` holds `blobs/` (files by hash), `snapshots/<commit>/` (links to them by
name), `refs/` (commits by revision) and `trees/` (listings by commit).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from medusa_core.errors import CheckpointError
from medusa_core.hub.blob_lock import hold_if_free
from medusa_core.hub.boundary import Boundary, check_repo, is_id, is_repo, is_safe_path
from medusa_core.hub.listing import Listing, RemoteFile
from medusa_core.hub.refusals import unwritable
from medusa_core.system.files.json_file import read_json

_READ_BYTES = 1 << 22
_MOST_REF_BYTES = 256
_PART = ".part"


class RepoCache:
    """A repository's folder in the Hugging Face cache.

    Attributes:
        folder: Path of the folder.
        boundary: Writes and removes its files, and refuses paths outside the cache.
    """

    def __init__(self, cache_dir: Path, repo: str) -> None:
        check_repo(repo)
        self.boundary = Boundary(cache_dir)
        self.folder = cache_dir / f"models--{repo.replace('/', '--')}"

    def blob(self, file: RemoteFile) -> Path:
        """Return the path of a file's blob."""
        return self.folder / "blobs" / file.blob_id

    def part(self, file: RemoteFile) -> Path:
        """Return the path of a partial download, named by the hash so that only it is resumed."""
        return self.folder / "blobs" / f"{file.blob_id}{_PART}"

    def lacking_bytes(self, file: RemoteFile) -> int:
        """Return the bytes of a file that are still to download."""
        if self.blob(file).exists():
            return 0
        part = self.part(file)
        have = part.lstat().st_size if part.is_file() else 0
        return max(0, file.size - have)

    def lock(self, name: str) -> Path:
        """Return the lock file of a blob, or of a commit's snapshot."""
        return self.folder.parent / ".locks" / self.folder.name / f"{name}.lock"

    def snapshot(self, sha: str) -> Path:
        """Return the snapshot folder of a commit."""
        return self.folder / "snapshots" / sha

    def prepare(self) -> None:
        """Create the folder of blobs.

        Raises:
            DiskFullError: The disk has no room, or the folder can't be written.
            RequestError: Its path leaves the cache.
        """
        try:
            self.boundary.make_folder(self.folder / "blobs")
        except OSError as error:
            raise unwritable(self.folder, error) from error

    def place(self, listing: Listing) -> Path:
        """Link a commit's needed files in its snapshot folder, and return that.

        Raises:
            DiskFullError: The disk has no room, or the folder can't be written.
            RequestError: A path is outside the cache.
        """
        snapshot = self.snapshot(listing.sha)
        known = (
            self._listed(listing.sha) if listing.file else {}
        )  # other files of the commit may be there already
        files = known | {file.path: _tree_entry(file) for file in listing.needed}
        tree = {"format_version": 1, "files": files}
        try:
            for file in listing.needed:
                self.boundary.link(self.blob(file), snapshot / file.path)
            trees, refs = self.folder / "trees", self.folder / "refs"
            self.boundary.write_text(trees / f"{listing.sha}.json", json.dumps(tree))
            if listing.revision != listing.sha:
                self.boundary.write_text(refs / listing.revision, listing.sha)
        except OSError as error:
            raise unwritable(self.folder, error) from error
        return snapshot

    def _listed(self, sha: str) -> dict[str, object]:
        """Return the files of a commit that earlier downloads listed."""
        try:
            files = read_json(self.folder / "trees" / f"{sha}.json").get("files")
        except CheckpointError:
            return {}
        return files if isinstance(files, dict) else {}

    def remove_partial_files(self) -> None:
        """Remove partial downloads that no other process is writing.

        Raises:
            DiskFullError: The folder can't be written.
            RequestError: A path is outside the cache.
        """
        try:
            for part in self.folder.glob(f"blobs/*{_PART}"):
                with hold_if_free(self.boundary, self.lock(part.stem)) as is_mine:
                    if is_mine:
                        self.boundary.remove(part)
        except OSError as error:
            raise unwritable(self.folder, error) from error


def find_snapshot(cache_dir: Path, repo: str, revision: str = "main") -> Path | None:
    """Return the snapshot folder of a repository, if it is in the cache."""
    if not is_repo(repo) or not is_safe_path(revision):
        return None
    folder = RepoCache(cache_dir, repo).folder
    sha = read_ref(folder / "refs" / revision) or revision
    snapshot = folder / "snapshots" / sha
    return snapshot if is_id(sha) and snapshot.is_dir() else None


def read_ref(path: Path) -> str:
    """Return the commit in a ref file; empty if it is invalid."""
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            text = file.read(_MOST_REF_BYTES).decode(errors="replace").strip()
    except OSError:
        return ""
    return text if is_id(text) else ""


def file_hash(path: Path, is_large: bool, check: Callable[[int], None] = lambda _: None) -> str:
    """Compute the hash that names a blob: sha256, or git's sha1.

    Args:
        is_large: Whether the hash is sha256 of an LFS file instead of git's sha1.
        check: Called with every piece that was read; may raise.
    """
    with path.open("rb") as file:
        return open_file_hash(file, is_large, check)


def open_file_hash(
    file: BinaryIO, is_large: bool, check: Callable[[int], None] = lambda _: None
) -> str:
    """Compute the hash of an open file from its first byte; see `file_hash`."""
    digest = new_hash(is_large, file.seek(0, os.SEEK_END))
    file.seek(0)
    while chunk := file.read(_READ_BYTES):
        digest.update(chunk)
        check(len(chunk))
    return digest.hexdigest()


def new_hash(is_large: bool, size: int) -> hashlib._Hash:
    """Create the hash object of a file of `size` bytes: SHA-256 for LFS, else git's."""
    if is_large:
        return hashlib.sha256()
    digest = hashlib.sha1(usedforsecurity=False)
    digest.update(f"blob {size}\0".encode())
    return digest


def missing_bytes(folder: Path, num_bytes: int, floor: int) -> int:
    """Bytes missing on the disk to store `num_bytes` and keep `floor` free; 0 if there is room."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    return max(0, num_bytes + floor - shutil.disk_usage(existing).free)


def _tree_entry(file: RemoteFile) -> dict[str, str | int]:
    """Return a file's entry in the commit's listing, as huggingface_hub stores it."""
    entry: dict[str, str | int] = {"size": file.size, "blob_id": file.git_id}
    if file.is_large:
        entry |= {"lfs_sha256": file.blob_id, "lfs_size": file.size}
    return entry
