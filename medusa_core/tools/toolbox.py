"""All tools of the user: built-in ones and those of servers, their settings and their calls."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import NamedTuple

from medusa_core.chats.rounds import ToolResult
from medusa_core.errors import ToolError
from medusa_core.i18n import tr
from medusa_core.system.key_store import KeyStore
from medusa_core.system.loopback import is_loopback_url
from medusa_core.tools.approvals import Approvals
from medusa_core.tools.arguments import visible_text
from medusa_core.tools.builtin_tool import (
    BuiltinTool,
    CallContext,
    builtin_tools,
    host_of_call,
    run_builtin,
)
from medusa_core.tools.mcp.connections import Connections
from medusa_core.tools.mcp.limits import DEFAULT_LIMITS, Limits
from medusa_core.tools.offered_tool import OfferedTool, ToolNames, builtin_id, server_tool_id
from medusa_core.tools.results import RunningCall, text_result
from medusa_core.tools.secrets import move_secrets, remove_secrets, save_secret
from medusa_core.tools.servers import ToolServer, check_server, read_servers, write_servers
from medusa_core.tools.status import ServerState
from medusa_core.tools.tool import Tool
from medusa_core.tools.tool_settings import ToolSettings
from medusa_core.tools.web.settings import WebSettings, checked_settings

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """Settings, connection state and tools of a server.

    Attributes:
        server: Its settings.
        state: State of the connection.
        reason: Why the connection failed; empty otherwise.
        hint: What the user can do about it; may be empty.
        tools: Tools that the server offers now.
        log: Last lines of the server's log.
    """

    server: ToolServer
    state: ServerState = ServerState.OFF
    reason: str = ""
    hint: str = ""
    tools: tuple[OfferedTool, ...] = ()
    log: tuple[str, ...] = ()


class BuiltinStatus(NamedTuple):
    """A built-in tool.

    Attributes:
        builtin: The tool.
        is_on: Whether the user has switched it on.
        missing_setting: A sentence about a setting that the tool still needs; or empty.
    """

    builtin: BuiltinTool
    is_on: bool
    missing_setting: str = ""


class Toolbox:
    """The tools of the user. Servers run while they are switched on, until `close`.

    Attributes:
        path: The file of servers, `mcp.json`.
        approvals: Which calls the user has approved.
        problems: Why settings or entries of them can't be used, a sentence each.
    """

    def __init__(
        self,
        folder: Path,
        limits: Limits = DEFAULT_LIMITS,
        store: KeyStore | None = None,
        *,
        is_offline: bool = False,
    ) -> None:
        """Read the settings, and begin to connect the servers that are switched on.

        Args:
            folder: Folder of `mcp.json`, `tools.json`, `approvals.json` and saved keys.
            limits: Limits of each server.
            store: Where secrets of servers are; None for the keyring.
            is_offline: Whether offline mode is on, so that no address is reached.
        """
        self.path = folder / "mcp.json"
        self._settings = ToolSettings(folder / "tools.json")
        self.approvals = Approvals(folder / "approvals.json")
        self._is_offline = is_offline
        self._lock = threading.Lock()
        self._change_lock = threading.RLock()  # a form saves in a thread of its own
        self._listeners: list[Callable[[], None]] = []
        self._servers: tuple[ToolServer, ...] = ()
        self.problems: tuple[str, ...] = ()
        self._store = store or KeyStore(folder)
        self._connections = Connections(self._store, limits, self._changed)
        self.reload()

    def reload(self) -> None:
        """Read `mcp.json` again, which the user may have edited."""
        found: tuple[ToolServer, ...] = ()
        try:
            found, problems = read_servers(self.path)
        except ToolError as error:
            problems = (error.message,)
        own = (self._settings.problem,) if self._settings.problem else ()
        self.problems = (*own, *problems)
        self._use(found)

    def all_tools(self) -> tuple[OfferedTool, ...]:
        """Return all tools that can be called now, in a stable order."""
        builtins = (
            self._builtin(spec)
            for spec, is_on, missing_setting in self.builtins()
            if is_on and not missing_setting
        )
        return (*builtins, *(tool for status in self.servers() for tool in status.tools))

    def chosen(self, ids: Collection[str]) -> tuple[OfferedTool, ...]:
        """Return the tools with these ids that can be called now, in the order of `all_tools`."""
        return tuple(tool for tool in self.all_tools() if tool.id in ids)

    def named(self, names: Iterable[str]) -> tuple[OfferedTool, ...]:
        """Return the tools that a command line names, in the order of `all_tools`.

        Args:
            names: Each the id of a tool, a pattern of ids such as `time/*`, a server, or the name
                or label of a built-in tool, which is then offered even if it is switched off.
        """
        wanted = tuple(names)
        builtins = (
            self._builtin(spec)
            for spec, is_on, missing_setting in self.builtins()
            if not missing_setting
            and (
                not {spec.name, spec.label.casefold(), builtin_id(spec.name)}.isdisjoint(wanted)
                or (is_on and any(fnmatchcase(builtin_id(spec.name), one) for one in wanted))
            )
        )
        of_servers = (
            tool
            for status in self.servers()
            for tool in status.tools
            if status.server.name in wanted or any(fnmatchcase(tool.id, one) for one in wanted)
        )
        return (*builtins, *of_servers)

    def run(
        self, tool: OfferedTool, arguments: str, on_done: Callable[[ToolResult], None]
    ) -> RunningCall:
        """Run a call, which the user has approved.

        Args:
            tool: Tool to call.
            arguments: Arguments as a JSON object, as text.
            on_done: Called exactly once, from another thread; errors of the call are results, too.
        """
        context = CallContext(self.web, threading.Event())
        call = RunningCall(on_done, context.stop.set)
        if tool.server is not None:
            self._connections.call(tool.server, tool.source, arguments, call)
        else:
            work = partial(_run_builtin, call, tool.source.name, arguments, context)
            threading.Thread(target=work, name="tool", daemon=True).start()
        return call

    def servers(self) -> tuple[ServerStatus, ...]:
        """Return all servers, in the order of the file."""
        with self._lock:
            servers = self._servers
        connections = self._connections.connections()
        names = ToolNames(builtin_tools().names)
        statuses = []
        for server in servers:
            connection = connections.get(server.name)
            if connection is None:
                statuses.append(self._unconnected(server))
                continue
            status = connection.status
            tools = tuple(_offered(server, tool, names) for tool in status.tools)
            statuses.append(
                ServerStatus(
                    server, status.state, status.reason, status.hint, tools, connection.log
                )
            )
        return tuple(statuses)

    def builtins(self) -> tuple[BuiltinStatus, ...]:
        """Return all built-in tools."""
        switched_on, web = self._settings.builtin_on, self.web
        return tuple(
            BuiltinStatus(spec, spec.name in switched_on, spec.missing_setting(web))
            for spec in builtin_tools().specs
        )

    def add(self, *servers: ToolServer) -> None:
        """Add servers.

        Raises:
            ToolError: A server can't be used, or its name is taken; or `mcp.json` can't be written.
        """

        def added(known: tuple[ToolServer, ...]) -> Iterable[ToolServer]:
            names = {server.name for server in known}
            for server in servers:
                check_server(server)
                if server.name in names:
                    raise ToolError(
                        tr("There is already a server {0}.", repr(server.name)),
                        tr("Choose another name."),
                    )
                names.add(server.name)
            return (*known, *servers)

        self._change(added)

    def set_enabled(self, name: str, on: bool) -> None:
        """Switch a server on, which starts or reaches it, or off.

        Raises:
            ToolError: There is no such server, `mcp.json` can't be written, or has another server
                of this name than `servers` has shown; then that is shown.
        """
        shown = [replace(server, is_enabled=on) for server in self._named(name)]

        def switched(server: ToolServer) -> tuple[ToolServer, ...]:
            found = replace(server, is_enabled=on)
            if on and found not in shown:
                self.reload()
                raise ToolError(
                    tr("The server {0} has been changed in mcp.json.", repr(name)),
                    tr("Look at what it starts now, then switch it on."),
                )
            return (found,)

        self._change_one(name, switched)

    def remove(self, name: str) -> None:
        """Remove a server and its secrets; the keyring may block.

        Raises:
            ToolError: There is no such server, or `mcp.json` can't be written.
            StorageError: The secrets can't be removed.
        """
        removed = self._named(name)
        self._change_one(name, lambda _: ())
        for server in removed:
            remove_secrets(server, self._store)

    def replace(self, name: str, server: ToolServer) -> None:
        """Replace a server's settings; secrets that they no longer refer to are removed.

        Raises:
            ToolError: There is no such server, the settings can't be used, the new name is taken,
                or `mcp.json` can't be written.
            StorageError: The secrets can't be saved for the new name, or others not removed.
        """
        check_server(server)
        before = self._named(name)
        if server.name != name and any(server.name == one.name for one in self._servers):
            raise ToolError(
                tr("There is already a server {0}.", repr(server.name)), tr("Choose another name.")
            )
        if server.name != name:
            move_secrets(replace(server, name=name), server.name, self._store)
        self._change_one(name, lambda _: (server,))
        for replaced in before:
            remove_secrets(replaced, self._store, server)

    def restart(self, name: str) -> None:
        """Connect a server again, if it is switched on."""
        self._connections.restart(name)

    def save_secret(self, server: str, name: str, value: str) -> str:
        """Save the value of a variable or header in the keyring; blocks.

        Args:
            server: Name of the server, which alone can use it.
            name: Name of the variable or header.
            value: The secret.

        Returns:
            The reference to it for the server's settings, `${keyring:NAME}`.

        Raises:
            StorageError: It can't be saved.
        """
        return save_secret(self._store, server, name, value)

    def set_builtin(self, name: str, on: bool) -> None:
        """Switch a built-in tool on or off.

        Raises:
            RequestError: There is no such tool.
            ToolError: The settings can't be written.
        """
        self._settings.set_builtin(builtin_tools().get(name).name, on)
        self._changed()

    @property
    def web(self) -> WebSettings:
        """Settings for requests to the web."""
        return replace(self._settings.web, is_offline=self._is_offline)

    def set_web(self, web: WebSettings) -> None:
        """Change the settings for requests to the web, but for offline mode.

        Raises:
            ToolError: An address is invalid, or the settings can't be written.
        """
        self._settings.set_web(checked_settings(web))
        self._changed()

    def set_offline(self, is_offline: bool) -> None:
        """Forbid tools to reach other machines, or allow it again."""
        self._is_offline = is_offline
        with self._lock:
            servers = self._servers
        self._use(servers)

    def listen(self, on_change: Callable[[], None]) -> Callable[[], None]:
        """Call a function, from any thread, after servers, their states, logs or tools changed.

        Returns:
            A function that ends this.
        """
        self._listeners.append(on_change)
        return lambda: self._listeners.remove(on_change)

    def close(self) -> None:
        """End all servers and calls; waits for them in bounded time."""
        self._connections.close()

    def _builtin(self, spec: BuiltinTool) -> OfferedTool:
        """Return a built-in tool."""
        host = partial(self._host, spec.name)
        return OfferedTool(spec.tool, builtin_id(spec.name), None, spec.label, spec.tool, host)

    def _host(self, name: str, arguments: str) -> str:
        """Return the host that a call of a built-in tool reaches; empty for none."""
        return host_of_call(name, arguments, self.web)

    def _named(self, name: str) -> tuple[ToolServer, ...]:
        """Return the server of a name, if there is one."""
        with self._lock:
            return tuple(server for server in self._servers if server.name == name)

    def _change_one(
        self, name: str, change: Callable[[ToolServer], tuple[ToolServer, ...]]
    ) -> None:
        """Replace a server by others."""

        def changed(known: tuple[ToolServer, ...]) -> Iterable[ToolServer]:
            if all(server.name != name for server in known):
                raise ToolError(tr("There is no server {0}.", repr(name)))
            for server in known:
                yield from change(server) if server.name == name else (server,)

        self._change(changed)

    def _change(self, change: Callable[[tuple[ToolServer, ...]], Iterable[ToolServer]]) -> None:
        """Change the servers of `mcp.json` as it is now: the user may have edited it."""
        with self._change_lock:
            servers = tuple(change(read_servers(self.path).servers))
            write_servers(self.path, servers)
            self._use(servers)

    def _use(self, servers: tuple[ToolServer, ...]) -> None:
        """Use other servers."""
        with self._lock:
            self._servers = servers
        self._connections.use(server for server in servers if not self._is_forbidden(server))
        self._changed()

    def _is_forbidden(self, server: ToolServer) -> bool:
        """Whether offline mode forbids to connect a server."""
        return self._is_offline and bool(server.url) and not is_loopback_url(server.url)

    def _unconnected(self, server: ToolServer) -> ServerStatus:
        """Return the status of a server without a connection."""
        if server.is_enabled and self._is_forbidden(server):
            reason = tr("Offline mode is on: nothing is sent to other machines.")
            hint = tr("Switch it off in the model manager, or unset HF_HUB_OFFLINE.")
            return ServerStatus(server, ServerState.FAILED, reason, hint)
        return ServerStatus(server)

    def _changed(self) -> None:
        """Tell all listeners."""
        for listener in tuple(self._listeners):
            listener()


def _offered(server: ToolServer, source: Tool, names: ToolNames) -> OfferedTool:
    """Return a tool of a server under the name by which models call it."""
    tool = source._replace(name=names.name(server.name, source.name))
    label = " ".join(visible_text(f"{server.name} · {source.name}").split())
    return OfferedTool(tool, server_tool_id(server.name, source.name), server, label, source)


def _run_builtin(call: RunningCall, name: str, arguments: str, context: CallContext) -> None:
    """Run a built-in tool and pass on its result."""
    try:
        result = run_builtin(name, arguments, context)
        bounded = text_result(result.text, is_error=result.is_error, duration_s=result.duration_s)
    except Exception as error:
        log.exception("the tool %s failed", name)
        bounded = text_result(f"The call failed: {error}", is_error=True)
    call.finish(bounded)
