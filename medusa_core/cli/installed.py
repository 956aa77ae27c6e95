"""`medusa update`, `repair` and `uninstall`, which the installed package's launcher executes."""

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
# Commands to show if the program wasn't installed by a package.
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
    """Return whether a package's launcher started this program."""
    launcher = os.environ.get(BOOTSTRAP_VARIABLE, "")
    return bool(launcher) and Path(launcher).is_file()


def run_by_package(name: str, arguments: Sequence[str]) -> int:
    """Run the package's launcher, or print what to type instead.

    Args:
        name: Name of the command.
        arguments: Arguments of the command.

    Returns:
        1 without a package; the launcher's exit status on Windows. Elsewhere the launcher replaces
        this process.
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
    """Replace this process by another program."""
    sys.stdout.flush()
    sys.stderr.flush()
    # A locked file marks this version as running; the launcher must not inherit it.
    os.closerange(_OWN_STREAMS, _MOST_FILES)
    os.execv(command[0], command)


def _system_python() -> str:
    """Return the base interpreter, since the launcher may remove this environment."""
    if os.name == "nt":
        return str(Path(sys.base_prefix) / "python.exe")
    return os.path.realpath(sys.executable)
