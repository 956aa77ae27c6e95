"""The list of a server's tools, checked: servers aren't trusted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from medusa_core.errors import ToolError
from medusa_core.i18n import tr
from medusa_core.tools.mcp.limits import Limits
from medusa_core.tools.tool import Tool

if TYPE_CHECKING:
    from mcp.client.session import ClientSession

_MOST_NAME_CHARS = 128
_MOST_PAGES = 100


async def list_tools(
    session: ClientSession, limits: Limits, on_log: Callable[[str], None]
) -> tuple[Tool, ...]:
    """Return the tools of a server, sorted by name.

    A tool that can't be used is left out, with a line in the log.

    Raises:
        ToolError: There are no tools, too many, or too large ones.
    """
    from mcp.shared.exceptions import MCPError
    from mcp.types import METHOD_NOT_FOUND, PaginatedRequestParams

    found: dict[str, Tool] = {}
    num_bytes = 0
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        params = None if cursor is None else PaginatedRequestParams(cursor=cursor)
        try:
            page = await session.list_tools(params=params)
        except MCPError as error:
            if error.code == METHOD_NOT_FOUND:
                raise ToolError(tr("The server has no tools.")) from error
            raise
        for raw in page.tools:
            try:
                tool = _checked(
                    raw.name, raw.description or raw.title or "", raw.input_schema, limits
                )
            except ValueError as error:
                on_log(f"{raw.name[:_MOST_NAME_CHARS]}: {error}")
                continue
            if tool.name in found:
                on_log(f"{tool.name}: another tool has the same name")
                continue
            found[tool.name] = tool
            num_bytes += _size(tool)
            if len(found) > limits.tools:
                raise ToolError(tr("The server has more than {0} tools.", limits.tools))
            if num_bytes > limits.list_bytes:
                most = limits.list_bytes >> 10
                raise ToolError(tr("The tools are described by more than {0} KiB.", most))
        await asyncio.sleep(0)
        cursor = page.next_cursor
        if cursor is None:
            return tuple(found[name] for name in sorted(found))
    raise ToolError(tr("The server's list of tools doesn't end."))


def _checked(name: str, description: str, schema: dict[str, Any], limits: Limits) -> Tool:
    """Return a tool.

    Raises:
        ValueError: Its name or schema can't be used.
    """
    if not name or len(name) > _MOST_NAME_CHARS:
        raise ValueError(tr("its name is empty or too long"))
    if _is_deeper(schema, limits.schema_depth):
        raise ValueError(tr("its schema is nested too deeply"))
    try:
        parameters = json.dumps(schema, ensure_ascii=False, allow_nan=False)
        tool = Tool(name, description, parameters)
        size = _size(tool)
    except UnicodeEncodeError as error:
        raise ValueError(tr("it holds text that isn't valid Unicode")) from error
    if size > limits.tool_bytes:
        raise ValueError(tr("it is described by more than {0} KiB", limits.tool_bytes >> 10))
    return tool


def _size(tool: Tool) -> int:
    """Return the bytes of a tool's texts."""
    return sum(len(text.encode()) for text in tool)


def _is_deeper(value: Any, most: int) -> bool:
    """Whether a JSON value is nested more deeply than a limit."""
    level = [value]
    for _ in range(most):
        level = [
            child
            for node in level
            if isinstance(node, dict | list)
            for child in (node.values() if isinstance(node, dict) else node)
        ]
        if not level:
            return False
    return True
