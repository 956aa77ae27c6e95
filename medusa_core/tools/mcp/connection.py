"""The connection with one server: its state, log and tools, and calls of them."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import traceback
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from medusa_core import __version__
from medusa_core.chats.rounds import ToolResult
from medusa_core.errors import MedusaError, ToolError
from medusa_core.i18n import tr
from medusa_core.system.extras import TOOLS_EXTRA
from medusa_core.system.key_store import KeyStore
from medusa_core.tools.mcp.limits import Limits
from medusa_core.tools.mcp.redaction import redact
from medusa_core.tools.results import text_result
from medusa_core.tools.secrets import with_secrets
from medusa_core.tools.servers import ToolServer
from medusa_core.tools.status import ServerState
from medusa_core.tools.tool import Tool

if TYPE_CHECKING:
    from mcp.client.session import ClientSession

    from medusa_core.tools.mcp.transport import Transport

log = logging.getLogger(__name__)

_NOTIFY_S = 0.2  # a server that logs without end must not keep the window busy
_MOST_REASON_CHARS = 300
# They log each bad message with its traceback, as often as a server sends one, and all headers.
_SDK_LOGGERS = ("mcp", "client", "httpcore2")


@dataclass(frozen=True, slots=True)
class ConnectionStatus:
    """State of a connection.

    Attributes:
        state: State of the server.
        reason: Why it failed; empty otherwise.
        hint: What the user can do; may be empty.
        tools: Tools under the server's own names.
    """

    state: ServerState = ServerState.STARTING
    reason: str = ""
    hint: str = ""
    tools: tuple[Tool, ...] = ()


class Connection:
    """A connection, used in the thread of its event loop; status and log can be read anywhere.

    Attributes:
        server: Settings of the server.
        status: Present state.
    """

    def __init__(
        self, server: ToolServer, store: KeyStore, limits: Limits, on_change: Callable[[], None]
    ) -> None:
        """Prepare a connection.

        Args:
            server: Settings of the server.
            store: Where its secrets are.
            limits: Limits of the server.
            on_change: Called after each change of state, tools or log.
        """
        self.server = server
        self.status = ConnectionStatus()
        self._known = server  # with the values of secrets, once they were read
        self._store = store
        self._limits = limits
        self._on_change = on_change
        self._lock = threading.Lock()
        self._log: deque[str] = deque(maxlen=limits.log_lines)
        self._is_notifying = False
        self._session: ClientSession | None = None
        self._transport: Transport | None = None

    @property
    def log(self) -> tuple[str, ...]:
        """Last lines of the log."""
        with self._lock:
            return tuple(self._log)

    async def run(self) -> None:
        """Connect, and keep the connection until it fails or is cancelled."""
        try:
            TOOLS_EXTRA.need()
            self._known = await asyncio.to_thread(with_secrets, self.server, self._store)
            await self._connect(self._known)
        except Exception as error:  # noqa: BLE001 - whatever a server does, it fails alone
            self._log_error(logging.INFO, error)
            reason, hint = self._reason_of(error)
            self._set(ConnectionStatus(ServerState.FAILED, reason, hint))

    async def call(self, tool: Tool, arguments: dict[str, Any]) -> ToolResult:
        """Run a call; errors are returned as a result for the model.

        Args:
            tool: The tool as it was approved.
            arguments: Arguments of the call.
        """
        if self._session is None or self.status.state is not ServerState.READY:
            return text_result("The tool's server isn't connected.", is_error=True)
        if tool not in self.status.tools:
            text = "The tool has been changed or removed since it was offered, so it was not run."
            return text_result(text, is_error=True)
        start_s = time.monotonic()
        try:
            async with asyncio.timeout(self.server.timeout_s or self._limits.call_s):
                return await self._call(self._session, tool.name, arguments)
        except TimeoutError:
            seconds = time.monotonic() - start_s
            text = f"The tool didn't answer within {seconds:.0f} s and was stopped."
        except Exception as error:  # noqa: BLE001 - of the protocol, or of the session that ends
            self._log_error(logging.DEBUG, error)
            text = f"The call failed: {self._reason_of(self._failure() or error)[0]}"
        return text_result(text, is_error=True, duration_s=time.monotonic() - start_s)

    async def _connect(self, server: ToolServer) -> None:
        """Connect, and wait for the end of the connection.

        Raises:
            ToolError: It can't be made, or it ended.
        """
        from medusa_core.tools.mcp.http import reach_address
        from medusa_core.tools.mcp.stdio import run_program

        for name in _SDK_LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        opened = (reach_address if server.url else run_program)(server, self._limits, self._add_log)
        try:
            async with opened as self._transport:
                await self._use(self._transport)
        except Exception as error:
            if (failure := self._failure()) is not None:
                raise failure from error
            raise

    async def _use(self, transport: Transport) -> None:
        """Use an open connection until it ends.

        Raises:
            ToolError: It ended.
        """
        from mcp import types
        from mcp.client.session import ClientSession

        from medusa_core.tools.mcp.listing import list_tools

        changed = asyncio.Event()

        async def on_message(message: object) -> None:
            if isinstance(message, types.ToolListChangedNotification):
                changed.set()
            elif isinstance(message, types.LoggingMessageNotification):
                self._add_log(str(message.params.data)[: self._limits.log_chars])

        name = types.Implementation(name="Medusa Chat", version=__version__)
        session = ClientSession(
            transport.read,
            transport.write,
            message_handler=on_message,
            client_info=name,
        )
        async with session:
            late = tr("The server didn't start within {0:.0f} s.", self._limits.start_s)
            async with _time_limit(self._limits.start_s, late):
                await _negotiate(session)
                tools = await list_tools(session, self._limits, self._add_log)
            self._session = session
            self._set(ConnectionStatus(ServerState.READY, tools=tools))
            failed = asyncio.ensure_future(transport.failure.wait())
            try:
                while not failed.done():
                    again = asyncio.ensure_future(changed.wait())
                    await asyncio.wait((failed, again), return_when=asyncio.FIRST_COMPLETED)
                    again.cancel()
                    if changed.is_set() and not failed.done():
                        changed.clear()
                        late = tr("The server doesn't list its tools any more.")
                        async with _time_limit(self._limits.call_s, late):
                            tools = await list_tools(session, self._limits, self._add_log)
                        self._set(ConnectionStatus(ServerState.READY, tools=tools))
                        await asyncio.wait((failed,), timeout=self._limits.relist_s)
                raise failed.result()
            finally:
                failed.cancel()
                self._session = None

    async def _call(
        self, session: ClientSession, name: str, arguments: dict[str, Any]
    ) -> ToolResult:
        """Send a call.

        `ClientSession.call_tool` would check the result by the server's own schema, whose
        patterns and references nobody has checked.
        """
        from mcp import types
        from pydantic import TypeAdapter

        from medusa_core.tools.mcp.answers import result_of

        start_s = time.monotonic()
        params = types.CallToolRequestParams(name=name, arguments=arguments)
        form: TypeAdapter[types.CallToolResult | types.InputRequiredResult] = TypeAdapter(
            types.CallToolResult | types.InputRequiredResult
        )
        raw = await session.send_request(types.CallToolRequest(params=params), form)
        if isinstance(raw, types.InputRequiredResult):
            raise ToolError(tr("The tool asks for more input, which this program can't give."))
        return result_of(raw, time.monotonic() - start_s)

    def _failure(self) -> ToolError | None:
        """Return what ended the transport: it says more than the errors that follow from it."""
        return None if self._transport is None else self._transport.failure.error

    def _log_error(self, level: int, error: BaseException) -> None:
        """Log an error with its traceback, whose messages may hold an address."""
        if log.isEnabledFor(level):
            lines = redact("".join(traceback.format_exception(error)), self._known)
            log.log(level, "the tool server %r: %s", self.server.name, lines)

    def _reason_of(self, error: BaseException) -> tuple[str, str]:
        """Return message and hint for the error of a connection or call."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, MedusaError):
            return redact(error.message, self._known), error.hint
        kind = type(error).__name__
        text = redact(_short(error), self._known)
        if kind == "ValidationError":
            return tr("The server's answer doesn't follow the protocol: {0}", text), ""
        return text or kind, ""

    def _set(self, status: ConnectionStatus) -> None:
        """Change the state."""
        if status != self.status:
            self.status = status
            self._on_change()

    def _add_log(self, line: str) -> None:
        """Add a line to the log; `on_change` is called once for several lines."""
        with self._lock:
            self._log.append(redact(line, self._known))
        if not self._is_notifying:
            self._is_notifying = True
            asyncio.get_running_loop().call_later(_NOTIFY_S, self._tell_log)

    def _tell_log(self) -> None:
        self._is_notifying = False
        self._on_change()


@asynccontextmanager
async def _time_limit(time_s: float, reason: str) -> AsyncIterator[None]:
    """Limit the time within the context.

    Raises:
        ToolError: The time is over.
    """
    try:
        async with asyncio.timeout(time_s):
            yield
    except TimeoutError as error:
        raise ToolError(reason) from error


def _short(error: BaseException) -> str:
    """Return the text of an error on one line of limited length."""
    text = " ".join(str(error)[: 4 * _MOST_REASON_CHARS].split())
    text = text.partition(" For further information visit")[0]  # an address in pydantic's errors
    return "".join(char for char in text if char.isprintable())[:_MOST_REASON_CHARS]


async def _negotiate(session: ClientSession) -> None:
    """Agree with a server on a version.

    `initialize` comes first, since nearly all servers know it and some end at an unknown message;
    servers of 2026 may know `server/discover` alone.

    Raises:
        MCPError: The server refuses both.
    """
    from mcp.shared.exceptions import MCPError
    from mcp.types import CONNECTION_CLOSED

    try:
        await session.initialize()
    except MCPError as error:
        if error.code == CONNECTION_CLOSED:
            raise
        try:
            await session.discover()
        except MCPError:
            raise error from None
