"""Where packages come from: a mirror, uv's variables, pip's configuration, or the usual index.

uv reads nothing of pip's configuration, so a network whose own index is set there would be left
out.
"""

import ipaddress
import os
import re
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from urllib.request import url2pathname

from installer.bootstrap.pip_configuration import read_pip_configuration
from installer.errors import SetupError

_UV_VARIABLES = (
    "UV_DEFAULT_INDEX",
    "UV_INDEX",
    "UV_INDEX_URL",
    "UV_EXTRA_INDEX_URL",
    "UV_FIND_LINKS",
)
_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")


@dataclass(frozen=True, slots=True)
class Sources:
    """Sources of packages for uv.

    Attributes:
        env: Variables for uv: each user of a computer may read command lines, and an address may
            hold a password.
        described: The same in a few words.
        is_folder: Nothing but folders is looked at.
    """

    env: Mapping[str, str] = field(default_factory=dict)
    described: str = "the public package index"
    is_folder: bool = False

    @property
    def options(self) -> tuple[str, ...]:
        """Return what uv has no variable for."""
        return ("--no-index",) if self.is_folder else ()

    def variables(self) -> dict[str, str]:
        """Return all of it for a uv that somebody else calls."""
        return {**self.env, **({"UV_OFFLINE": "1"} if self.is_folder else {})}

    def with_folder(self, folder: Path) -> "Sources":
        """Return the same, and a folder of wheels beside them."""
        places = filter(None, (self.env.get("UV_FIND_LINKS"), _place(folder)))
        return replace(self, env={**self.env, "UV_FIND_LINKS": ",".join(places)})


def find_sources(
    mirror: str, environ: Mapping[str, str] = os.environ, system: str = sys.platform
) -> Sources:
    """Return the configured sources: the mirror, else uv's variables, else pip's configuration.

    Args:
        mirror: a folder or an address; empty for none.
        environ: environment variables.
        system: `sys.platform`.

    Raises:
        SetupError: the mirror is neither a folder with packages nor an address.
    """
    if mirror.strip():
        return mirror_sources(mirror.strip())
    if any(environ.get(name) for name in _UV_VARIABLES):
        return Sources(described="the index of uv's variables")
    return _of_pip(environ, system)


def mirror_sources(mirror: str) -> Sources:
    """Return the sources of a mirror.

    Raises:
        SetupError: it is neither a folder with packages nor an address.
    """
    if _ADDRESS.match(mirror) and not mirror.lower().startswith("file://"):
        return _of_address(mirror)
    folder = _local_folder(mirror)
    if not folder.is_dir():
        raise SetupError(
            f"{mirror} is no folder.", "Name a folder of packages, or the address of an index."
        )
    env = {}
    if (folder / "python").is_dir():
        env["UV_PYTHON_INSTALL_MIRROR"] = (folder / "python").as_uri()
    if any(folder.glob("*.whl")):
        env["UV_FIND_LINKS"] = _place(folder)
        return Sources(env, f"the folder {folder}", is_folder=True)
    if next(folder.glob("*/"), None) is None:
        raise SetupError(f"{folder} holds no packages (*.whl).", "Name a folder of packages.")
    return Sources({**env, "UV_DEFAULT_INDEX": folder.as_uri()}, f"the folder {folder}")


def shown_address(address: str) -> str:
    """Return an address without user name and password; any other text unchanged."""
    if not _ADDRESS.match(address):
        return address
    try:
        parts = urlsplit(address)
        host = parts.netloc.rpartition("@")[2]
        return urlunsplit((parts.scheme, host, parts.path, "", ""))
    except ValueError:
        return address


def _place(folder: Path) -> str:
    """Return a folder as uv's variable takes it, which divides places by commas."""
    return folder.as_uri() if "," in str(folder) else str(folder)


def _of_address(address: str) -> Sources:
    try:
        parts = urlsplit(address)
        scheme, host = parts.scheme.lower(), parts.hostname or ""
    except ValueError:
        scheme, host = "", ""
    shown = shown_address(address)
    if scheme not in ("http", "https") or not host or re.search(r"\s", address):
        raise SetupError(
            f"{shown} is no address of a package index.", "It begins with https://, as for pip."
        )
    if scheme == "http" and not is_near(host):
        raise SetupError(
            f"What comes from {shown} could be changed on its way.", "Use https:// for it."
        )
    return Sources({"UV_DEFAULT_INDEX": address}, shown)


def _local_folder(mirror: str) -> Path:
    if mirror.lower().startswith("file://"):
        parts = urlsplit(mirror)
        return Path(url2pathname(parts.path))
    return Path(os.path.expanduser(mirror)).absolute()  # noqa: PTH111


def _of_pip(environ: Mapping[str, str], system: str) -> Sources:
    """Return pip's settings as uv's variables."""
    pip = read_pip_configuration(environ, system)
    extra = () if pip.no_index else pip.extra_indexes
    env = {
        "UV_DEFAULT_INDEX": "" if pip.no_index else pip.index,
        "UV_INDEX": " ".join(extra),
        "UV_FIND_LINKS": ",".join(pip.find_links),
        # As pip does: every index is asked, and the versions are fixed anyway.
        "UV_INDEX_STRATEGY": "unsafe-best-match" if extra else "",
    }
    places = {name: value for name, value in env.items() if value}
    others = {
        "UV_INSECURE_HOST": " ".join(pip.trusted_hosts),
        "SSL_CERT_FILE": "" if "SSL_CERT_FILE" in environ else pip.certificate,
    }
    if not {"HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} & set(environ):
        others["ALL_PROXY"] = pip.proxy
    named = {name: value for name, value in others.items() if value}
    described = "pip's configuration" if places else Sources().described
    return Sources({**places, **named}, described, is_folder=pip.no_index)


def is_near(host: str) -> bool:
    """Return whether a host is known and all its addresses are private or of this computer."""
    addresses = _addresses(host)
    return bool(addresses) and all(_is_private(address) for address in addresses)


def _addresses(host: str) -> list[str]:
    try:
        return [str(ipaddress.ip_address(host.strip("[]")))]
    except ValueError:
        pass
    try:
        return [str(found[4][0]) for found in socket.getaddrinfo(host, None)]
    except (OSError, UnicodeError):
        return []


def _is_private(address: str) -> bool:
    found = ipaddress.ip_address(address.partition("%")[0])
    return found.is_loopback or found.is_private or found.is_link_local
