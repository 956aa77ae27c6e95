"""Versions and their order (PEP 440, without epochs), and wheels by their names."""

import re
import zipfile
from pathlib import Path

from installer.errors import SetupError

DISTRIBUTION = "medusa_chat"
MAX_TEXT_BYTES = 1 << 20
_VERSION = re.compile(
    r"(?P<release>\d+(?:\.\d+)*)"
    r"(?:(?P<stage>a|b|rc)(?P<stage_number>\d+))?"
    r"(?:\.post(?P<post>\d+))?"
    r"(?:\.dev(?P<dev>\d+))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:\.[a-z0-9]+)*))?"
)
_FINAL = "z"  # behind a, b and rc
_WHEEL = re.compile(rf"{DISTRIBUTION}-(?P<version>[^-]+)-py3-none-any\.whl")


def version_key(version: str) -> tuple[object, ...] | None:
    """Return a sort key of a version; None if it is invalid."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return None
    release = [int(part) for part in found["release"].split(".")]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    stage = (found["stage"] or _FINAL, int(found["stage_number"] or 0))
    if found["dev"] and not found["stage"] and not found["post"]:
        stage = ("", 0)  # 1.0.dev1 comes before 1.0a1
    post = int(found["post"]) if found["post"] else -1
    dev = int(found["dev"]) if found["dev"] else 1 << 60
    return (tuple(release), stage, post, dev, found["local"] or "")


def is_newer(version: str, than: str) -> bool:
    """Return whether a version is newer than another one; an invalid one is older than all."""
    return (version_key(version) or ()) > (version_key(than) or ())


def wheel_version(path: Path) -> str | None:
    """Return the version in the name of a Medusa Chat wheel; None for other files."""
    found = _WHEEL.fullmatch(path.name)
    if found is None or version_key(found["version"]) is None:
        return None
    return found["version"]


def newest_wheel(folder: Path) -> Path | None:
    """Return the newest wheel of Medusa Chat in a folder; None if there is none.

    Raises:
        OSError: the folder can't be read.
    """
    wheels = [path for path in folder.iterdir() if wheel_version(path) is not None]
    return max(wheels, key=lambda path: version_key(wheel_version(path) or "") or (), default=None)


def packed_text(wheel: Path, name: str) -> str | None:
    """Return a small text in a wheel; None if it is missing.

    Raises:
        SetupError: the wheel is damaged.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            if name not in archive.namelist():
                return None
            with archive.open(name) as file:
                return file.read(MAX_TEXT_BYTES).decode()
    except (OSError, zipfile.BadZipFile, UnicodeDecodeError, NotImplementedError) as error:
        raise SetupError(f"{wheel.name} can't be read: {error}.", "Get it again.") from error
