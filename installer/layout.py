"""Where things are: the repository, its environment and the programs in it."""

import os
from dataclasses import dataclass
from pathlib import Path


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
    def stamp(self) -> Path:
        """Record of the last complete installation."""
        return self.venv / "medusa-installed.json"

    @property
    def unfinished(self) -> Path:
        """Exists while packages are being written, and after an interruption."""
        return self.venv / "medusa-unfinished"

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

    @property
    def site_packages(self) -> Path:
        """Where the environment's packages lie."""
        found = self.venv.glob("lib/python3.*/site-packages")
        return next(found, self.venv / "Lib" / "site-packages")

    def program(self, name: str) -> Path:
        """Path of a program inside the environment."""
        if os.name == "nt":
            return self.venv / "Scripts" / f"{name}.exe"
        return self.venv / "bin" / name

    @property
    def python(self) -> Path:
        """The environment's Python."""
        return self.program("python")

    def shown(self, path: Path) -> str:
        """`path` as a person standing in the repository would type it."""
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)


def this_repository() -> Layout:
    """The checkout that holds this installer."""
    return Layout(Path(__file__).resolve().parent.parent)
