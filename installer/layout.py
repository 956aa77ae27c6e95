"""Where things are: the repository, its environment and the programs in it."""

import re
from pathlib import Path

from installer.bootstrap.folders import EnvironmentFolder


class Layout:
    """Paths of one checkout.

    Attributes:
        root: The repository.
        venv: The environment that the installer makes and may delete.
        environment: Folders and record of the environment.
        python: Python of the environment.
        lock: Held while an installation runs; beside the environment, which may be deleted.
        models: Models that are fetched with the environment.
        translations: Translations and, beside them, what they are compiled to.
        pyproject: Names the dependencies.
        constraints: Pins them and all that they need.
        licences: Whose work it holds and installs; all packages carry it.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.venv = root / ".venv"
        self.environment = EnvironmentFolder(self.venv)
        self.python = self.environment.python
        self.lock = root / ".venv.lock"
        self.models = self.venv / "share" / "medusa-chat" / "models"
        self.translations = root / "resources" / "translations"
        self.pyproject = root / "pyproject.toml"
        self.constraints = root / "installer" / "constraints.txt"
        self.licences = root / "installer" / "LICENCES.md"

    def program(self, name: str) -> Path:
        """Path of a program inside the environment."""
        return self.environment.program(name)

    def pinned(self, name: str) -> str:
        """Return the requirement `name==version` of constraints.txt.

        Raises:
            LookupError: It is not pinned.
        """
        pattern = re.compile(rf"^{re.escape(name)}==\S+", re.MULTILINE)
        found = pattern.search(self.constraints.read_text(encoding="utf-8"))
        if not found:
            raise LookupError(f"{name} is not pinned in {self.constraints.name}")
        return found[0]

    def shown(self, path: Path) -> str:
        """Return `path` relative to the repository, as a user would type it."""
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)


def this_repository() -> Layout:
    """Return the checkout of this installer."""
    return Layout(Path(__file__).resolve().parent.parent)


def program_version(layout: Layout) -> str:
    """Return `medusa_core.__version__`, without importing anything."""
    return _constant(layout, "__version__")


def program_licence(layout: Layout) -> str:
    """Return `medusa_core.LICENCE`: a sentence about the program's own terms."""
    return _constant(layout, "LICENCE")


def program_licence_id(layout: Layout) -> str:
    """Return `medusa_core.LICENCE_ID`: the SPDX expression of the program's own terms."""
    return _constant(layout, "LICENCE_ID")


def _constant(layout: Layout, name: str) -> str:
    text = (layout.root / "medusa_core" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(rf'^{name} = "(.+?)"', text, re.MULTILINE)
    assert found is not None, f"medusa_core/__init__.py has no {name}"
    return found[1]
