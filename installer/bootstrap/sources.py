"""Where packages come from: a mirror, uv's variables, pip's configuration, or the usual index.

uv reads nothing of pip's configuration, so a network whose own index is set there would be left
out.
"""

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from urllib.request import url2pathname

from installer.bootstrap.hosts import is_near
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
    """Where uv looks for packages.

    Attributes:
        options: for uv's command line.
        env: variables for uv.
        described: in a few words.
        is_folder: nothing but a folder is looked at.
    """

    options: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    described: str = "the public package index"
    is_folder: bool = False

    def variables(self) -> dict[str, str]:
        """The same for a uv that somebody else calls."""
        given = iter(self.options)
        found: dict[str, list[str]] = {}
        for option in given:
            value = "1" if option == "--no-index" else next(given)
            found.setdefault(_VARIABLES[option], []).append(value)
        between = {"UV_FIND_LINKS": ","}
        joined = {name: between.get(name, " ").join(values) for name, values in found.items()}
        return {**self.env, **joined}

    def with_folder(self, folder: Path) -> "Sources":
        """The same, and a folder of wheels beside them."""
        options = (*self.options, "--find-links", str(folder))
        return Sources(options, self.env, self.described, self.is_folder)


def find_sources(
    mirror: str, environ: Mapping[str, str] = os.environ, system: str = sys.platform
) -> Sources:
    """What holds here: the mirror if one is set, else uv's variables, else pip's configuration.

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
    """A mirror's.

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
    """An address without a name and a password in it; any other text as it is."""
    if not _ADDRESS.match(address):
        return address
    try:
        parts = urlsplit(address)
        host = parts.netloc.rpartition("@")[2]
        return urlunsplit((parts.scheme, host, parts.path, "", ""))
    except ValueError:
        return address


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
    """Pip's settings as uv's options."""
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
