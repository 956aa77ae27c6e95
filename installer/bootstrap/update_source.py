"""Where `medusa update --from` finds a wheel: a file or a folder."""

import re
import zipfile
from email.parser import HeaderParser
from pathlib import Path

from installer.bootstrap import request
from installer.bootstrap.files import copy_whole, write_whole
from installer.bootstrap.folders import ProgramData
from installer.bootstrap.installation import CONSTRAINTS, Wanted
from installer.bootstrap.program import Program
from installer.bootstrap.sources import shown_address
from installer.bootstrap.version import newest_wheel, version_key, wheel_version
from installer.errors import SetupError

MAX_TEXT_BYTES = 1 << 20
PACKED_CONSTRAINTS = f"medusa_core/_resources/{CONSTRAINTS}"


def find_update(data: ProgramData, program: Program, source: str) -> Wanted:
    """Return the newest wheel at a place, checked to be one of Medusa Chat.

    Args:
        data: Keeps the versions of the packages.
        program: the package.
        source: A file or a folder.

    Raises:
        SetupError: There is none.
    """
    packages = None
    if re.match(r"https?://", source, re.IGNORECASE):
        raise SetupError(
            f"{shown_address(source)} is an address. Medusa Chat isn't published on an index, so "
            "anybody could offer something else under its name.",
            "Download the file of a release: medusa update --from FILE",
        )
    path = Path(source).expanduser().absolute()
    if path.is_dir():
        packages = path
    wheel = _from_folder(path)
    checked_version(wheel)
    constraints = _constraints(data, program, wheel)
    return request.of_wheel(data, program, wheel, constraints, packages=packages)


def checked_version(wheel: Path) -> str:
    """Return the version of a wheel, by its name and its metadata.

    Raises:
        SetupError: it isn't a wheel of Medusa Chat, or is damaged.
    """
    version = wheel_version(wheel)
    if version is None:
        raise SetupError(
            f"{wheel.name} is no wheel of Medusa Chat.",
            "Its name is medusa_chat-VERSION-py3-none-any.whl.",
        )
    text = _member(wheel, f"medusa_chat-{version}.dist-info/METADATA")
    about = HeaderParser().parsestr(text or "")
    name = re.sub(r"[-_.]+", "-", about["Name"] or "").lower()
    if name != "medusa-chat" or version_key(about["Version"] or "") != version_key(version):
        raise SetupError(f"{wheel.name} holds something else than its name says.", "Get it again.")
    return version


def _from_folder(path: Path) -> Path:
    if path.is_file():
        return path
    try:
        wheel = newest_wheel(path)
    except OSError as error:
        raise SetupError(f"{path} can't be read: {error.strerror}.", "Check its name.") from error
    if wheel is None:
        raise SetupError(
            f"{path} holds no wheel of Medusa Chat.", "It is named medusa_chat-VERSION-….whl."
        )
    return wheel


def _constraints(data: ProgramData, program: Program, wheel: Path) -> Path:
    """Return the pinned versions: in the wheel, beside it, or those of the package."""
    packed = _member(wheel, PACKED_CONSTRAINTS)
    # Not where those of an installed version are kept: the user may still say no.
    target = data.wheels / "wanted" / CONSTRAINTS
    try:
        if packed is not None:
            write_whole(target, packed)
            return target
        beside = wheel.with_name(CONSTRAINTS)
        if beside.is_file():
            copy_whole(beside, target)
            return target
    except OSError as error:
        raise SetupError(f"{target}: {error.strerror}.", "Free some space.") from error
    return program.constraints


def _member(wheel: Path, name: str) -> str | None:
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
