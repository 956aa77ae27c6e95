"""`medusa update`, `repair` and `uninstall`: done by the package that brought the program."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from medusa_core.system.installation import BOOTSTRAP_VARIABLE
from medusa_core.system.resources import is_checkout

_OWN_STREAMS = 3  # standard input, output and error
_MOST_FILES = 1024
PACKAGED = ("update", "repair", "uninstall")
# Where no package brought it: what to type instead.
_IN_CHECKOUT = {
    "update": "git pull && python3 installer run",
    "repair": "rm -r .venv && python3 installer run",
    "uninstall": "rm -r .venv",
}
_BY_PIP = {
    "update": "python -m pip install --upgrade FILE.whl",
    "repair": "python -m pip install --force-reinstall FILE.whl",
    "uninstall": "python -m pip uninstall medusa-chat",
}


def is_packaged() -> bool:
    """Whether a package's launcher started this program."""
    launcher = os.environ.get(BOOTSTRAP_VARIABLE, "")
    return bool(launcher) and Path(launcher).is_file()


def run_by_package(name: str, arguments: Sequence[str]) -> int:
    """Hand over to the package's launcher, or say what to type.

    Args:
        name: Of the command.
        arguments: Of the command.

    Returns:
        1 where no package brought the program; what the launcher says on Windows; else this
        process becomes the launcher.
    """
    if is_packaged():
        launcher = os.environ[BOOTSTRAP_VARIABLE]
        command = [_system_python(), launcher, "medusa", name, *arguments]
        if os.name == "nt":
            return subprocess.run(command, check=False).returncode
        _become(command)
    instead = (_IN_CHECKOUT if is_checkout() else _BY_PIP)[name]
    where = "in this checkout" if is_checkout() else "where pip installed it"
    print(f"Medusa Chat runs {where}. There it is:\n  {instead}", file=sys.stderr)
    return 1


def _become(command: list[str]) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    # The mark that this version runs is an open file; the launcher mustn't find its own.
    os.closerange(_OWN_STREAMS, _MOST_FILES)
    os.execv(command[0], command)


def _system_python() -> str:
    """The Python that this environment was made from: the environment itself may be removed."""
    if os.name == "nt":
        return str(Path(sys.base_prefix) / "python.exe")
    return os.path.realpath(sys.executable)
