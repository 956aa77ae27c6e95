"""Remove models from the shared cache: what is removed, what others share, and what is freed.

Nothing outside of the cache is ever removed, whatever links say.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from medusa_core.errors import ModelError, RequestError
from medusa_core.hub.boundary import Boundary
from medusa_core.hub.cache_folder import read_ref
from medusa_core.hub.library.library_files import (
    files_in,
    files_of_model,
    first_hop,
)
from medusa_core.i18n import tr
from medusa_core.models.model_files import ModelFiles

if TYPE_CHECKING:
    from huggingface_hub import DeleteCacheStrategy

_PREFIX = "models--"


@dataclass(frozen=True, slots=True)
class Removal:
    """Files that a removal deletes, what it frees and what stays.

    Attributes:
        repo: Folder of the repository in the cache.
        revision: The commit; empty for the whole repository.
        folders: Folders to remove with their contents.
        files: Further files to remove.
        freed_bytes: Bytes that the removal frees.
        kept_bytes: Bytes of files that other revisions share.
        sharers: These revisions.
    """

    repo: Path
    revision: str
    folders: tuple[Path, ...]
    files: tuple[Path, ...]
    freed_bytes: int
    kept_bytes: int = 0
    sharers: tuple[str, ...] = ()


def plan_removal(cache_dir: Path, repo: Path, revision: str = "") -> Removal:
    """Plan the removal of a repository, or of one revision of it.

    Args:
        cache_dir: The shared cache.
        repo: A repository's folder in it.
        revision: A commit; empty for the whole repository, which the last commit removes, too.

    Raises:
        RequestError: That isn't in the cache.
    """
    _check_place(cache_dir, repo)
    snapshots = sorted(path for path in (repo / "snapshots").glob("*") if path.is_dir())
    gone = [path for path in snapshots if path.name == revision]
    if revision and not gone:
        raise RequestError(tr("{0} has no revision {1} in the cache.", repo.name, revision))
    others = [path for path in snapshots if path.name != revision] if revision else []
    if others:
        return _plan_revision(cache_dir, repo, gone[0], others)
    locks = cache_dir / ".locks" / repo.name
    folders = (repo, locks) if locks.is_dir() and not locks.is_symlink() else (repo,)
    freed = _freed(_walk_all(folders))
    store = _through_library(cache_dir, repo, "")
    return Removal(repo, "", folders, (), store.expected_freed_size if store else freed)


def plan_file_removal(cache_dir: Path, repo: Path, file: Path) -> Removal:
    """Plan the removal of a GGUF model; the last one removes the repository, too.

    Args:
        cache_dir: The shared cache.
        repo: A repository's folder in it.
        file: GGUF file in a snapshot, the first of a split one.

    Raises:
        RequestError: That isn't in the cache.
    """
    _check_place(cache_dir, repo)
    parts = [path for path in files_of_model(file) if _is_there(path)]
    others = [path for path in files_in(repo / "snapshots") if path not in parts]
    if not any(ModelFiles.find(path) for path in others):
        return plan_removal(cache_dir, repo)
    kept = {first_hop(path) for path in others}
    blobs = {first_hop(path) for path in parts} - kept
    going = sorted(path for path in blobs if path.parent == repo / "blobs" and _is_there(path))
    files = (*parts, *going)
    return Removal(repo, file.parent.name, (), files, _freed(files))


def remove(cache_dir: Path, removal: Removal) -> int:
    """Delete files from the cache.

    Args:
        cache_dir: The shared cache.
        removal: Files to delete, from `plan_removal`.

    Returns:
        Bytes freed.

    Raises:
        RequestError: A file isn't in the cache.
        ModelError: A file can't be removed; files removed before it stay removed.
    """
    _check_place(cache_dir, removal.repo)
    boundary = Boundary(cache_dir)
    for path in (*removal.files, *removal.folders):
        boundary.check(path)
    store = None
    if removal.folders:
        store = _through_library(cache_dir, removal.repo, removal.revision)
    try:
        if store is not None:
            store.execute()
        left = [folder for folder in removal.folders if folder.exists()]
        going = (*(path for path in removal.files if _is_there(path)), *_walk_all(left))
        freed = _freed(going) if store is None else store.expected_freed_size
        for path in removal.files:
            boundary.remove(path)
        for folder in left:
            boundary.remove_tree(folder)
    except OSError as error:
        raise ModelError(
            tr(
                "{0} can't be removed: {1}.",
                error.filename or removal.repo,
                error.strerror or error,
            ),
            "Close the programs that use it, and try again.",
        ) from error
    return freed


def _plan_revision(cache_dir: Path, repo: Path, gone: Path, others: list[Path]) -> Removal:
    """Plan the removal of a snapshot: its blobs that no other snapshot links to."""
    mine = {first_hop(path) for path in files_in(gone)}
    theirs = {other.name: {first_hop(path) for path in files_in(other)} for other in others}
    kept = set().union(*theirs.values())
    blobs = repo / "blobs"
    # A link may point anywhere: only a direct child of blobs/ is removed with it.
    going = sorted(path for path in mine - kept if path.parent == blobs and _is_there(path))
    refs = [path for path in _walk(repo / "refs") if read_ref(path) == gone.name]
    tree = repo / "trees" / f"{gone.name}.json"
    files = (*going, *refs, *((tree,) if tree.exists() else ()))
    shared = [path for path in mine & kept if path.exists()]
    store = _through_library(cache_dir, repo, gone.name)
    return Removal(
        repo,
        gone.name,
        (gone,),
        files,
        store.expected_freed_size if store else _freed((*files, *_walk(gone))),
        sum(path.stat().st_size for path in shared),
        tuple(name for name, blobs_of in theirs.items() if blobs_of & mine),
    )


def _check_place(cache_dir: Path, repo: Path) -> None:
    """Refuse folders that aren't repositories of the cache."""
    is_inside = repo.parent.resolve() == cache_dir.resolve() and repo.name.startswith(_PREFIX)
    if not is_inside or repo.is_symlink() or not repo.is_dir():
        raise RequestError(
            tr("{0} isn't in the cache {1}.", repo, cache_dir),
            "Only what lies in the cache is removed; remove other folders yourself.",
        )


def _walk(folder: Path) -> Iterator[Path]:
    """Yield all files and links of a folder without following links."""
    for root, folders, files in os.walk(folder):
        names = [*files, *(name for name in folders if (Path(root) / name).is_symlink())]
        yield from (Path(root) / name for name in names)


def _walk_all(folders: Iterable[Path]) -> Iterator[Path]:
    """Yield all files and links of several folders."""
    for folder in folders:
        yield from _walk(folder)


def _is_there(path: Path) -> bool:
    """Whether a file or a dangling link exists."""
    return path.is_symlink() or path.exists()


def _freed(paths: Iterable[Path]) -> int:
    """Return the freed bytes: none for links, or for files with further hard links."""
    stats = {path: path.lstat() for path in paths}
    return sum(
        stat.st_size for path, stat in stats.items() if not path.is_symlink() and stat.st_nlink <= 1
    )


def _through_library(cache_dir: Path, repo: Path, revision: str) -> DeleteCacheStrategy | None:
    """Plan a removal by huggingface_hub if blobs are in its shared store.

    Only it knows who else uses a file there. None where the store isn't used.
    """
    if not any(path.is_symlink() for path in (repo / "blobs").glob("*")):
        return None
    from huggingface_hub import scan_cache_dir

    cache = scan_cache_dir(cache_dir)
    known = frozenset(one for one in cache.repos if one.repo_path.resolve() == repo.resolve())
    commits = [
        one.commit_hash
        for found in known
        for one in found.revisions
        if revision in ("", one.commit_hash)
    ]
    # It searches commits in all repositories, and copies of a repository share commits.
    strategy = replace(cache, repos=known).delete_revisions(*commits)
    boundary = Boundary(cache_dir)
    for path in (*strategy.blobs, *strategy.refs, *strategy.snapshots, *strategy.repos):
        boundary.check(path)
    return strategy
