"""Where `medusa update --from` finds a wheel: a file, a folder, or an index of one's own.

Medusa Chat is on no public index, so anybody could take its name there: a public one is refused.
"""

import hashlib
import re
import zipfile
from email.parser import HeaderParser
from pathlib import Path
from urllib.parse import urlsplit

from installer.bootstrap import request
from installer.bootstrap.files import copy_whole, write_whole
from installer.bootstrap.folders import ProgramData
from installer.bootstrap.hosts import is_near
from installer.bootstrap.index import fetch_wheel
from installer.bootstrap.installation import CONSTRAINTS, Wanted
from installer.bootstrap.program import Program
from installer.bootstrap.settings import read_settings
from installer.bootstrap.sources import shown_address
from installer.bootstrap.terminal import ask, is_conversation
from installer.bootstrap.version import newest_wheel, version_key, wheel_version
from installer.console import say
from installer.errors import SetupError

MAX_TEXT_BYTES = 1 << 20
PACKED_CONSTRAINTS = f"medusa_core/_resources/{CONSTRAINTS}"


def find_update(data: ProgramData, program: Program, source: str, *, agrees: bool) -> Wanted:
    """The newest wheel at a place, checked to be one of Medusa Chat.

    Args:
        data: a wheel of an index is kept there.
        program: the package.
        source: a file, a folder or an address.
        agrees: don't ask whether a wheel of an index is the right one.

    Raises:
        SetupError: there is none, or the place isn't one to trust.
    """
    packages = None
    if re.match(r"https?://", source, re.IGNORECASE):
        wheel = _from_index(data, source, agrees=agrees)
    else:
        path = Path(source).expanduser().absolute()
        if path.is_dir():
            packages = path
        wheel = _from_folder(path)
    checked_version(wheel)
    constraints = _constraints(data, program, wheel)
    return request.of_wheel(data, program, wheel, constraints, packages=packages)


def checked_version(wheel: Path) -> str:
    """The version of a wheel, by its name and by what is in it.

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


def _from_index(data: ProgramData, address: str, *, agrees: bool) -> Path:
    """Fetch a wheel from an index that is near, or that the user set as mirror.

    Raises:
        SetupError: it is another one, or has none, or the user doesn't want what it has.
    """
    shown = shown_address(address)
    is_mirror = address.rstrip("/") == read_settings(data).mirror.rstrip("/")
    try:
        host = urlsplit(address).hostname or ""
    except ValueError as error:
        raise SetupError(f"{shown} is no address of a package index.", "Check it.") from error
    if not is_mirror and not is_near(host):
        raise SetupError(
            f"{shown} is a public index. Medusa Chat isn't published on one, so anybody could "
            "offer something else there under its name.",
            "Use the file of a release: medusa update --from FILE\n"
            "If the index is your own, name it as the mirror first:\n"
            f"medusa update --mirror {shown}",
        )
    wheel = fetch_wheel(address, data.wheels / "fetched")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    say(f"{wheel.name} of {shown}\n  sha256 {digest}")
    question = "Is that the one you expect?"
    if not agrees and (not is_conversation() or not ask(question, default=False)):
        raise SetupError("Nothing was installed.", "medusa update --from FILE")
    return wheel


def _constraints(data: ProgramData, program: Program, wheel: Path) -> Path:
    """The versions of its packages: packed in the wheel, beside it, or those of the package."""
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
    """A small text in a wheel; None if it isn't there.

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
