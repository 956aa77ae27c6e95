"""pip's settings of where packages come from: its files, then its variables.

Source: pip's documentation, "Configuration": global, user, the file of PIP_CONFIG_FILE, and
variables, each over those before; of a file `[install]` over `[global]`.
"""

import configparser
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_SECTIONS = ("global", "install")
_NAMES = ("index-url", "extra-index-url", "find-links", "no-index", "trusted-host", "cert", "proxy")
_YES = ("1", "true", "yes", "y", "on", "t")
MAX_FILE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class PipConfiguration:
    """pip's configuration.

    Attributes:
        index: address of the index; empty for the public one.
        extra_indexes: asked beside it.
        find_links: folders and pages with links.
        no_index: no index is asked.
        trusted_hosts: whose certificates aren't checked.
        certificate: file of certificates; empty for none.
        proxy: its address; empty for none.
    """

    index: str
    extra_indexes: tuple[str, ...]
    find_links: tuple[str, ...]
    no_index: bool
    trusted_hosts: tuple[str, ...]
    certificate: str
    proxy: str


def read_pip_configuration(environ: Mapping[str, str], system: str) -> PipConfiguration:
    """Read pip's files and variables; an unreadable file is ignored."""
    values: dict[tuple[str, str], str] = {}
    for path in _files(environ, system):
        values |= _read(path)
    found = {}
    for name in _NAMES:
        variable = environ.get("PIP_" + name.upper().replace("-", "_"), "")
        in_files = values.get(("install", name), values.get(("global", name), ""))
        found[name] = variable or in_files
    return PipConfiguration(
        index=found["index-url"].strip(),
        extra_indexes=tuple(found["extra-index-url"].split()),
        find_links=tuple(os.path.expanduser(one) for one in found["find-links"].split()),  # noqa: PTH111
        no_index=found["no-index"].strip().lower() in _YES,
        trusted_hosts=tuple(found["trusted-host"].split()),
        certificate=found["cert"].strip(),
        proxy=found["proxy"].strip(),
    )


def _files(environ: Mapping[str, str], system: str) -> Iterator[Path]:
    named = environ.get("PIP_CONFIG_FILE", "")
    if named == os.devnull:
        return
    home = Path(environ.get("USERPROFILE" if os.name == "nt" else "HOME", "") or Path.home())
    if system == "win32":
        yield Path(environ.get("PROGRAMDATA", "C:/ProgramData")) / "pip" / "pip.ini"
        yield home / "pip" / "pip.ini"
        yield Path(environ.get("APPDATA", "") or home / "AppData/Roaming") / "pip" / "pip.ini"
    else:
        folders = environ.get("XDG_CONFIG_DIRS", "") or "/etc/xdg"
        if system == "darwin":
            folders = "/Library/Application Support"
        for folder in reversed(folders.split(":")):
            yield Path(folder) / "pip" / "pip.conf"
        yield Path("/etc/pip.conf")
        yield home / ".pip" / "pip.conf"
        own = Path(environ.get("XDG_CONFIG_HOME", "") or home / ".config") / "pip" / "pip.conf"
        mac = home / "Library" / "Application Support" / "pip"
        yield mac / "pip.conf" if system == "darwin" and mac.is_dir() else own
    if named:
        yield Path(named)


def _read(path: Path) -> dict[tuple[str, str], str]:
    parser = configparser.RawConfigParser()
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            return {}
        parser.read_string(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, configparser.Error):
        return {}
    return {
        (section, name.replace("_", "-")): value
        for section in _SECTIONS
        if parser.has_section(section)
        for name, value in parser.items(section)
        if name.replace("_", "-") in _NAMES
    }
