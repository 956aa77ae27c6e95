"""An open connection to a server: its messages, counted, and the reason why they ended."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Protocol

import anyio

from medusa_core.errors import ToolError
from medusa_core.i18n import tr
from medusa_core.tools.mcp.limits import OutputBudget

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage

    Received = SessionMessage | Exception


class Failure:
    """The first error of a connection, which ends it."""

    def __init__(self) -> None:
        self.error: ToolError | None = None
        self._happened = asyncio.Event()

    def set(self, error: ToolError) -> None:
        """Record the error; later ones are ignored."""
        if self.error is None:
            self.error = error
            self._happened.set()

    async def wait(self) -> ToolError:
        """Wait for the error and return it."""
        await self._happened.wait()
        assert self.error is not None
        return self.error


class ReadStream(Protocol):
    """Messages from a server, as transports of the SDK have them."""

    async def receive(self) -> Received: ...
    async def aclose(self) -> None: ...


class WriteStream(Protocol):
    """Messages to a server, as transports of the SDK have them."""

    async def send(self, item: SessionMessage, /) -> None: ...
    async def aclose(self) -> None: ...
    async def __aenter__(self) -> WriteStream: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None: ...


class CountedMessages:
    """Messages from a server; they end when there are too many."""

    def __init__(self, messages: ReadStream, budget: OutputBudget, failure: Failure) -> None:
        self._messages = messages
        self._budget = budget
        self._failure = failure

    async def receive(self) -> Received:
        """Return the next message.

        Raises:
            anyio.EndOfStream: There are no more, or too many.
        """
        try:
            received = await self._messages.receive()
            self._budget.count(num_messages=1)
        except anyio.EndOfStream:
            self._failure.set(ToolError(tr("The server closed the connection.")))
            raise
        except ToolError as error:
            self._failure.set(error)
            raise anyio.EndOfStream from error
        return received

    async def aclose(self) -> None:
        await self._messages.aclose()

    def __aiter__(self) -> CountedMessages:
        return self

    async def __anext__(self) -> Received:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> CountedMessages:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()


class Transport(NamedTuple):
    """An open connection.

    Attributes:
        read: Messages from the server.
        write: Messages to it.
        failure: Why the connection ended.
    """

    read: CountedMessages
    write: WriteStream
    failure: Failure
