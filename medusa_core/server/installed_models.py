"""Installed models, as a source for `medusa serve`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from medusa_core.hub.library.installed import at_path, list_installed, name_at
from medusa_core.hub.library.library_folder import ContentsKind
from medusa_core.messages import LoadModel
from medusa_core.server.served_models import ServedModel
from medusa_core.system.resources import demo_model_dir

_LOADABLE = (ContentsKind.TARGET, ContentsKind.MERGED)


class InstalledModels:
    """The first model, the models that `medusa list` shows, and the demo model."""

    def __init__(
        self,
        first: Path,
        cache_dir: Path,
        folders: Callable[[], Iterable[Path]],
        load_command: Callable[[Path], LoadModel],
    ) -> None:
        """Offer models.

        Args:
            first: Folder or GGUF file of the model to load first.
            cache_dir: The Hub's cache.
            folders: Returns further folders with models.
            load_command: Returns the command that loads a folder or a GGUF file.
        """
        self._first, self._cache_dir = first, cache_dir
        self._folders, self._load_command = folders, load_command

    def models(self) -> tuple[ServedModel, ...]:
        """List the models, the one to load first at the head.

        Raises:
            ModelError: The list of folders can't be read.
        """
        installed = list_installed(self._cache_dir, self._folders())
        named = [
            (model.name, model.path)
            for model in installed
            if model.contents.kind in _LOADABLE and model.is_complete
        ]
        first = next((pair for pair in named if pair[1].resolve() == self._first.resolve()), None)
        demo = demo_model_dir()
        found: dict[Path, ServedModel] = {}
        for name, path in (first or (_name(self._first), self._first), *named, (demo.name, demo)):
            found.setdefault(path.resolve(), served_model(path, name))
        return _unique(found.values())

    def load_command(self, model: ServedModel) -> LoadModel:
        """Return the command that loads a model.

        Raises:
            MedusaError: The model can't be loaded.
        """
        assert model.path is not None  # all of `models` have one
        return self._load_command(model.path)


def _name(path: Path) -> str:
    """Return the name of a model at a path."""
    repository = name_at(path)
    return at_path(path).name if repository == path.name else repository


def served_model(path: Path, name: str = "") -> ServedModel:
    """Return a model with its file's time.

    Args:
        path: Folder or GGUF file.
        name: Name of the model; empty for that of its repository, folder or file.
    """
    name = name or _name(path)
    created = 0
    with suppress(OSError):  # listed anyway
        created = int(path.stat().st_mtime)
    return ServedModel(name.removesuffix(".gguf"), path, created)


def _unique(models: Iterable[ServedModel]) -> tuple[ServedModel, ...]:
    """Keep the first model of each name; a model can be installed in several revisions."""
    found: dict[str, ServedModel] = {}
    for model in models:
        found.setdefault(model.model_id.casefold(), model)
    return tuple(found.values())
