"""Files of an installed model, and their expected hashes.

A snapshot of the shared cache links names to blobs that are called by their hash. huggingface_hub
may let a blob be a link once more, into a store that repositories share.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from medusa_core.errors import CheckpointError
from medusa_core.hub.convert.convert_source import INDEX_FILE
from medusa_core.models.checkpoints.weight_index import check_safetensors, read_weight_map
from medusa_core.system.files.gguf import names_of
from medusa_core.system.files.json_file import read_json

_SHA256 = re.compile(r"[0-9a-f]{64}")
_SHA1 = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class Expected:
    """Expected hash and size of a file.

    Attributes:
        digest: Hash in hexadecimal; empty if unknown.
        is_large: Whether it is the sha256 of an LFS file; otherwise git's sha1 of a blob.
        nbytes: Size; -1 if unknown.
    """

    digest: str = ""
    is_large: bool = False
    nbytes: int = -1


def repo_of(snapshot: Path) -> Path | None:
    """Return the repository folder of a snapshot in the cache; None for other folders."""
    is_cached = snapshot.parent.name == "snapshots" and "--" in snapshot.parent.parent.name
    return snapshot.parent.parent if is_cached else None


def first_hop(path: Path) -> Path:
    """Follow one link; other files are returned as they are."""
    if not path.is_symlink():
        return path
    return Path(os.path.normpath(path.parent / path.readlink()))


def files_in(folder: Path) -> list[Path]:
    """Return all files and links of a folder, sorted, without hidden folders."""
    return [
        path
        for path in sorted(folder.rglob("*"))
        if (path.is_symlink() or path.is_file())
        and not any(part.startswith(".") for part in path.relative_to(folder).parts[:-1])
    ]


def files_of_model(path: Path) -> list[Path]:
    """Return all files of a folder, or all parts of a GGUF file; some may be missing."""
    if path.is_dir():
        return files_in(path)
    return [path.with_name(name) for name in names_of(path.name)]


def indexed_files(folder: Path) -> list[str]:
    """Return the weight files that the index names.

    Raises:
        CheckpointError: It is damaged, or names files elsewhere.
    """
    names = sorted(set(read_weight_map(folder / INDEX_FILE).values()))
    check_safetensors(folder / INDEX_FILE, names)
    return names


def expected_files(snapshot: Path) -> dict[str, Expected]:
    """Return the expectations of the commit's listing by path; empty without one."""
    repo = repo_of(snapshot)
    path = None if repo is None else repo / "trees" / f"{snapshot.name}.json"
    if path is None or not path.exists():
        return {}
    try:
        files = read_json(path).get("files")
    except CheckpointError:
        return {}
    if not isinstance(files, dict):
        return {}
    return {str(name): _entry(raw) for name, raw in files.items() if isinstance(raw, dict)}


def expected_of(path: Path, listed: Expected | None) -> Expected:
    """Return a file's expectation: of the commit's listing, else from the name of its blob."""
    if listed is not None and listed.digest:
        return listed
    blob = first_hop(path)
    if path.is_symlink() and blob.parent.name == "blobs":
        if _SHA256.fullmatch(blob.name):
            return Expected(blob.name, True)
        if _SHA1.fullmatch(blob.name):
            return Expected(blob.name)
    return listed or Expected()


def _entry(raw: dict[str, object]) -> Expected:
    """Parse a file's hash and size in the commit's listing."""
    large, small = str(raw.get("lfs_sha256", "")), str(raw.get("blob_id", ""))
    if _SHA256.fullmatch(large):
        return Expected(large, True, _size(raw.get("lfs_size", raw.get("size"))))
    digest = small if _SHA1.fullmatch(small) else ""
    return Expected(digest, False, _size(raw.get("size")))


def _size(value: object) -> int:
    """Return a size in bytes; −1 if it is unknown."""
    return value if isinstance(value, int) and not isinstance(value, bool) else -1
