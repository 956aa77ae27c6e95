"""Whether a window can be opened here; checked before Qt aborts the process without help."""

from __future__ import annotations

import ctypes
import os
import socket
import sys

from app.desktop.screenless import SCREENLESS

COMMAND_LINE = 'The command line needs no window: medusa generate --prompt "Hello"'
PACKAGES = (
    "libegl1 libgl1 libxkbcommon-x11-0 libdbus-1-3 libfontconfig1 libxcb-cursor0 libxcb-icccm4 "
    "libxcb-image0 libxcb-keysyms1 libxcb-render-util0 libxcb-xinerama0 libxcb-xkb1"
)
INSTALL = f"On Debian or Ubuntu: sudo apt-get install {PACKAGES}"
# Qt loads them with its plugin for X11, and ends the process when one is missing.
XCB_LIBRARIES = (
    "libxcb-cursor.so.0",
    "libxcb-icccm.so.4",
    "libxcb-image.so.0",
    "libxcb-keysyms.so.1",
    "libxcb-render-util.so.0",
    "libxcb-xkb.so.1",
    "libxkbcommon-x11.so.0",
)
_X_PORT = 6000
_PATIENCE_S = 3.0


def screen_problem(platform: str | None) -> str | None:
    """Why there is no screen to open a window on.

    Args:
        platform: Qt's platform plugin, if the user named one.

    Returns:
        What is missing and what to do; None if nothing seems to be missing.
    """
    if not sys.platform.startswith("linux"):
        return None
    chosen = platform or os.environ.get("QT_QPA_PLATFORM", "")
    if chosen.split(":")[0] in SCREENLESS:
        return None
    if os.environ.get("WAYLAND_DISPLAY"):
        return None
    if not os.environ.get("DISPLAY"):
        return (
            "There is no display (neither DISPLAY nor WAYLAND_DISPLAY is set). Start this from a "
            f"desktop, or through ssh -X.\n{COMMAND_LINE}"
        )
    if (platform or "xcb").startswith("xcb") and not _answers(os.environ["DISPLAY"]):
        return (
            f"The display {os.environ['DISPLAY']} can't be reached. Start this from a desktop, or "
            f"through ssh -X; or set DISPLAY to one that runs (mostly :0).\n{COMMAND_LINE}"
        )
    missing = [library for library in XCB_LIBRARIES if not _can_load(library)]
    if missing:
        return f"Qt can't draw here without {', '.join(missing)}. {INSTALL}\n{COMMAND_LINE}"
    return None


def qt_problem(error: ImportError) -> str:
    """What to do when Qt can't be imported."""
    if "PySide6" not in str(error) and ".so" not in str(error):
        raise error
    if ".so" in str(error):
        return f"Qt can't be loaded: {error}. {INSTALL}\n{COMMAND_LINE}"
    from medusa_core.api import repair_command

    return f"Qt is not installed: {error}. Install it: {repair_command()}\n{COMMAND_LINE}"


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


def _can_load(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
