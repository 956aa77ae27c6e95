"""Where `medusa update --from` finds a wheel: a file or a folder."""

import re
from email.parser import HeaderParser
from pathlib import Path

from installer.bootstrap import request
from installer.bootstrap.folders import ProgramData
from installer.bootstrap.installation import Wanted
from installer.bootstrap.program import Program
from installer.bootstrap.sources import shown_address
from installer.bootstrap.version import newest_wheel, packed_text, version_key, wheel_version
from installer.errors import SetupError


def find_update(data: ProgramData, program: Program, source: str) -> Wanted:
    """Return the newest wheel at a place, checked to be one of Medusa Chat.

    Args:
        data: has the settings.
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
    return request.of_wheel(data, program, wheel, packages=packages)


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
    text = packed_text(wheel, f"medusa_chat-{version}.dist-info/METADATA")
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
