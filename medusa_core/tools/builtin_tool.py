"""Tools that this program runs itself, without a server; all are off by default."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import fastjsonschema

from medusa_core.chats.rounds import ToolResult
from medusa_core.messages import as_content
from medusa_core.system.registry import Registry
from medusa_core.tools import builtin
from medusa_core.tools.tool import Schema, Tool

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BuiltinTool:
    """A built-in tool.

    Attributes:
        name: Name of the function.
        label: Name for people.
        description: What it does, for the model.
        schema: JSON schema of its arguments.
        run: Returns the result for valid arguments; raises `ValueError` with words for the model.
    """

    name: str
    label: str
    description: str
    schema: Schema
    run: Callable[[Mapping[str, Any]], str]

    @property
    def tool(self) -> Tool:
        """The tool as models know it."""
        return Tool(self.name, self.description, json.dumps(self.schema))


@cache
def builtin_tools() -> Registry[BuiltinTool]:
    """Return all built-in tools."""
    return Registry(builtin, "tool", BuiltinTool)


def run_builtin(name: str, arguments: str) -> ToolResult:
    """Run a built-in tool; whatever is wrong with the call is the result that the model reads.

    Args:
        name: Name of the tool.
        arguments: Arguments as a JSON object, as text.

    Raises:
        RequestError: There is no such tool.
    """
    tool = builtin_tools().get(name)
    start_s = time.monotonic()
    try:
        values = json.loads(arguments or "{}")
        fastjsonschema.compile({**tool.schema})(values)
        text, is_error = tool.run(values), False
    except (ValueError, RecursionError, fastjsonschema.JsonSchemaException) as error:
        text, is_error = f"The call failed: {error}", True
    return ToolResult(as_content(text), is_error, time.monotonic() - start_s)
