"""Resolve names of models and heads on the command line: paths, repositories, names of `list`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from medusa_core.errors import RequestError
from medusa_core.hub.boundary import is_repo
from medusa_core.hub.cache_folder import find_snapshot
from medusa_core.hub.gguf_choice import split_quant, with_quant
from medusa_core.hub.library.installed import Installed, list_installed
from medusa_core.hub.library.library_folder import ContentsKind, look_into
from medusa_core.hub.library.library_import import FolderList
from medusa_core.hub.settings import settings_from
from medusa_core.models.model_files import ModelFiles
from medusa_core.system.files.gguf import SUFFIX, is_first
from medusa_core.system.files.gguf_companions import is_companion, is_drafter_name
from medusa_core.system.resources import FIRST_MODEL_FILE, demo_model_dir, first_model_file
from medusa_core.system.user_folders import places

_LOADABLE = (ContentsKind.TARGET, ContentsKind.MERGED)


def installed(name: str) -> Path:
    """Resolve a name to a folder or file.

    Raises:
        RequestError: Nothing of that name is installed, or several things are.
    """
    found = find_named(name)
    if found is not None:
        return found
    repo, _ = split_quant(name)
    raise RequestError(
        f"{name} isn't on this computer.",
        f"Fetch it with: medusa pull {name}"
        if "/" in repo and is_repo(repo) and not name.casefold().endswith(SUFFIX)
        else "Check the path; medusa list shows what is here.",
    )


def refuse_heads(path: Path) -> None:
    """Check that a path isn't a folder of heads, which has sizes, too.

    Raises:
        RequestError: It is.
    """
    if path.is_dir() and look_into(path).kind is ContentsKind.HEADS:
        raise RequestError(
            f"{path.name} holds heads, which draft for a model, and no model.",
            f"What they are: medusa heads show {path}",
        )


def find_named(name: str) -> Path | None:
    """Resolve a name; None if nothing of that name is installed.

    Raises:
        RequestError: Several things are.
    """
    path = Path(name)
    if path.exists() and ModelFiles.find(path) is not None:
        return path
    repo, quant = split_quant(name)
    snapshot = find_snapshot(settings_from(os.environ).cache_dir, repo)
    if snapshot is not None and (quant or not (snapshot / "config.json").exists()):
        return _gguf_of(snapshot, repo, quant)
    if snapshot is not None:
        return snapshot
    found = _loadable()
    known = {one.casefold(): path for one, path in _by_name(found).items()}
    titles = {one.title.casefold(): one.path for one in found}
    wanted = name.casefold()
    if wanted == FIRST_MODEL_FILE[0]:  # as `pull` and the documents call it
        return first_model_file()
    return known.get(wanted) or known.get(wanted.removesuffix(SUFFIX)) or titles.get(wanted)


def loadable_models() -> Mapping[str, Path]:
    """Return the paths of loadable models by name: those of `list`, and the program's."""
    return _by_name(_loadable())


def _by_name(installed: Sequence[Installed]) -> dict[str, Path]:
    """Map names to paths, with the models that come with the program."""
    return {one.name.removesuffix(SUFFIX): one.path for one in installed} | own_models()


def _loadable() -> list[Installed]:
    """List the installed models that can be loaded."""
    found = list_installed(settings_from(os.environ).cache_dir, folder_list().read())
    return [one for one in found if is_loadable(one)]


def own_models() -> dict[str, Path]:
    """Return the models that come with the program by name."""
    own = (first_model_file(), demo_model_dir())
    return {path.name.removesuffix(SUFFIX): path for path in own if path is not None}


def listed_name(listed: Sequence[str], name: str) -> str:
    """Return the name in `list` of `owner/repo:QUANT`, or of a file without its suffix.

    Other names are returned unchanged.

    Args:
        listed: Names of `list`.
        name: Typed name.
    """
    if f"{name}{SUFFIX}".casefold() in (one.casefold() for one in listed):
        return f"{name}{SUFFIX}"
    repo, quant = split_quant(name)
    files = [one for one in listed if one.casefold().startswith(f"{repo}/".casefold())]
    found = with_quant([f"{one}{SUFFIX}" for one in files], quant) if quant else []
    return found[0].removesuffix(SUFFIX) if len(found) == 1 else name


def is_loadable(item: Installed) -> bool:
    """Return whether it is a complete model."""
    return item.is_complete and item.contents.kind in _LOADABLE


def folder_list() -> FolderList:
    """Return the list of folders that the user added."""
    return FolderList(places().data / "folders.json")


def _gguf_of(snapshot: Path, repo: str, quant: str) -> Path:
    """Return a GGUF file of a snapshot, or the snapshot if it has none.

    Raises:
        RequestError: No file or several files match.
    """
    every = [path.name for path in sorted(snapshot.glob(f"*{SUFFIX}")) if is_first(path)]
    drafters = [name for name in every if is_drafter_name(name)]
    names = [name for name in every if not is_companion(name)] or drafters
    found = names
    if quant:  # `mtp` or `eagle3` names a drafter next to models
        found = with_quant(names, quant) or with_quant(drafters, quant)
    if len(found) == 1:
        return snapshot / found[0]
    if not names and not quant:
        return snapshot
    if not found:
        raise RequestError(
            f"{quant} of {repo} isn't here.", f"Fetch it with: medusa pull {repo}:{quant}"
        )
    raise RequestError(
        f"Of {repo} there are several files.", f"Name one as {repo}:QUANT: {', '.join(found)}."
    )
