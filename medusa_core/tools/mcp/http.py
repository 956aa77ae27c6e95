"""Servers that are addresses: streamable HTTP."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx2

from medusa_core.errors import ToolError
from medusa_core.i18n import tr
from medusa_core.system.loopback import is_loopback_url
from medusa_core.tools.mcp.limits import Limits, OutputBudget
from medusa_core.tools.mcp.redaction import redact_requests
from medusa_core.tools.mcp.transport import CountedMessages, Failure, Transport
from medusa_core.tools.servers import ToolServer

_CONNECT_S = 30.0
_FAILED, _NO_ACCESS = 400, (401, 403)
_EVENTS = "text/event-stream"


@asynccontextmanager
async def reach_address(
    server: ToolServer, limits: Limits, on_log: Callable[[str], None]
) -> AsyncIterator[Transport]:
    """Connect with a server within the context.

    Redirects are followed only to the same scheme, host and port.

    Args:
        server: Settings with the values of secrets.
        limits: What the server may send.
        on_log: Gets a line for each refused request.
    """
    from mcp.client.streamable_http import streamable_http_client

    logging.getLogger(httpx2.__name__).addFilter(redact_requests)
    budget, failure = OutputBudget(limits), Failure()

    async def check(response: httpx2.Response) -> None:
        """Limit the body of a response before it is read."""
        if response.status_code >= _FAILED:
            on_log(f"{response.request.method}: HTTP {response.status_code}")
        if response.status_code in _NO_ACCESS:
            reason = tr("The server refuses access (HTTP {0}).", response.status_code)
            failure.set(ToolError(reason, tr("Check the headers in the settings of the server.")))
        # A few compressed bytes may become gigabytes.
        if response.headers.get("content-encoding", "identity") != "identity":
            error = ToolError(tr("The server sends compressed data, which it wasn't asked for."))
            failure.set(error)
            raise error
        is_stream = response.headers.get("content-type", "").startswith(_EVENTS)
        most = None if is_stream else limits.line_bytes  # the client limits events
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _LimitedBody(response.stream, most, budget, failure)

    client = httpx2.AsyncClient(
        headers={**dict(server.headers), "Accept-Encoding": "identity"},
        timeout=httpx2.Timeout(_CONNECT_S, read=None),  # calls have times of their own
        follow_redirects=False,
        trust_env=not is_loopback_url(server.url),
        event_hooks={"response": [check]},
    )
    opened = streamable_http_client(
        server.url, http_client=client, max_sse_event_size=limits.line_bytes
    )
    async with client, opened as (read, write):
        yield Transport(CountedMessages(read, budget, failure), write, failure)


class _LimitedBody(httpx2.AsyncByteStream):
    """Body of a response, which ends with an error when it is too large."""

    def __init__(
        self,
        body: httpx2.AsyncByteStream,
        most_bytes: int | None,
        budget: OutputBudget,
        failure: Failure,
    ) -> None:
        self._body = body
        self._most_bytes = most_bytes
        self._budget = budget
        self._failure = failure

    async def __aiter__(self) -> AsyncIterator[bytes]:
        num_bytes = 0
        async for chunk in self._body:
            num_bytes += len(chunk)
            try:
                self._budget.count(len(chunk))
                if self._most_bytes is not None and num_bytes > self._most_bytes:
                    most = self._most_bytes >> 20
                    raise ToolError(tr("The server sent a message of more than {0} MiB.", most))
            except ToolError as error:
                self._failure.set(error)
                raise
            yield chunk

    async def aclose(self) -> None:
        await self._body.aclose()
