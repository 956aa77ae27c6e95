"""Where things are: the repository, its environment and the programs in it."""

import re
from dataclasses import dataclass
from pathlib import Path

from installer.bootstrap.folders import EnvironmentFolder


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths of one checkout.

    Attributes:
        root: the repository.
    """

    root: Path

    @property
    def venv(self) -> Path:
        """The environment that the installer makes and may delete."""
        return self.root / ".venv"

    @property
    def lock(self) -> Path:
        """Held while an installation runs; beside the environment, which may be deleted."""
        return self.root / ".venv.lock"

    @property
    def environment(self) -> EnvironmentFolder:
        """The environment's folders and record."""
        return EnvironmentFolder(self.venv)

    @property
    def models(self) -> Path:
        """Models that are fetched with the environment."""
        return self.venv / "share" / "medusa-chat" / "models"

    @property
    def translations(self) -> Path:
        """Translations and, beside them, what they are compiled to."""
        return self.root / "resources" / "translations"

    @property
    def pyproject(self) -> Path:
        """Names the dependencies."""
        return self.root / "pyproject.toml"

    @property
    def constraints(self) -> Path:
        """Pins them and all that they need."""
        return self.root / "installer" / "constraints.txt"

    @property
    def licences(self) -> Path:
        """Whose work it holds and installs; all packages carry it."""
        return self.root / "installer" / "LICENCES.md"

    def program(self, name: str) -> Path:
        """Path of a program inside the environment."""
        return self.environment.program(name)

    @property
    def python(self) -> Path:
        """The environment's Python."""
        return self.environment.python

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
        """`path` as a person standing in the repository would type it."""
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)


def this_repository() -> Layout:
    """The checkout that holds this installer."""
    return Layout(Path(__file__).resolve().parent.parent)
