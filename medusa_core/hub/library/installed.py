"""Models and heads on this computer: in the shared cache, and in folders the user added."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from medusa_core.errors import RequestError
from medusa_core.hub.cache_folder import read_ref
from medusa_core.hub.convert.convert_source import (
    HEADS_FILES,
    INDEX_FILE,
    MODEL_FILE,
    PICKLED_HEADS,
)
from medusa_core.hub.library.library_files import (
    expected_files,
    files_in,
    files_of_model,
    repo_of,
)
from medusa_core.hub.library.library_folder import (
    Contents,
    ContentsKind,
    look_into,
)
from medusa_core.hub.library.other_programs import ForeignModel
from medusa_core.hub.library.pairing import (
    Pairing,
    pair,
)
from medusa_core.models.model_files import ModelFiles
from medusa_core.system.files.gguf import is_first

_PREFIX = "models--"
_UNFINISHED = (".part", ".incomplete")
_MODEL_FILES = (*HEADS_FILES, INDEX_FILE, MODEL_FILE, "config.json")


@dataclass(frozen=True, slots=True)
class InstalledRevision:
    """One revision of a model or of heads, or a folder with one.

    Attributes:
        name: Repository, or the folder's name.
        path: Folder with its files.
        revision: The commit; empty for a folder outside of the cache.
        refs: Branches and tags that name the commit.
        contents: What it is, and what it lacks.
        nbytes: Its bytes on disk; what revisions share counts for each.
        is_cached: It lies in the shared cache, from where it can be removed.
        owner: The other program that it belongs to; empty for none.
        title: What people are shown: a GGUF file's name of its model, else the name.
    """

    name: str
    path: Path
    revision: str
    refs: tuple[str, ...]
    contents: Contents
    nbytes: int
    is_cached: bool
    owner: str = ""
    title: str = ""

    @property
    def is_complete(self) -> bool:
        """Nothing is missing that loading it takes."""
        return not self.contents.problems


def list_installed(
    cache_dir: Path, folders: Iterable[Path] = (), others: Iterable[ForeignModel] = ()
) -> tuple[InstalledRevision, ...]:
    """All that is installed, by name.

    Args:
        cache_dir: The shared cache, in huggingface_hub's layout.
        folders: Models, or folders of models, that lie elsewhere.
        others: What belongs to other programs.

    Returns:
        Every revision and every folder. Damaged and unfinished ones are among them, with what they
        lack.
    """
    found = [one for repo in _repos(cache_dir) for one in _revisions(repo)]
    seen: set[Path] = set()
    for folder in folders:
        for path in _models_in(folder):
            if path.resolve() not in seen:
                seen.add(path.resolve())
                found.append(at_folder(path))
    for one in others:
        if one.path.resolve() not in seen:
            seen.add(one.path.resolve())
            shown = _installed(one.name, one.path, "", (), False)
            found.append(replace(shown, owner=one.owner))
    titled = _with_distinct_titles(found)
    return tuple(sorted(titled, key=lambda one: (one.name.casefold(), one.revision)))


def find_installed(
    installed: Iterable[InstalledRevision], name: str, revision: str = ""
) -> InstalledRevision:
    """The one of that name, or of that folder.

    Args:
        installed: From `list_installed`.
        name: Repository, name or path of a folder; or a title.
        revision: Branch, tag, or the beginning of a commit; may be empty if there is but one.

    Raises:
        RequestError: There is none, or more than one.
    """
    installed = tuple(installed)
    named = [
        one
        for one in installed
        if name.casefold() == one.name.casefold() or Path(name).absolute() == one.path.absolute()
    ]
    named = named or [one for one in installed if name.casefold() == one.title.casefold()]
    fitting = [one for one in named if revision in one.refs or one.revision.startswith(revision)]
    if len(fitting) > 1 and not revision:
        # What programs get that ask for no revision.
        fitting = [one for one in fitting if "main" in one.refs] or fitting
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        known = ", ".join(sorted({one.name for one in installed})) or "nothing"
        at = f" at {revision}" if revision else ""
        raise RequestError(f"{name}{at} isn't installed.", f"Installed are: {known}.")
    listed = ", ".join(one.revision[:12] for one in fitting)
    raise RequestError(f"{name} is installed in several revisions.", f"Choose one: {listed}.")


def pairings(installed: Iterable[InstalledRevision]) -> tuple[Pairing, ...]:
    """Every installed model with all installed heads, and why each fits or doesn't."""
    contents = [one.contents for one in installed]
    return pair(
        [one.target for one in contents if one.target is not None],
        [one.heads for one in contents if one.heads is not None],
    )


def repo_folder(cache_dir: Path, name: str) -> Path:
    """Where the cache keeps a repository."""
    return cache_dir / (_PREFIX + name.replace("/", "--"))


def _with_distinct_titles(found: Sequence[InstalledRevision]) -> list[InstalledRevision]:
    """Tell files of one model apart: by their mix of types, else by their own names."""
    by_type = [
        replace(one, title=f"{one.title} {one.contents.quantization}".strip()) if is_shared else one
        for one, is_shared in _with_shared_titles(found)
    ]
    return [
        replace(one, title=one.name) if is_shared else one
        for one, is_shared in _with_shared_titles(by_type)
    ]


def _with_shared_titles(
    found: Sequence[InstalledRevision],
) -> list[tuple[InstalledRevision, bool]]:
    counts = Counter(one.title.casefold() for one in found)
    return [(one, bool(one.contents.title) and counts[one.title.casefold()] > 1) for one in found]


def size_of(folder: Path) -> int:
    """Bytes on disk of the files below a folder, or of a GGUF file, each once, links followed."""
    sizes = {}
    for path in files_of_model(folder):
        if path.exists():
            stat = path.stat()
            sizes[stat.st_dev, stat.st_ino] = stat.st_size
    return sum(sizes.values())


def _repos(cache_dir: Path) -> Iterator[Path]:
    if cache_dir.is_dir():
        for path in sorted(cache_dir.glob(f"{_PREFIX}*")):
            if path.is_dir() and not path.is_symlink():
                yield path


def _revisions(repo: Path) -> Iterator[InstalledRevision]:
    name = repo.name.removeprefix(_PREFIX).replace("--", "/")
    refs = _refs(repo)
    snapshots = repo / "snapshots"
    found = [path for path in sorted(snapshots.glob("*")) if path.is_dir()]
    for path in found:
        named = tuple(sorted(ref for ref, commit in refs.items() if commit == path.name))
        for file in _ggufs_in(path):
            yield _installed(f"{name}/{file.stem}", file, path.name, named, True)
        if not _ggufs_in(path):
            yield _installed(name, path, path.name, named, True)
    if not found:
        unfinished = any(path.suffix in _UNFINISHED for path in repo.glob("blobs/*"))
        why = "a download that isn't finished" if unfinished else "no files"
        nbytes = sum(path.lstat().st_size for path in repo.glob("blobs/*"))
        yield InstalledRevision(
            name,
            repo,
            "",
            (),
            Contents(ContentsKind.UNKNOWN, "", (why,)),
            nbytes,
            True,
            title=name,
        )


def _refs(repo: Path) -> dict[str, str]:
    folder = repo / "refs"
    named = {
        path.relative_to(folder).as_posix(): read_ref(path) for path in sorted(folder.rglob("*"))
    }
    return {name: commit for name, commit in named.items() if commit}


def _models_in(folder: Path) -> Iterator[Path]:
    """The folder or file itself, or the models right below it."""
    if not folder.is_dir():
        if ModelFiles.find(folder) is not None:
            yield folder
        return
    if ggufs := _ggufs_in(folder):
        yield from ggufs
        return
    if _is_model(folder):
        yield folder
        return
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.name.startswith("."):
            if ggufs := _ggufs_in(path):
                yield from ggufs
            elif _is_model(path):
                yield path


def _ggufs_in(folder: Path) -> list[Path]:
    """The GGUF files of a folder that holds no other weights, split ones once."""
    if any((folder / name).exists() for name in (INDEX_FILE, MODEL_FILE)):
        return []
    return [path for path in sorted(folder.glob("*.gguf")) if is_first(path)]


def _is_model(folder: Path) -> bool:
    patterns = ("*.safetensors", "*.gguf", "pytorch_model*.bin", *PICKLED_HEADS)
    return any((folder / name).exists() for name in _MODEL_FILES) or any(
        any(folder.glob(pattern)) for pattern in patterns
    )


def at_folder(path: Path) -> InstalledRevision:
    """What a folder or a GGUF file outside of the cache holds."""
    return _installed(path.name, path, "", (), False)


def name_at(path: Path) -> str:
    """The repository whose snapshot a folder is; of other folders and files their own name."""
    repo = repo_of(path)
    if repo is None:
        return path.name
    return repo.name.removeprefix(_PREFIX).replace("--", "/")


def _installed(
    name: str, path: Path, revision: str, refs: tuple[str, ...], is_cached: bool
) -> InstalledRevision:
    contents = look_into(path, name)
    if is_cached and path.is_dir() and (lost := _lost(path)):
        contents = replace(contents, problems=(*contents.problems, lost))
    return InstalledRevision(
        name,
        path,
        revision,
        refs,
        contents,
        size_of(path),
        is_cached,
        title=contents.title or name,
    )


def _lost(snapshot: Path) -> str:
    """Files whose blob is gone, or of another size than the commit says."""
    listed = expected_files(snapshot)
    wrong = []
    for path in files_in(snapshot):
        name = path.relative_to(snapshot).as_posix()
        known = listed.get(name)
        if not path.exists():
            wrong.append(f"{name} is missing")
        elif known is not None and known.nbytes not in (-1, os.path.getsize(path)):  # noqa: PTH202
            wrong.append(f"{name} is incomplete")
    return "; ".join(wrong)
