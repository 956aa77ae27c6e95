"""Packages of the system that must be there before anything is installed."""

import importlib.util
import os
import shutil
import sys
from collections.abc import Sequence

from app.startup.qt_libraries import install_command, missing_libraries
from installer.errors import SetupError
from installer.layout import Layout
from installer.uv_program import has_pip


def check_system_packages(layout: Layout, platforms: Sequence[str]) -> None:
    """Refuse to begin while system packages are missing; all are named with one command.

    Args:
        layout: Paths of the checkout.
        platforms: Qt's platform plugins that a window can use; empty if none will be opened.

    Raises:
        SetupError: At least one package is missing.
    """
    needs_qt = bool(platforms) and sys.platform.startswith("linux")
    libraries = missing_libraries(platforms) if needs_qt else ()
    missing = [library.file for library in libraries]
    packages = []
    # Debian and Ubuntu have made it a package of its own.
    can_fetch = has_pip() or importlib.util.find_spec("ensurepip") or shutil.which("uv")
    if not (can_fetch or layout.program("uv").exists()):
        missing.insert(0, "ensurepip, a module of Python")
        packages.append(f"python{sys.version_info.major}.{sys.version_info.minor}-venv")
    if missing:
        raise SetupError(
            f"Medusa Chat needs parts of the system that are not installed: {', '.join(missing)}.",
            f"Install: {install_command(libraries, packages)}\nThen:    {this_command()}",
        )


def this_command() -> str:
    """Return the command that was typed, for messages that ask to run it again."""
    python = "py" if os.name == "nt" else "python3"
    return " ".join([python, "installer", *sys.argv[1:]])
