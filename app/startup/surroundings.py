"""Whether a window can be opened here; checked before Qt aborts the process without help."""

from __future__ import annotations

import os
import re
import socket
import sys

from app.desktop.screenless import SCREENLESS
from app.startup.qt_libraries import (
    OF_PLATFORM,
    can_load,
    install_command,
    likely_platforms,
    missing_libraries,
)

COMMAND_LINE = 'The command line needs no window: medusa generate --prompt "Hello"'
_X_PORT = 6000
_PATIENCE_S = 3.0


def screen_problem(platform: str | None) -> str | None:
    """Return why no window can be opened.

    Args:
        platform: Qt's platform plugin, if the user named one.

    Returns:
        What is missing and what to do; None if nothing seems to be missing.
    """
    if not sys.platform.startswith("linux"):
        return None
    platforms = likely_platforms(os.environ, platform or "")
    if not set(platforms).isdisjoint(SCREENLESS):
        return None
    display = os.environ.get("DISPLAY")
    if not display and not os.environ.get("WAYLAND_DISPLAY"):
        return (
            "There is no display (neither DISPLAY nor WAYLAND_DISPLAY is set). Start this from a "
            f"desktop, or through ssh -X.\n{COMMAND_LINE}"
        )
    if platforms == ("xcb",) and display and not _answers(display):
        return (
            f"The display {display} can't be reached. Start this from a desktop, or "
            f"through ssh -X; or set DISPLAY to one that runs (mostly :0).\n{COMMAND_LINE}"
        )
    if missing := missing_libraries(platforms, can_load):
        names = ", ".join(library.file for library in missing)
        return f"Qt can't draw here without {names}.\n{install_command(missing)}\n{COMMAND_LINE}"
    return None


def qt_problem(error: ImportError) -> str:
    """Return what to do if Qt can't be imported."""
    if "PySide6" not in str(error) and ".so" not in str(error):
        raise error
    if ".so" in str(error):
        return f"Qt can't be loaded: {error}\n{advice(str(error))}"
    from medusa_core.api import repair_command

    return f"Qt is not installed: {error}. Install it: {repair_command()}\n{COMMAND_LINE}"


def advice(message: str) -> str:
    """Return what to do after Qt failed: install what is missing, or use the command line.

    Args:
        message: Qt's message or the linker's, which may name a library.
    """
    named = re.findall(r"lib[^\s:]+\.so[.0-9]*", message)
    needed = dict.fromkeys(OF_PLATFORM["xcb"] + OF_PLATFORM["wayland"])
    missing = [one for one in needed if one.file in named or not can_load(one.file)]
    return f"{install_command(missing)}\n{COMMAND_LINE}" if missing else COMMAND_LINE


def _answers(display: str) -> bool:
    """Whether an X server listens at a display such as `:0` or `host:10.0`."""
    host, _, rest = display.rpartition(":")
    number = rest.split(".")[0]
    if not number.isdigit():
        return True  # of a form that Qt may know
    name = f"/tmp/.X11-unix/X{number}"
    if host in ("", "unix"):
        # The second is its name where it has no file.
        if any(_connects(socket.AF_UNIX, path) for path in (name, f"\0{name}")):
            return True
        host = host or "localhost"
    return _connects(socket.AF_INET, (host, _X_PORT + int(number)))


def _connects(family: socket.AddressFamily, address: str | tuple[str, int]) -> bool:
    with socket.socket(family, socket.SOCK_STREAM) as one:
        one.settimeout(_PATIENCE_S)
        try:
            one.connect(address)
        except OSError:
            return False
        return True
