"""Where packages come from: a mirror, uv's variables, pip's configuration, or the usual index.

uv reads nothing of pip's configuration, so a network whose own index is set there would be left
out.
"""

import ipaddress
import os
import re
import socket
import sys
from collections.abc import Mapping, Sequence
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
# What uv's options are called where its environment gives them.
_VARIABLES = {
    "--no-index": "UV_OFFLINE",  # it has no variable of its own
    "--find-links": "UV_FIND_LINKS",
    "--default-index": "UV_DEFAULT_INDEX",
    "--index": "UV_INDEX",
    "--allow-insecure-host": "UV_INSECURE_HOST",
    "--index-strategy": "UV_INDEX_STRATEGY",
}
_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")


@dataclass(frozen=True, slots=True)
class Sources:
    """Sources of packages for uv.

    Attributes:
        places: as uv's options.
        others: further variables for uv.
        described: in a few words.
        is_folder: nothing but a folder is looked at.
    """

    places: tuple[str, ...] = ()
    others: Mapping[str, str] = field(default_factory=dict)
    described: str = "the public package index"
    is_folder: bool = False

    @property
    def options(self) -> tuple[str, ...]:
        """Options for uv's command line, without passwords since all users can read it."""
        words: list[str] = []
        for name, values in self._values().items():
            if name == "--no-index":
                words.append(name)
            elif not any(map(_has_password, values)):
                words += (word for value in values for word in (name, value))
        return tuple(words)

    @property
    def env(self) -> dict[str, str]:
        """Variables for uv in addition to the options."""
        hidden = {
            name: values
            for name, values in self._values().items()
            if any(map(_has_password, values))
        }
        return {**self.others, **_as_variables(hidden)}

    def variables(self) -> dict[str, str]:
        """Return options and variables as variables, for a uv that another program runs."""
        return {**self.others, **_as_variables(self._values())}

    def with_folder(self, folder: Path) -> "Sources":
        """Return the same with an additional folder of wheels."""
        return replace(self, places=(*self.places, "--find-links", str(folder)))

    def _values(self) -> dict[str, list[str]]:
        """Return the values of each option."""
        words, found = iter(self.places), dict[str, list[str]]()
        for name in words:
            found.setdefault(name, []).append("1" if name == "--no-index" else next(words))
        return found


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
        options = ("--no-index", "--find-links", str(folder))
        return Sources(options, env, f"the folder {folder}", is_folder=True)
    if next(folder.glob("*/"), None) is None:
        raise SetupError(f"{folder} holds no packages (*.whl).", "Name a folder of packages.")
    return Sources(("--default-index", folder.as_uri()), env, f"the folder {folder}")


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


def _as_variables(values: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return uv's options as variables."""
    between = {"--find-links": ","}
    return {_VARIABLES[name]: between.get(name, " ").join(each) for name, each in values.items()}


def _has_password(value: str) -> bool:
    """Return whether an address contains a user name, password or token."""
    return value != shown_address(value)


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
    return Sources(("--default-index", address), {}, shown)


def _local_folder(mirror: str) -> Path:
    if mirror.lower().startswith("file://"):
        parts = urlsplit(mirror)
        return Path(url2pathname(parts.path))
    return Path(os.path.expanduser(mirror)).absolute()  # noqa: PTH111


def _of_pip(environ: Mapping[str, str], system: str) -> Sources:
    """Return pip's settings as uv's options."""
    pip = read_pip_configuration(environ, system)
    options: list[str] = []
    if pip.no_index:
        options.append("--no-index")
    elif pip.index:
        options += ["--default-index", pip.index]
    for address in () if pip.no_index else pip.extra_indexes:
        options += ["--index", address]
    for place in pip.find_links:
        options += ["--find-links", place]
    for host in pip.trusted_hosts:
        options += ["--allow-insecure-host", host]
    if "--index" in options:
        # As pip does: every index is asked, and the versions are fixed anyway.
        options += ["--index-strategy", "unsafe-best-match"]
    env = {}
    if pip.certificate and "SSL_CERT_FILE" not in environ:
        env["SSL_CERT_FILE"] = pip.certificate
    if pip.proxy and not {"HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} & set(environ):
        env["ALL_PROXY"] = pip.proxy
    places = any(name in options for name in ("--no-index", "--default-index", "--index"))
    described = "pip's configuration" if places or pip.find_links else Sources().described
    return Sources(tuple(options), env, described, is_folder=pip.no_index)


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
