"""Tools that this program runs itself, without a server; all are off by default."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import fastjsonschema

from medusa_core.chats.rounds import ToolResult
from medusa_core.messages import as_content
from medusa_core.system.registry import Registry
from medusa_core.tools import builtin
from medusa_core.tools.tool import Schema, Tool
from medusa_core.tools.web.settings import WebSettings

log = logging.getLogger(__name__)

_INVALID = (ValueError, RecursionError, fastjsonschema.JsonSchemaException)


class CallContext(NamedTuple):
    """Context of a call besides its arguments.

    Attributes:
        web: Settings for requests to the web.
        stop: Set when the user stops the call.
    """

    web: WebSettings
    stop: threading.Event


@dataclass(frozen=True, slots=True)
class BuiltinTool:
    """A built-in tool.

    Attributes:
        name: Name of the function.
        label: Display name.
        description: What it does, for the model.
        schema: JSON schema of its arguments.
        run: Returns the result for valid arguments; raises `ValueError` with words for the model.
        host: Returns the host that a call reaches, which needs an approval of its own; raises
            `ValueError` if it can reach none.
        missing_setting: Returns a sentence about a setting that the tool still needs, or nothing.
    """

    name: str
    label: str
    description: str
    schema: Schema
    run: Callable[[Mapping[str, Any], CallContext], str]
    host: Callable[[Mapping[str, Any], WebSettings], str] = lambda _, __: ""
    missing_setting: Callable[[WebSettings], str] = lambda _: ""

    @property
    def tool(self) -> Tool:
        """The tool as models know it."""
        return Tool(self.name, self.description, json.dumps(self.schema))


@cache
def builtin_tools() -> Registry[BuiltinTool]:
    """Return all built-in tools."""
    return Registry(builtin, "tool", BuiltinTool)


def host_of_call(name: str, arguments: str, web: WebSettings) -> str:
    """Return the host that a call of a built-in tool reaches; empty for none.

    Args:
        name: Name of the tool.
        arguments: Arguments as text; invalid ones reach nothing.
        web: Settings for requests to the web.

    Raises:
        RequestError: There is no such tool.
    """
    tool = builtin_tools().get(name)
    try:
        return tool.host(_checked(tool, arguments), web)
    except _INVALID:
        return ""


def run_builtin(name: str, arguments: str, context: CallContext | None = None) -> ToolResult:
    """Run a built-in tool; an error of the call is returned as a result for the model.

    Args:
        name: Name of the tool.
        arguments: Arguments as a JSON object, as text.
        context: Settings and stop of the call; default settings by default.

    Raises:
        RequestError: There is no such tool.
    """
    tool = builtin_tools().get(name)
    context = context or CallContext(WebSettings(), threading.Event())
    start_s = time.monotonic()
    try:
        text, is_error = tool.run(_checked(tool, arguments), context), False
    except _INVALID as error:
        text, is_error = f"The call failed: {error}", True
    return ToolResult(as_content(text), is_error, time.monotonic() - start_s)


def _checked(tool: BuiltinTool, arguments: str) -> Mapping[str, Any]:
    """Parse arguments and check them against the tool's schema.

    Raises:
        ValueError: They are no JSON.
        JsonSchemaException: They don't match the schema.
    """
    values: dict[str, Any] = json.loads(arguments or "{}")
    fastjsonschema.compile({**tool.schema})(values)
    return values
