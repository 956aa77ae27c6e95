"""Tools with the names by which models call them, which are valid, unique and distinguishable."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from medusa_core.tools.approvals import approval_key
from medusa_core.tools.servers import ToolServer
from medusa_core.tools.tool import Tool

_MOST_NAME_CHARS = 64
_INVALID = re.compile(r"[^A-Za-z0-9_-]+")
_BUILTIN = "builtin"
# Characters that people mistake for each other in a name.
_LOOKALIKES = str.maketrans("01i", "oll", "_-")


def _no_host(_: str) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool that can be called now.

    Attributes:
        tool: The tool as the model sees it; its name is unique among all offered tools.
        id: Stable id for settings, `server/tool`; independent of other tools.
        server: Server of the tool; None for a built-in one.
        label: Display name.
        source: The tool as its server describes it, under the server's own name for it.
        host_of: Returns the host that a call with these arguments reaches.
    """

    tool: Tool
    id: str
    server: ToolServer | None
    label: str
    source: Tool
    host_of: Callable[[str], str] = field(default=_no_host, compare=False, repr=False)

    def host(self, arguments: str) -> str:
        """Return the host that needs an approval of its own; empty if the call has none."""
        return self.host_of(arguments)

    def approval_key(self, arguments: str) -> str:
        """Return the key under which an approval of a call is stored.

        The key has the server's own name of the tool, since `tool.name` depends on other servers.
        """
        return approval_key(self.server, self.source, self.host(arguments))


def builtin_id(name: str) -> str:
    """Return the id of a built-in tool."""
    return f"{_BUILTIN}/{name}"


def server_tool_id(server: str, name: str) -> str:
    """Return the id of a server's tool; a slash in the server's name is escaped."""
    escaped = server.replace("%", "%25").replace("/", "%2F")
    return f"{'%62uiltin' if escaped == _BUILTIN else escaped}/{name}"


class ToolNames:
    """Gives each tool a name that the model can call and that imitates no other name."""

    def __init__(self, reserved: Iterable[str]) -> None:
        """Reserve names.

        Args:
            reserved: Names of built-in tools, also of those that are switched off.
        """
        self._taken: set[str] = set()
        self._shapes = {_shape(name) for name in reserved}

    def name(self, server: str, tool: str) -> str:
        """Return the name of a server's tool.

        Args:
            server: Name of the server, which precedes the tool's name if that resembles another.
            tool: Name of the tool on the server.
        """
        name = _INVALID.sub("_", tool)
        if not name.strip("_-") or _shape(name) in self._shapes:
            name = f"{_INVALID.sub('_', server)}_{name}"
        name = _shortened(name)
        number = 2
        base = name
        while name in self._taken or _shape(name) in self._shapes:
            name = _shortened(f"{base}_n{number}")
            number += 1
        self._taken.add(name)
        self._shapes.add(_shape(name))
        return name


def _shape(name: str) -> str:
    """Return a form that is equal for names that look alike."""
    return name.casefold().translate(_LOOKALIKES)


def _shortened(name: str) -> str:
    """Return a name of at most 64 characters; a longer one ends with a hash of it."""
    if len(name) <= _MOST_NAME_CHARS:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: _MOST_NAME_CHARS - 9]}_{digest}"
