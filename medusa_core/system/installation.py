"""How this program was installed, and so what is typed to add to it or to mend it."""

from __future__ import annotations

import os
import shlex
import sys
from enum import Enum
from pathlib import Path

from medusa_core import __version__
from medusa_core.system.resources import is_checkout

_WHEEL = f"medusa_chat-{__version__}-py3-none-any.whl"
BOOTSTRAP_VARIABLE = "MEDUSA_BOOTSTRAP"  # set by the launcher of a system package: its own file


class Installation(Enum):
    """Ways to have this program."""

    CHECKOUT = "checkout"
    SYSTEM_PACKAGE = "system package"
    PIP = "pip"


def installation() -> Installation:
    """The way that this program runs in."""
    if os.environ.get(BOOTSTRAP_VARIABLE):
        return Installation.SYSTEM_PACKAGE
    return Installation.CHECKOUT if is_checkout() else Installation.PIP


def command_for_extra(extra: str, system: str = sys.platform) -> str:
    """What is typed to install an extra.

    Args:
        extra: Its name.
        system: `sys.platform`.
    """
    way = installation()
    if way is Installation.CHECKOUT:
        return f'pip install -e ".[{extra}]"'
    wanted = f'"medusa-chat[{extra}]"'  # every shell takes these for quotes, cmd.exe no others
    if way is Installation.PIP:
        return f"pip install {wanted}"
    # Environments that uv made have no pip; uv's program lies beside the launcher.
    folder = Path(os.environ[BOOTSTRAP_VARIABLE]).parent
    if system != "win32":
        uv = shlex.quote(str(folder / "uv"))
        return f"{uv} pip install --python {shlex.quote(sys.executable)} {wanted}"
    # PowerShell takes a line that begins with quotes for a text; `call` is there as cmd.exe drops
    # the quotes that its line begins with.
    uv = f'"{folder / "uv.exe"}"'
    return f'cmd /c call {uv} pip install --python "{sys.executable}" {wanted}'


def command_to_mend() -> str:
    """What is typed where a part of the installation is missing."""
    return {
        Installation.CHECKOUT: "python3 installer run",
        Installation.SYSTEM_PACKAGE: "medusa repair",
        # No index has it: whatever is offered there by its name comes from somebody else.
        Installation.PIP: f"pip install --force-reinstall {_WHEEL}",
    }[installation()]
