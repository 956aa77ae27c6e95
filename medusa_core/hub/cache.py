"""The cache that all programs share, in huggingface_hub's layout.

`models--owner--name/` holds `blobs/` (files by hash), `snapshots/<commit>/` (links to them by
name), `refs/` (commits by revision) and `trees/` (what a commit holds).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from medusa_core.errors import DiskFullError
from medusa_core.hub.listing import Listing, RemoteFile

_READ_BYTES = 1 << 22


class RepoCache:
    """One repository's part of the cache.

    Attributes:
        folder: Where it is.
    """

    def __init__(self, cache_dir: Path, repo: str) -> None:
        self.folder = cache_dir / f"models--{repo.replace('/', '--')}"

    def blob(self, file: RemoteFile) -> Path:
        """Where a file's bytes belong."""
        return self.folder / "blobs" / file.blob_id

    def part(self, file: RemoteFile) -> Path:
        """Where they gather; named by their hash, so that nothing else can be gone on with."""
        return self.folder / "blobs" / f"{file.blob_id}.part"

    def snapshot(self, sha: str) -> Path:
        """The folder of a commit."""
        return self.folder / "snapshots" / sha

    def prepare(self) -> None:
        """Make the folder for blobs.

        Raises:
            DiskFullError: The disk has no room, or the folder can't be written.
        """
        try:
            (self.folder / "blobs").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DiskFullError(
                f"{self.folder} can't be written: {error.strerror}.", "Choose another folder."
            ) from error

    def place(self, listing: Listing) -> Path:
        """Let a commit's needed files appear under their names; returns its folder."""
        snapshot = self.snapshot(listing.sha)
        for file in listing.needed:
            _link(self.blob(file), snapshot / file.path)
        tree = {"format_version": 1, "files": {f.path: _tree_entry(f) for f in listing.needed}}
        _write(self.folder / "trees" / f"{listing.sha}.json", json.dumps(tree))
        if listing.revision != listing.sha:
            _write(self.folder / "refs" / listing.revision, listing.sha)
        return snapshot

    def forget_parts(self, listing: Listing) -> None:
        """Remove what was fetched of files that aren't whole."""
        for file in listing.needed:
            self.part(file).unlink(missing_ok=True)


def find_snapshot(cache_dir: Path, repo: str, revision: str = "main") -> Path | None:
    """The folder of a repository's commit in the cache, if it is there."""
    folder = RepoCache(cache_dir, repo).folder
    ref = folder / "refs" / revision
    sha = ref.read_text(encoding="utf-8").strip() if ref.is_file() else revision
    snapshot = folder / "snapshots" / sha
    return snapshot if snapshot.is_dir() else None


def file_hash(path: Path, is_large: bool, check: Callable[[int], None] = lambda _: None) -> str:
    """The hash that names a blob: sha256, or git's sha1.

    Args:
        path: The file.
        is_large: Take sha256.
        check: Told of every piece that was read; may raise.
    """
    digest = new_hash(is_large, path.stat().st_size)
    with path.open("rb") as file:
        while chunk := file.read(_READ_BYTES):
            digest.update(chunk)
            check(len(chunk))
    return digest.hexdigest()


def new_hash(is_large: bool, size: int) -> hashlib._Hash:
    """A hash to be fed with a file's bytes."""
    if is_large:
        return hashlib.sha256()
    digest = hashlib.sha1(usedforsecurity=False)
    digest.update(f"blob {size}\0".encode())
    return digest


def missing_bytes(folder: Path, wanted: int, floor: int) -> int:
    """Bytes that the disk lacks to take so many and keep its floor; 0 if none."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    return max(0, wanted + floor - shutil.disk_usage(existing).free)


def _link(blob: Path, name: Path) -> None:
    name.parent.mkdir(parents=True, exist_ok=True)
    target = os.path.relpath(blob, name.parent)
    if name.is_symlink() and os.readlink(name) == target:  # noqa: PTH115 - as it is written
        return
    name.unlink(missing_ok=True)
    try:
        name.symlink_to(target)
    except OSError:
        # Windows without the right to make links: the library keeps copies there, too.
        shutil.copyfile(blob, name)


def _tree_entry(file: RemoteFile) -> dict[str, str | int]:
    entry: dict[str, str | int] = {"size": file.size, "blob_id": file.git_id}
    if file.is_large:
        entry |= {"lfs_sha256": file.blob_id, "lfs_size": file.size}
    return entry


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
