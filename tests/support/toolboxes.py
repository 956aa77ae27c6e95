"""Toolboxes with servers of the tests."""

import json
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from medusa_core.chats.rounds import ToolResult
from medusa_core.tools.mcp.limits import Limits
from medusa_core.tools.offered_tool import OfferedTool
from medusa_core.tools.servers import ToolServer
from medusa_core.tools.status import ServerState
from medusa_core.tools.toolbox import ServerStatus, Toolbox

SERVER = Path(__file__).with_name("mcp_server.py")
QUICK = Limits(
    start_s=20,
    write_s=1,
    stop_s=0.5,
    relist_s=0.01,
    line_bytes=2 << 20,
    window_bytes=8 << 20,
    window_messages=1000,
)
WAIT_S = 120.0


def program(name: str, *behaviours: str, env: dict[str, str] | None = None) -> ToolServer:
    """A server that runs `mcp_server.py`."""
    args = ("-I", "-S", str(SERVER), *behaviours)
    return ToolServer(name, sys.executable, args, tuple((env or {}).items()), is_enabled=True)


@contextmanager
def opened(folder: Path, *servers: ToolServer, limits: Limits = QUICK) -> Iterator[Toolbox]:
    """A toolbox with servers, closed at the end; `close` itself waits no longer than a window."""
    folder.mkdir(exist_ok=True)
    toolbox = Toolbox(folder, limits)
    try:
        toolbox.add(*servers)
        yield toolbox
    finally:
        toolbox.close()
        for thread in threading.enumerate():
            if thread.name == "tool servers":
                thread.join(WAIT_S)


def until(toolbox: Toolbox, holds: Callable[[], Any]) -> None:
    """Wait until a condition holds; each change of the toolbox is a reason to look again."""
    changes: queue.SimpleQueue[None] = queue.SimpleQueue()
    toolbox.listen(lambda: changes.put(None))
    end_s = time.monotonic() + WAIT_S
    while not holds():
        try:
            changes.get(timeout=max(0.0, end_s - time.monotonic()))
        except queue.Empty:
            raise AssertionError(toolbox.servers()) from None


def status(toolbox: Toolbox, name: str) -> ServerStatus:
    """The status of a server."""
    return next(found for found in toolbox.servers() if found.server.name == name)


def settled(toolbox: Toolbox, name: str) -> ServerStatus:
    """The status of a server once it is ready or has failed."""
    until(toolbox, lambda: status(toolbox, name).state is not ServerState.STARTING)
    return status(toolbox, name)


def offered(toolbox: Toolbox, tool_id: str) -> OfferedTool:
    """A tool of a server that is ready."""

    def is_offered() -> bool:
        failed = [s for s in toolbox.servers() if s.state is ServerState.FAILED]
        assert not failed, failed
        return bool(toolbox.chosen([tool_id]))

    until(toolbox, is_offered)
    return toolbox.chosen([tool_id])[0]


def result_of(toolbox: Toolbox, tool: OfferedTool, **arguments: Any) -> ToolResult:
    """The result of a call."""
    results: queue.SimpleQueue[ToolResult] = queue.SimpleQueue()
    toolbox.run(tool, json.dumps(arguments), results.put)
    return results.get(timeout=WAIT_S)
