"""System libraries that Qt's wheels need on Linux and don't contain.

Standard library only, for Python 3.10: the installer imports it before anything is installed.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Library:
    """A shared library and the packages that contain it.

    Attributes:
        file: File name of the library, as the linker loads it.
        apt: Package on Debian and Ubuntu.
        pacman: Package on Arch.
    """

    file: str
    apt: str
    pacman: str


COMMON = (
    Library("libEGL.so.1", "libegl1", "libglvnd"),
    Library("libGL.so.1", "libgl1", "libglvnd"),
    Library("libX11.so.6", "libx11-6", "libx11"),
    Library("libdbus-1.so.3", "libdbus-1-3", "dbus"),
    Library("libfontconfig.so.1", "libfontconfig1", "fontconfig"),
    Library("libfreetype.so.6", "libfreetype6", "freetype2"),
    Library("libglib-2.0.so.0", "libglib2.0-0", "glib2"),
    Library("libxkbcommon.so.0", "libxkbcommon0", "libxkbcommon"),
    Library("libzstd.so.1", "libzstd1", "zstd"),
)
XCB = (
    Library("libX11-xcb.so.1", "libx11-xcb1", "libx11"),
    Library("libxcb.so.1", "libxcb1", "libxcb"),
    Library("libxcb-cursor.so.0", "libxcb-cursor0", "xcb-util-cursor"),
    Library("libxcb-icccm.so.4", "libxcb-icccm4", "xcb-util-wm"),
    Library("libxcb-image.so.0", "libxcb-image0", "xcb-util-image"),
    Library("libxcb-keysyms.so.1", "libxcb-keysyms1", "xcb-util-keysyms"),
    Library("libxcb-randr.so.0", "libxcb-randr0", "libxcb"),
    Library("libxcb-render.so.0", "libxcb-render0", "libxcb"),
    Library("libxcb-render-util.so.0", "libxcb-render-util0", "xcb-util-renderutil"),
    Library("libxcb-shape.so.0", "libxcb-shape0", "libxcb"),
    Library("libxcb-shm.so.0", "libxcb-shm0", "libxcb"),
    Library("libxcb-sync.so.1", "libxcb-sync1", "libxcb"),
    Library("libxcb-util.so.1", "libxcb-util1", "xcb-util"),
    Library("libxcb-xfixes.so.0", "libxcb-xfixes0", "libxcb"),
    Library("libxcb-xkb.so.1", "libxcb-xkb1", "libxcb"),
    Library("libxkbcommon-x11.so.0", "libxkbcommon-x11-0", "libxkbcommon-x11"),
)
WAYLAND = (
    Library("libwayland-client.so.0", "libwayland-client0", "wayland"),
    Library("libwayland-cursor.so.0", "libwayland-cursor0", "wayland"),
)
OF_PLATFORM: Mapping[str, tuple[Library, ...]] = {
    "xcb": COMMON + XCB,
    "wayland": COMMON + WAYLAND,
}


def likely_platforms(environ: Mapping[str, str], chosen: str = "") -> tuple[str, ...]:
    """Return Qt's platform plugins that can open a window on this Linux desktop.

    Args:
        environ: Environment variables.
        chosen: Plugin that the user named; empty for none.

    Returns:
        Names of plugins, the preferred one first; empty if there is no display.
    """
    named = chosen or environ.get("QT_QPA_PLATFORM", "")
    if named:
        return tuple(name.partition(":")[0].lower() for name in named.split(";"))
    displays = {"wayland": "WAYLAND_DISPLAY", "xcb": "DISPLAY"}
    return tuple(name for name, variable in displays.items() if environ.get(variable))


def can_load(file: str) -> bool:
    """Return whether the dynamic linker can load a library."""
    try:
        ctypes.CDLL(file)
    except OSError:
        return False
    return True


def missing_libraries(
    platforms: Sequence[str], loads: Callable[[str], bool] = can_load
) -> tuple[Library, ...]:
    """Return the libraries without which no window can open.

    A Wayland desktop with XWayland offers two plugins, of which Qt needs one: libraries of the
    other are no obstacle.

    Args:
        platforms: Qt's platform plugins that can be used; unknown ones need the common libraries.
        loads: Whether a library can be loaded; replaced in tests.

    Returns:
        What the plugin with the fewest missing libraries lacks.
    """
    needed = [OF_PLATFORM.get(platform, COMMON) for platform in platforms or ("offscreen",)]
    missing = (tuple(one for one in libraries if not loads(one.file)) for libraries in needed)
    return min(missing, key=len)


def install_command(
    missing: Sequence[Library], others: Sequence[str] = (), os_release: str | None = None
) -> str:
    """Return the command that installs missing libraries and other packages.

    Args:
        missing: Libraries to install.
        others: Further packages, by their names on this distribution.
        os_release: Text of /etc/os-release; read from this machine by default.
    """
    family = _family(read_os_release() if os_release is None else os_release)
    sudo = "" if os.name != "posix" or os.geteuid() == 0 else "sudo "
    if family & {"debian", "ubuntu"}:
        start = f"{sudo}apt update && {sudo}apt install"
        return _command(start, {library.apt for library in missing}, others)
    if "arch" in family:
        return _command(f"{sudo}pacman -S", {library.pacman for library in missing}, others)
    # dnf and zypper find the package that provides a file name.
    provided = {f"'{library.file}()(64bit)'" for library in missing}
    if family & {"suse", "opensuse"}:
        return _command(f"{sudo}zypper install", provided, others)
    if family & {"fedora", "rhel", "centos"}:
        return _command(f"{sudo}dnf install", provided, others)
    files = {library.file for library in missing}
    return _command("Install with your system's package manager what provides:", files, others)


def read_os_release() -> str:
    """Return the text of /etc/os-release; empty if there is none."""
    path = Path("/etc/os-release")
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _command(start: str, packages: set[str], others: Sequence[str]) -> str:
    return " ".join([start, *others, *sorted(packages)])


def _family(os_release: str) -> set[str]:
    """Return the identifiers of the distribution and of those it is derived from."""
    words: set[str] = set()
    for line in os_release.splitlines():
        key, _, value = line.partition("=")
        if key in ("ID", "ID_LIKE"):
            words |= set(value.strip().strip("\"'").lower().split())
    return words
