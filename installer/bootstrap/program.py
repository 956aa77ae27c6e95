"""What the system package brought: the folder PROGRAM."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from installer.bootstrap.version import newest_wheel, wheel_version
from installer.errors import SetupError


@dataclass(frozen=True, slots=True)
class Program:
    """The folder of a system package; it may be read only.

    Attributes:
        root: the folder.
    """

    root: Path

    @property
    def launcher(self) -> Path:
        """What the user's commands call."""
        return self.root / "launch.py"

    @property
    def constraints(self) -> Path:
        """The version of each package."""
        return self.root / "constraints.txt"

    @property
    def icon(self) -> Path:
        """The picture of the window of the first start; it may not be there."""
        return self.root / "icon.png"

    def wheel(self) -> Path:
        """The program in its newest version here.

        Raises:
            SetupError: there is none.
        """
        try:
            found = newest_wheel(self.root)
        except OSError as error:
            raise SetupError(f"{self.root} can't be read: {error.strerror}.", REINSTALL) from error
        if found is None:
            raise SetupError(f"{self.root} holds no wheel of Medusa Chat.", REINSTALL)
        return found

    def version(self) -> str:
        """The version of that wheel.

        Raises:
            SetupError: there is none.
        """
        version = wheel_version(self.wheel())
        assert version is not None
        return version

    def uv(self) -> Path:
        """The program uv: the one of the package, else one on the path.

        Raises:
            SetupError: there is none.
        """
        own = self.root / ("uv.exe" if os.name == "nt" else "uv")
        if own.is_file():
            return own
        other = shutil.which("uv")
        if other is None:
            raise SetupError(f"{own} is missing.", REINSTALL)
        return Path(other)


REINSTALL = "Install the package of Medusa Chat again."
