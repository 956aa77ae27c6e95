"""The models on this computer, as requests name them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from medusa_core.hub.library.installed import at_folder, list_installed, name_at
from medusa_core.hub.library.library_folder import ContentsKind
from medusa_core.messages import LoadModel
from medusa_core.server.served_models import ServedModel
from medusa_core.system.resources import demo_model_dir

_LOADABLE = (ContentsKind.TARGET, ContentsKind.MERGED)


class InstalledModels:
    """What `list` shows, the first model, and the demo model."""

    def __init__(
        self,
        first: Path,
        cache_dir: Path,
        folders: Callable[[], Iterable[Path]],
        load_command: Callable[[Path], LoadModel],
    ) -> None:
        """Offer models.

        Args:
            first: Folder or GGUF file of the model that is loaded first.
            cache_dir: The shared cache.
            folders: Finds the folders outside of it.
            load_command: Makes the command that loads a folder or a file.
        """
        self._first, self._cache_dir = first, cache_dir
        self._folders, self._load_command = folders, load_command

    def models(self) -> tuple[ServedModel, ...]:
        """All that can be loaded; the first one is first.

        Raises:
            ModelError: The list of folders can't be read.
        """
        installed = list_installed(self._cache_dir, self._folders())
        named = [
            (one.name, one.path)
            for one in installed
            if one.contents.kind in _LOADABLE and one.is_complete
        ]
        first = next((one for one in named if _is_same(one[1], self._first)), None)
        demo = demo_model_dir()
        found: dict[Path, ServedModel] = {}
        for name, path in (first or (_name(self._first), self._first), *named, (demo.name, demo)):
            found.setdefault(path.resolve(), _served(name, path))
        return _unique(found.values())

    def load_command(self, model: ServedModel) -> LoadModel:
        """The command that loads one of them.

        Raises:
            MedusaError: It can't be loaded.
        """
        assert model.path is not None  # all of `models` have one
        return self._load_command(model.path)


def _name(path: Path) -> str:
    """The name of a model that was given by its path."""
    repository = name_at(path)
    return at_folder(path).name if repository == path.name else repository


def _served(name: str, path: Path) -> ServedModel:
    created = 0
    with suppress(OSError):  # it is listed all the same
        created = int(path.stat().st_mtime)
    return ServedModel(name.removesuffix(".gguf"), path, created)


def _unique(models: Iterable[ServedModel]) -> tuple[ServedModel, ...]:
    """Of several revisions of one name the first."""
    found: dict[str, ServedModel] = {}
    for model in models:
        found.setdefault(model.model_id.casefold(), model)
    return tuple(found.values())


def _is_same(left: Path, right: Path) -> bool:
    return left.resolve() == right.resolve()
