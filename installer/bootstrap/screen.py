"""Is there a screen to show a window on?"""

import os
import sys
from collections.abc import Mapping, Sequence


def has_tk_screen(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether Tk can open a window; on Linux it knows no Wayland."""
    return sys.platform in ("win32", "darwin") or bool(environ.get("DISPLAY"))


def has_qt_screen(arguments: Sequence[str], environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the program's own window can open.

    Args:
        arguments: of the program, which may choose a platform.
        environ: environment variables.
    """
    names = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    is_chosen = any(word.startswith("--platform") for word in arguments)
    return sys.platform in ("win32", "darwin") or is_chosen or any(map(environ.get, names))
