"""The first messages of a connection, which agree on a version of the protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp.client.session import ClientSession


async def negotiate(session: ClientSession) -> None:
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
