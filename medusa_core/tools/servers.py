"""Tool servers (MCP) and their settings in `mcp.json`, the form of Claude Desktop and LM Studio."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from medusa_core.errors import ToolError
from medusa_core.i18n import tr
from medusa_core.system.files.atomic_file import replace_file
from medusa_core.system.files.disk_errors import disk_errors

_KEY = "mcpServers"
_FIELDS = frozenset(("command", "args", "env", "cwd", "url", "headers", "timeout_s", "disabled"))
_MOST_BYTES = 1 << 20
_MOST_S = 3600.0
_HINT = tr('Choose a file with {"mcpServers": {…}}, as Claude Desktop and LM Studio write it.')

# Variables that decide which code runs: where programs, libraries and packages come from.
_DECIDES_CODE = re.compile(
    r"PATH|PATHEXT|COMSPEC|SHELL|ENV|CLASSPATH|GO(PATH|ROOT|BIN|PROXY|FLAGS)|(PYTHON|PERL|RUBY)\w+|"
    r"(LD|DYLD|BASH|NODE|NPM|YARN|BUN|DENO|UV|PIP|PIPX|GEM|BUNDLE|_?JAVA|JDK|DOTNET|CORECLR|GIT"
    r"|CARGO|LUA|DOCKER)_\w+",
    re.IGNORECASE,
)
_SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|CREDENTIAL|AUTH|API_?KEY", re.IGNORECASE)

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ToolServer:
    """A tool server: a program that is started, or an address.

    Attributes:
        name: Name that the user gave.
        command: Program to start; empty for an address.
        args: Its arguments.
        env: Environment variables of the program.
        cwd: Folder in which it starts; empty for the user's home folder.
        url: Address of a server that already runs; empty for a program.
        headers: HTTP headers for the address.
        timeout_s: Longest time of a call in seconds; 0 for the default.
        is_enabled: Whether the user has switched it on. Nothing is started or reached before.
    """

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Pairs = ()
    cwd: str = ""
    url: str = ""
    headers: Pairs = ()
    timeout_s: float = 0.0
    is_enabled: bool = False

    @property
    def command_line(self) -> str:
        """The command line with its variables, or the address, for display.

        Values of headers and variables aren't shown, except of variables that decide which code
        runs: `NODE_OPTIONS=--require=other.js npx server` is another program.
        """
        if self.url:
            return self.url
        shown = dict(self.code_variables)
        variables = (
            f"{name}={shlex.quote(shown[name]) if name in shown else '…'}" for name, _ in self.env
        )
        return " ".join((*variables, shlex.join((self.command, *self.args))))

    @property
    def code_variables(self) -> Pairs:
        """Variables that decide which code runs, with their values."""
        return tuple(
            (name, value)
            for name, value in self.env
            if _DECIDES_CODE.fullmatch(name) and not _SECRET.search(name)
        )


class ServersRead(NamedTuple):
    """Result of reading a file of servers.

    Attributes:
        servers: The usable servers, in the order of the file.
        refused: A sentence for each unusable entry.
    """

    servers: tuple[ToolServer, ...]
    refused: tuple[str, ...]


def read_servers(path: Path) -> ServersRead:
    """Read the servers of `mcp.json`; none if there is no file.

    Raises:
        ToolError: The file can't be read, or has another form.
    """
    servers: list[ToolServer] = []
    refused: list[str] = []
    for name, entry in _read_json(path)[_KEY].items():
        try:
            servers.append(_server(name, entry))
        except ValueError as error:
            reason = error.args[0]
            refused.append(tr("The server {0} can't be used: {1}.", repr(name[:80]), reason))
    return ServersRead(tuple(servers), tuple(refused))


def _read_json(path: Path) -> dict[str, Any]:
    """Read the file, which has an object of entries; one without entries if there is no file.

    Raises:
        ToolError: The file can't be read, or has another form.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        return {_KEY: {}}
    except OSError as error:
        raise ToolError(tr("{0} can't be read: {1}.", path, error.strerror or error)) from error
    if len(raw) > _MOST_BYTES:
        raise ToolError(tr("{0} is too large for settings of tools.", path.name), _HINT)
    try:
        found = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ToolError(tr("{0} is no valid JSON: {1}.", path.name, error), _HINT) from error
    if not isinstance(found, dict) or not isinstance(found.get(_KEY), dict):
        raise ToolError(tr("{0} describes no tool servers.", path.name), _HINT)
    return found


def import_servers(path: Path, known: Iterable[ToolServer]) -> ServersRead:
    """Read the servers of another program's file; all of them are switched off.

    Args:
        path: The file of Claude Desktop, LM Studio or another program.
        known: Servers that are already there; equal ones are left out, and another server of the
            same name gets a number.

    Raises:
        ToolError: The file can't be read, or has another form.
    """
    found = read_servers(path)
    taken = {server.name: replace(server, is_enabled=False) for server in known}
    new: list[ToolServer] = []
    for server in found.servers:
        added = replace(server, is_enabled=False)
        if any(replace(added, name=name) == other for name, other in taken.items()):
            continue
        number = 2
        while added.name in taken:
            added = replace(added, name=f"{server.name} {number}")
            number += 1
        taken[added.name] = added
        new.append(added)
    return found._replace(servers=tuple(new))


def write_servers(path: Path, servers: Iterable[ToolServer]) -> None:
    """Write `mcp.json`, readable by the user alone.

    What the user wrote into the file stays: entries that can't be used, and unknown keys.

    Raises:
        ToolError: The file can't be read or written, or has another form.
    """
    found = _read_json(path)
    entries = {name: entry for name, entry in found[_KEY].items() if not _is_usable(name, entry)}
    for server in servers:
        before = found[_KEY].get(server.name)
        kept = before if isinstance(before, dict) else {}
        unknown = {key: value for key, value in kept.items() if key not in _FIELDS}
        entries[server.name] = {**unknown, **_as_json(server)}
    text = json.dumps({**found, _KEY: entries}, ensure_ascii=False, indent=2) + "\n"
    with disk_errors(ToolError, path, tr("Make space, or check who may write there.")):
        replace_file(path, [text.encode("utf-8", "replace")])


def check_server(server: ToolServer) -> None:
    """Check a server that the user describes.

    Raises:
        ToolError: It has no name, or not exactly one of command and address, or bad values.
    """
    reason = "" if server.name.strip() else tr("it needs a name")
    try:
        _server(server.name, _as_json(server))
    except ValueError as error:
        reason = error.args[0]
    if reason:
        raise ToolError(tr("The server {0} can't be used: {1}.", repr(server.name[:80]), reason))


def _server(name: str, raw: Any) -> ToolServer:
    """Convert an entry; a server without `"disabled": false` is off, as in other programs' files.

    Raises:
        ValueError: A value has another type, or there is not exactly one of command and address.
    """
    if not isinstance(raw, dict):
        raise ValueError(tr("its entry is no object"))  # noqa: TRY004 - as for all entries
    command, url = _text(raw, "command"), _text(raw, "url")
    if bool(command) == bool(url):
        raise ValueError(tr("it needs either a command or a url"))
    if url and urlsplit(url).scheme not in ("http", "https"):
        raise ValueError(tr("its url is no http or https address"))
    args = raw.get("args") or []
    if not isinstance(args, list) or not all(isinstance(arg, str) for arg in args):
        raise ValueError(tr("args must be a list of texts"))
    if any("\0" in text for text in (name, command, *args)):
        raise ValueError(tr("it holds a null character"))
    return ToolServer(
        name,
        command,
        tuple(args),
        _pairs(raw, "env"),
        _text(raw, "cwd"),
        url,
        _pairs(raw, "headers"),
        _seconds(raw, "timeout_s"),
        is_enabled=raw.get("disabled") is False,
    )


def _is_usable(name: str, raw: Any) -> bool:
    """Whether an entry describes a server."""
    try:
        _server(name, raw)
    except ValueError:
        return False
    return True


def _text(raw: dict[str, Any], key: str) -> str:
    """Return a text of an entry; empty if it is missing."""
    value = raw.get(key)
    if value is not None and not isinstance(value, str):
        raise ValueError(tr("{0} must be a text", key))
    return value or ""


def _seconds(raw: dict[str, Any], key: str) -> float:
    """Return a time of an entry; 0 if it is missing."""
    value = raw.get(key, 0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST_S:
        raise ValueError(tr("{0} must be a number of seconds up to {1:.0f}", key, _MOST_S))
    return float(value)


def _pairs(raw: dict[str, Any], key: str) -> Pairs:
    """Return names and values of an entry."""
    values = raw.get(key) or {}
    if not isinstance(values, dict) or not all(isinstance(v, str) for v in values.values()):
        raise ValueError(tr("{0} must be an object of texts", key))
    return tuple(values.items())


def _as_json(server: ToolServer) -> dict[str, Any]:
    """Convert a server to its entry, without empty values."""
    raw: dict[str, Any] = {
        "command": server.command,
        "args": list(server.args),
        "env": dict(server.env),
        "cwd": server.cwd,
        "url": server.url,
        "headers": dict(server.headers),
        "timeout_s": server.timeout_s,
    }
    filled = {key: value for key, value in raw.items() if value}
    return {**filled, "disabled": not server.is_enabled}
