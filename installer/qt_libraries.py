"""The system libraries that Qt's wheels expect on Linux and do not carry."""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from installer.errors import SetupError


@dataclass(frozen=True, slots=True)
class Library:
    """One shared library.

    Attributes:
        file: name under which it is loaded.
        apt: package on Debian and Ubuntu.
        pacman: package on Arch.
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


def can_load(file: str) -> bool:
    """Whether the dynamic linker finds and accepts a library."""
    try:
        ctypes.CDLL(file)
    except OSError:
        return False
    return True


def missing_libraries(
    platform: str, loads: Callable[[str], bool] = can_load
) -> tuple[Library, ...]:
    """Libraries that Qt needs for a platform and that cannot be loaded.

    Args:
        platform: name of Qt's platform plugin; unknown ones need the common libraries.
        loads: whether a file can be loaded; replaced in tests.
    """
    return tuple(
        library for library in OF_PLATFORM.get(platform, COMMON) if not loads(library.file)
    )


def mending_command(missing: Sequence[Library], os_release: str) -> str:
    """The command that installs the missing libraries on the distribution at hand.

    Args:
        missing: at least one library.
        os_release: text of /etc/os-release.
    """
    family = _family(os_release)
    if family & {"debian", "ubuntu"}:
        return "sudo apt install " + " ".join(sorted({library.apt for library in missing}))
    if family & {"arch"}:
        return "sudo pacman -S " + " ".join(sorted({library.pacman for library in missing}))
    # These two find the package that provides a file's name.
    provided = " ".join(f"'{library.file}()(64bit)'" for library in missing)
    if family & {"suse", "opensuse"}:
        return f"sudo zypper install {provided}"
    if family & {"fedora", "rhel", "centos"}:
        return f"sudo dnf install {provided}"
    return "Install with your system's package manager what provides: " + ", ".join(
        library.file for library in missing
    )


def check_libraries(system: str, platform: str) -> None:
    """Refuse to open a window that would abort for want of a library.

    Args:
        system: `sys.platform`.
        platform: name of Qt's platform plugin.

    Raises:
        SetupError: at least one is missing.
    """
    if not system.startswith("linux"):
        return
    missing = missing_libraries(platform)
    if missing:
        names = ", ".join(library.file for library in missing)
        raise SetupError(
            f"Qt needs system libraries that are not installed: {names}.",
            mending_command(missing, read_os_release()),
        )


def read_os_release() -> str:
    """Text of the file that names the distribution; empty where there is none."""
    path = Path("/etc/os-release")
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _family(os_release: str) -> set[str]:
    """Identifiers of the distribution and of those it is like."""
    words: set[str] = set()
    for line in os_release.splitlines():
        key, _, value = line.partition("=")
        if key in ("ID", "ID_LIKE"):
            words |= set(value.strip().strip("\"'").lower().split())
    return words
