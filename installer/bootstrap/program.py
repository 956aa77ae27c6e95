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
        """Path of the launcher that the user's commands run."""
        return self.root / "launch.py"

    @property
    def icon(self) -> Path:
        """Icon of the first start's window; it may be missing."""
        return self.root / "icon.png"

    def wheel(self) -> Path:
        """Newest wheel of the program in this folder.

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
        """Version of that wheel.

        Raises:
            SetupError: there is none.
        """
        version = wheel_version(self.wheel())
        assert version is not None
        return version

    def uv(self) -> Path:
        """Path of uv: the package's, else one on PATH.

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
