"""How this program was installed, and the commands that extend or repair the installation."""

from __future__ import annotations

import os
import shlex
import sys
from enum import Enum
from pathlib import Path

from medusa_core import __version__
from medusa_core.system.resources import is_checkout

_WHEEL = f"medusa_chat-{__version__}-py3-none-any.whl"
BOOTSTRAP_VARIABLE = "MEDUSA_BOOTSTRAP"  # path of a system package's launcher, which sets it


class Installation(Enum):
    """Kinds of installations."""

    CHECKOUT = "checkout"
    SYSTEM_PACKAGE = "system package"
    PIP = "pip"


def installation() -> Installation:
    """Return the kind of this installation."""
    if os.environ.get(BOOTSTRAP_VARIABLE):
        return Installation.SYSTEM_PACKAGE
    return Installation.CHECKOUT if is_checkout() else Installation.PIP


def command_for_extra(extra: str, system: str = sys.platform) -> str:
    """Return the command that installs an extra.

    Args:
        extra: Name of the extra.
        system: A value of `sys.platform`.
    """
    way = installation()
    if way is Installation.CHECKOUT:
        return f'pip install -e ".[{extra}]"'
    wanted = f'"medusa-chat[{extra}]"'  # the only quotes that all shells and cmd.exe know
    if way is Installation.PIP:
        return f"pip install {wanted}"
    # Environments made by uv have no pip; uv's executable is in the launcher's folder.
    folder = Path(os.environ[BOOTSTRAP_VARIABLE]).parent
    if system != "win32":
        uv = shlex.quote(str(folder / "uv"))
        return f"{uv} pip install --python {shlex.quote(sys.executable)} {wanted}"
    # PowerShell reads a line that begins with quotes as a string, and cmd.exe removes such quotes:
    # hence `cmd /c call`.
    uv = f'"{folder / "uv.exe"}"'
    return f'cmd /c call {uv} pip install --python "{sys.executable}" {wanted}'


def repair_command() -> str:
    """Return the command that repairs an incomplete installation."""
    return {
        Installation.CHECKOUT: "python3 installer run",
        Installation.SYSTEM_PACKAGE: "medusa repair",
        # From the file: it isn't on PyPI, so a package of this name there isn't this program.
        Installation.PIP: f"pip install --force-reinstall {_WHEEL}",
    }[installation()]
