"""A shared cache made by hand, in huggingface_hub's layout."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from medusa_core.hub.library.installed import repo_folder
from tests.support.models.tiny import TinySpec

SPEC = TinySpec()
MODEL, HEADS = "org/tiny", "org/tiny-heads"
SHA = "a" * 40
OTHER_SHA = "b" * 40


def read_files(folder: Path) -> dict[str, bytes]:
    """Return all files of a folder by name."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def blob_id(data: bytes, is_large: bool) -> str:
    """Return the cache's name of a file, computed independently of the code under test."""
    if is_large:
        return hashlib.sha256(data).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def add_revision(
    cache: Path,
    repo: str,
    files: Mapping[str, bytes],
    sha: str = SHA,
    ref: str = "main",
    has_tree: bool = True,
    has_links: bool = True,
) -> Path:
    """Install a revision; returns its snapshot."""
    folder = cache / f"models--{repo.replace('/', '--')}"
    snapshot = folder / "snapshots" / sha
    for part in ("blobs", "refs", "trees"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    tree: dict[str, dict[str, str | int]] = {}
    for name, data in files.items():
        is_large = name.endswith((".safetensors", ".bin", ".pt"))
        digest = blob_id(data, is_large)
        path = snapshot / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if has_links:
            blob = folder / "blobs" / digest
            blob.write_bytes(data)
            path.symlink_to(os.path.relpath(blob, path.parent))
        else:
            path.write_bytes(data)
        tree[name] = {"size": len(data), "blob_id": digest if not is_large else "c" * 40}
        if is_large:
            tree[name] |= {"lfs_sha256": digest, "lfs_size": len(data)}
    if has_tree:
        listed = {"format_version": 1, "files": tree}
        (folder / "trees" / f"{sha}.json").write_text(json.dumps(listed))
    if ref:
        (folder / "refs" / ref).write_text(sha)
    return snapshot


def disk_bytes(folder: Path) -> int:
    """Bytes of all regular files below a folder, as the system counts them."""
    return sum(
        (Path(root) / name).lstat().st_size
        for root, _, names in os.walk(folder)
        for name in names
        if not (Path(root) / name).is_symlink()
    )


def tree_of(folder: Path) -> set[str]:
    """Return every path below a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def snapshot_of(cache: Path, repo: str = MODEL, sha: str = SHA) -> Path:
    """The folder of a revision."""
    return repo_folder(cache, repo) / "snapshots" / sha


def flip_a_byte(path: Path, place: int = -1) -> None:
    """Damage a file."""
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def truncate(snapshot: Path) -> None:
    """Remove the last byte of the weights."""
    path = (snapshot / "model.safetensors").resolve()
    os.truncate(path, path.stat().st_size - 1)
