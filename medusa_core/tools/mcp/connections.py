"""All connections with servers, in one thread with its own event loop."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from medusa_core.system.key_store import KeyStore
from medusa_core.tools.mcp.connection import Connection
from medusa_core.tools.mcp.limits import Limits
from medusa_core.tools.results import RunningCall, text_result
from medusa_core.tools.servers import ToolServer
from medusa_core.tools.tool import Tool

log = logging.getLogger(__name__)

_CLOSE_S = 2.0  # longest time in which a window closes; programs need half of it at most
_LOOP_S = 0.2  # of it for the end of the event loop


class Connections:
    """Connects the servers that are switched on; the thread starts with the first of them."""

    def __init__(self, store: KeyStore, limits: Limits, on_change: Callable[[], None]) -> None:
        """Prepare, without a thread.

        Args:
            store: Where secrets of servers are.
            limits: Limits of each server.
            on_change: Called from any thread after a change.
        """
        self._store = store
        self._limits = limits
        self._on_change = on_change
        self._lock = threading.Lock()
        self._connections: dict[str, Connection] = {}
        # Used in the loop alone.
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ending: dict[asyncio.Task[None], str] = {}  # with the names of their servers
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def use(self, servers: Iterable[ToolServer]) -> None:
        """Connect the servers that are switched on, and end the connections with others."""
        wanted = {server.name: server for server in servers if server.is_enabled}
        with self._lock:
            gone = [n for n, c in self._connections.items() if wanted.get(n) != c.server]
            new = [s for n, s in wanted.items() if n not in self._connections or n in gone]
            for name in gone:
                del self._connections[name]
            for server in new:
                self._connections[server.name] = self._new(server)
            started = {server.name: self._connections[server.name] for server in new}
        if gone or started:
            self._submit(lambda: self._exchange(gone, started))

    def restart(self, name: str) -> None:
        """Connect a server again, if it is switched on."""
        with self._lock:
            known = self._connections.get(name)
            if known is None:
                return
            started = {name: self._new(known.server)}
            self._connections |= started
        self._submit(lambda: self._exchange([name], started))
        self._on_change()

    def connections(self) -> Mapping[str, Connection]:
        """Return the connections of all servers that are switched on, by name."""
        with self._lock:
            return dict(self._connections)

    def call(self, server: ToolServer, tool: Tool, arguments: str, call: RunningCall) -> None:
        """Run a call; its result is delivered in the thread of the event loop.

        Args:
            server: Settings of the server as they were approved.
            tool: The tool as it was approved.
            arguments: Arguments as a JSON object, as text.
            call: Gets the result.
        """
        connection = self.connections().get(server.name)
        try:
            values = json.loads(arguments or "{}", parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            call.finish_soon(text_result(f"The arguments are no JSON: {error}", is_error=True))
            return
        if not isinstance(values, dict):
            call.finish_soon(text_result("The arguments are no JSON object.", is_error=True))
        elif connection is None or connection.server != server:
            reason = "The tool's server is switched off, or has been changed."
            call.finish_soon(text_result(reason, is_error=True))
        elif not self._submit(lambda: self._start_call(connection, tool, values, call)):
            call.finish_soon(text_result("The program ends.", is_error=True))

    def close(self) -> None:
        """End all connections at once and the thread; waits for them for two seconds at most.

        What a connection still waits for then ends with this program: its watcher ends a server's
        program, and the thread is a daemon.
        """
        with self._lock:
            thread, self._thread = self._thread, None
            self._connections, self._is_closed = {}, True
        if thread is not None and self._loop is not None:
            asyncio.run_coroutine_threadsafe(self._end(), self._loop)
            thread.join(_CLOSE_S)
            if thread.is_alive():
                log.warning("a tool server didn't end within %s s", _CLOSE_S)

    def _new(self, server: ToolServer) -> Connection:
        return Connection(server, self._store, self._limits, self._on_change)

    def _submit(self, work: Callable[[], object]) -> bool:
        """Run a function in the event loop; starts its thread if necessary.

        Returns:
            Whether it runs; False after `close`.
        """
        with self._lock:
            if self._is_closed:
                return False
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_run_loop, args=(self._loop,), name="tool servers", daemon=True
                )
                self._thread.start()
            self._loop.call_soon_threadsafe(work)
            return True

    def _exchange(self, gone: Iterable[str], started: Mapping[str, Connection]) -> None:
        """End connections and start others, in the event loop."""
        for name in gone:
            if (task := self._tasks.pop(name, None)) is not None:
                self._cancel(name, task)
        for name, connection in started.items():
            previous = [task for task, other in self._ending.items() if other == name]
            self._tasks[name] = asyncio.ensure_future(_run_after(previous, connection))

    def _start_call(
        self, connection: Connection, tool: Tool, arguments: dict[str, Any], call: RunningCall
    ) -> None:
        """Start a call in the event loop."""
        loop = asyncio.get_running_loop()

        async def work() -> None:
            call.finish(await connection.call(tool, arguments))

        task = loop.create_task(work())
        call.on_cancel(lambda: self._submit(task.cancel))
        task.add_done_callback(
            lambda _: call.finish(text_result("The call was stopped.", is_error=True))
        )

    def _cancel(self, name: str, task: asyncio.Task[None]) -> None:
        """End a connection, which takes some time, in the event loop."""
        self._ending[task] = name
        task.add_done_callback(self._ending.pop)
        task.cancel()

    async def _end(self) -> None:
        """End everything in the event loop, then the loop."""
        for name, task in self._tasks.items():
            self._cancel(name, task)
        if self._ending:
            await asyncio.wait(self._ending, timeout=_CLOSE_S - _LOOP_S)
        asyncio.get_running_loop().stop()


async def _run_after(previous: Sequence[asyncio.Task[None]], connection: Connection) -> None:
    """Run a connection after those before it have ended, which may hold a file or a port."""
    if previous:
        await asyncio.wait(previous)
    await connection.run()


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Run an event loop until it is stopped, then end what is left."""
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON value")
