"""List models and heads on this computer: in the shared cache, and in added folders."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from medusa_core.errors import ModelError, RequestError
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
from medusa_core.i18n import tr
from medusa_core.messages import HeadsShape
from medusa_core.models.config import ModelConfig
from medusa_core.models.model_files import ModelFiles
from medusa_core.system.files.gguf import is_first
from medusa_core.system.jobs.heads_gain import HeadsGain, read_gain

_PREFIX = "models--"
_UNFINISHED = (".part", ".incomplete")
_MODEL_FILES = (*HEADS_FILES, INDEX_FILE, MODEL_FILE, "config.json")


@dataclass(frozen=True)
class Installed:
    """A model, heads or an adapter on this computer: a revision in the cache, or a path elsewhere.

    Configuration and gain are read from its files at the first access.

    Attributes:
        name: Repository, or the name of the folder or file.
        path: Folder with its files, or a GGUF file.
        contents: Kind, format and problems.
        nbytes: Bytes on disk; blobs that revisions share count for each of them.
        title: Name for people: a GGUF file's name of its model, else `name`.
        revision: The commit; empty outside of the cache.
        refs: Branches and tags that name the commit.
        is_cached: Whether it is in the shared cache, from where it can be removed.
        owner: Another program that it belongs to; empty for none.
        is_built_in: Whether it is shipped with the application.
    """

    name: str
    path: Path
    contents: Contents
    nbytes: int
    title: str
    revision: str = ""
    refs: tuple[str, ...] = ()
    is_cached: bool = False
    owner: str = ""
    is_built_in: bool = False

    @property
    def kind(self) -> ContentsKind:
        """Kind of the contents."""
        return self.contents.kind

    @property
    def is_complete(self) -> bool:
        """Whether headers and listings show no missing or damaged file."""
        return not self.contents.problems

    @property
    def heads(self) -> HeadsShape:
        """Sizes of the heads in it."""
        heads = self.contents.heads
        return HeadsShape() if heads is None else heads.shape

    @property
    def problem(self) -> str:
        """Why it can't be loaded, for people; empty if it can."""
        return "; ".join(self.contents.problems) or self._opened[1]

    @property
    def config(self) -> ModelConfig | None:
        """Configuration of the model; None for anything else, or if it can't be loaded."""
        files = self._opened[0]
        return None if files is None else files.config

    @property
    def is_base(self) -> bool:
        """Whether it is a model without a chat template, which continues texts."""
        files = self._opened[0]
        return files is not None and files.is_base

    @cached_property
    def gain(self) -> HeadsGain | None:
        """Speed-up of heads that was measured when they were trained; None if unknown."""
        return read_gain(self.path) if self.kind is ContentsKind.HEADS else None

    @property
    def may_pay(self) -> bool:
        """Whether heads may make a model faster: they weren't measured to make it slower."""
        return self.gain is None or self.gain.pays

    @cached_property
    def _opened(self) -> tuple[ModelFiles | None, str]:
        """Files of a complete model, or why they can't be read."""
        if self.kind not in (ContentsKind.TARGET, ContentsKind.MERGED) or not self.is_complete:
            return None, ""
        try:
            files = ModelFiles.open(self.path)
            _ = files.config, files.is_base
        except ModelError as error:
            return None, str(error)
        return files, ""


def list_installed(
    cache_dir: Path, folders: Iterable[Path] = (), others: Iterable[ForeignModel] = ()
) -> tuple[Installed, ...]:
    """List everything that is installed, sorted by name.

    Args:
        cache_dir: The shared cache, in huggingface_hub's layout.
        folders: Further models, or folders of models.
        others: Models of other programs.

    Returns:
        Every revision and folder, damaged and incomplete ones with their problems.
    """
    found = [one for repo in _repos(cache_dir) for one in _revisions(repo)]
    seen: set[Path] = set()
    for folder in folders:
        for path in _models_in(folder):
            if path.resolve() not in seen:
                seen.add(path.resolve())
                found.append(at_path(path))
    for one in others:
        if one.path.resolve() not in seen:
            seen.add(one.path.resolve())
            found.append(replace(at_path(one.path, one.name), owner=one.owner))
    titled = _with_distinct_titles(found)
    return tuple(sorted(titled, key=lambda one: (one.name.casefold(), one.revision)))


def find_installed(installed: Iterable[Installed], name: str, revision: str = "") -> Installed:
    """Find an item by name or path.

    Args:
        installed: Result of `list_installed`.
        name: Repository, name or path of a folder, or a title.
        revision: Branch, tag, or prefix of a commit; may be empty if there is only one.

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
        # The default revision of huggingface_hub.
        fitting = [one for one in fitting if "main" in one.refs] or fitting
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        known = ", ".join(sorted({one.name for one in installed})) or "nothing"
        at = f" at {revision}" if revision else ""
        raise RequestError(
            tr("{0}{1} isn't installed.", name, at), tr("Installed are: {0}.", known)
        )
    listed = ", ".join(one.revision[:12] for one in fitting)
    raise RequestError(
        tr("{0} is installed in several revisions.", name), tr("Choose one: {0}.", listed)
    )


def pairings(installed: Iterable[Installed]) -> tuple[Pairing, ...]:
    """Match every installed model with all installed heads."""
    contents = [one.contents for one in installed]
    return pair(
        [one.target for one in contents if one.target is not None],
        [one.heads for one in contents if one.heads is not None],
    )


def repo_folder(cache_dir: Path, name: str) -> Path:
    """Return the folder of a repository in the cache."""
    return cache_dir / (_PREFIX + name.replace("/", "--"))


def _with_distinct_titles(items: Sequence[Installed]) -> list[Installed]:
    """Make titles of a model's files distinct: by file type, else by file name."""
    by_type = [
        replace(one, title=f"{one.title} {one.contents.quantization}".strip()) if is_shared else one
        for one, is_shared in _with_shared_titles(items)
    ]
    return [
        replace(one, title=one.name) if is_shared else one
        for one, is_shared in _with_shared_titles(by_type)
    ]


def _with_shared_titles(
    items: Sequence[Installed],
) -> list[tuple[Installed, bool]]:
    """Return each item, and whether another one has the same title."""
    counts = Counter(one.title.casefold() for one in items)
    return [(one, bool(one.contents.title) and counts[one.title.casefold()] > 1) for one in items]


def size_of(folder: Path) -> int:
    """Return the bytes of a folder's files or a GGUF file, links followed, each file once."""
    sizes = {}
    for path in files_of_model(folder):
        if path.exists():
            stat = path.stat()
            sizes[stat.st_dev, stat.st_ino] = stat.st_size
    return sum(sizes.values())


def _repos(cache_dir: Path) -> Iterator[Path]:
    """Yield the repository folders of the cache."""
    if cache_dir.is_dir():
        for path in sorted(cache_dir.glob(f"{_PREFIX}*")):
            if path.is_dir() and not path.is_symlink():
                yield path


def _revisions(repo: Path) -> Iterator[Installed]:
    """Yield the models of each snapshot, each GGUF file as one."""
    name = repo.name.removeprefix(_PREFIX).replace("--", "/")
    refs = _refs(repo)
    snapshots = repo / "snapshots"
    found = [path for path in sorted(snapshots.glob("*")) if path.is_dir()]
    for path in found:
        named = tuple(sorted(ref for ref, commit in refs.items() if commit == path.name))
        for file in _ggufs_in(path):
            yield _cached(file, f"{name}/{file.stem}", path.name, named)
        if not _ggufs_in(path):
            yield _cached(path, name, path.name, named)
    if not found:
        unfinished = any(path.suffix in _UNFINISHED for path in repo.glob("blobs/*"))
        why = tr("a download that isn't finished") if unfinished else tr("no files")
        nbytes = sum(path.lstat().st_size for path in repo.glob("blobs/*"))
        contents = Contents(ContentsKind.UNKNOWN, "", (why,))
        yield Installed(name, repo, contents, nbytes, title=name, is_cached=True)


def _refs(repo: Path) -> dict[str, str]:
    """Return the commit of each branch and tag."""
    folder = repo / "refs"
    named = {
        path.relative_to(folder).as_posix(): read_ref(path) for path in sorted(folder.rglob("*"))
    }
    return {name: commit for name, commit in named.items() if commit}


def _models_in(folder: Path) -> Iterator[Path]:
    """Yield a folder or file that is a model, else the models in its subfolders."""
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
    """Return the GGUF files of a folder without other weights, split ones once."""
    if any((folder / name).exists() for name in (INDEX_FILE, MODEL_FILE)):
        return []
    return [path for path in sorted(folder.glob("*.gguf")) if is_first(path)]


def _is_model(folder: Path) -> bool:
    """Whether a folder contains weights or a model's configuration."""
    patterns = ("*.safetensors", "*.gguf", "pytorch_model*.bin", *PICKLED_HEADS)
    return any((folder / name).exists() for name in _MODEL_FILES) or any(
        any(folder.glob(pattern)) for pattern in patterns
    )


def at_path(path: Path, name: str = "") -> Installed:
    """Return what a folder or a GGUF file outside of the cache holds.

    Args:
        name: Its name; empty for that of the path.
    """
    name = name or path.name
    contents = look_into(path, name)
    return Installed(name, path, contents, size_of(path), title=contents.title or name)


def _cached(path: Path, name: str, revision: str, refs: tuple[str, ...]) -> Installed:
    """Return the contents of a snapshot, with missing blobs as a problem."""
    found = at_path(path, name)
    if path.is_dir() and (lost := _lost(path)):
        contents = replace(found.contents, problems=(*found.contents.problems, lost))
        found = replace(found, contents=contents)
    return replace(found, revision=revision, refs=refs, is_cached=True)


def name_at(path: Path) -> str:
    """Return the repository of a snapshot; of other paths their name."""
    repo = repo_of(path)
    if repo is None:
        return path.name
    return repo.name.removeprefix(_PREFIX).replace("--", "/")


def _lost(snapshot: Path) -> str:
    """Describe files whose blob is missing or has another size than the commit's listing."""
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
