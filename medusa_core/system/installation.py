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


def command_for_extra(extra: str) -> str:
    """What is typed to install an extra."""
    way = installation()
    if way is Installation.CHECKOUT:
        return f"pip install -e '.[{extra}]'"
    wanted = f"'medusa-chat[{extra}]'"
    if way is Installation.PIP:
        return f"pip install {wanted}"
    # Environments that uv made have no pip; uv's program lies beside the launcher.
    uv = Path(os.environ[BOOTSTRAP_VARIABLE]).with_name("uv")
    return f"{shlex.quote(str(uv))} pip install --python {shlex.quote(sys.executable)} {wanted}"


def command_to_mend() -> str:
    """What is typed where a part of the installation is missing."""
    return {
        Installation.CHECKOUT: "python3 installer run",
        Installation.SYSTEM_PACKAGE: "medusa repair",
        # No index has it: whatever is offered there by its name comes from somebody else.
        Installation.PIP: f"pip install --force-reinstall {_WHEEL}",
    }[installation()]
