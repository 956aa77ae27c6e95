"""Whether a program of an environment runs, also after its launcher was killed."""

import os
from contextlib import suppress
from typing import BinaryIO

from installer.bootstrap.folders import ProgramData

if os.name != "nt":
    import fcntl

    def hold_in_use(data: ProgramData, version: str) -> BinaryIO | None:
        """Mark a version as running, as long as the file or a child that inherits it is open.

        Returns:
            The file; None where the folder can't be written.
        """
        try:
            file = data.environment(version).in_use.open("ab")
        except OSError:
            return None
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_SH)  # who looks whether it is held holds it for an instant
        os.set_inheritable(file.fileno(), True)
        return file

    def is_in_use(data: ProgramData, version: str) -> bool:
        """Return whether a program of this version runs."""
        try:
            with data.environment(version).in_use.open("ab") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

else:

    def hold_in_use(data: ProgramData, version: str) -> BinaryIO | None:  # noqa: ARG001
        """Do nothing: Windows itself lets nobody remove files of a running program."""
        return None

    def is_in_use(data: ProgramData, version: str) -> bool:
        """Return whether a program of this version runs, whose file then can't be written."""
        folder = data.environment(version)
        for name in ("python", "pythonw", "medusa", "medusa-chat"):
            try:
                with folder.program(name).open("r+b"):
                    pass
            except FileNotFoundError:
                continue
            except OSError:
                return True
        return False
