"""Read the tools of a request, and warn of those that are left out or unchecked in part."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import NamedTuple

from medusa_core.server.fields import Fields
from medusa_core.server.json_schema import check_schema, unenforced_places

_WARNING_CHARS = 512  # as OpenAI bounds a value of metadata


class OfferedTools(NamedTuple):
    """The tools of a request.

    Attributes:
        functions: The functions, in the form of `ChatRequest.tools`.
        warning: Sentences that name left-out tools and unchecked schema keywords; empty for none.
    """

    functions: tuple[str, ...]
    warning: str


class Function(NamedTuple):
    """A function that the client runs.

    Attributes:
        text: The function, in the form of `ChatRequest.tools`.
        unchecked: Keywords of its schema that can't be enforced, with their paths.
    """

    text: str
    unchecked: tuple[str, ...]


def read_offered(
    tools: Iterable[Fields], read_function: Callable[[Fields], Function | None]
) -> OfferedTools:
    """Read the tools of a request.

    Args:
        tools: All tools of the request.
        read_function: Reads one tool; returns None for a tool that this server can't run, such as
            `web_search`, which is left out of the prompt.

    Raises:
        ApiError: A tool is invalid.
    """
    functions: list[str] = []
    left_out: list[str] = []
    unchecked: list[str] = []
    for tool in tools:
        function = read_function(tool)
        if function is None:
            left_out.append(_title(tool))
        else:
            functions.append(function.text)
            unchecked += function.unchecked
    parts = []
    if left_out:
        parts.append(f"Not run here, so left out: {', '.join(left_out)}")
    if unchecked:
        parts.append(f"Not enforced: {', '.join(unchecked)}")
    return OfferedTools(tuple(functions), ". ".join(parts)[:_WARNING_CHARS])


def read_function(function: Fields, schema_name: str = "parameters") -> Function:
    """Read the description of a function.

    Args:
        function: Fields with name, description and schema.
        schema_name: Name of the field with the schema of the arguments.

    Raises:
        ApiError: The name is missing, or the schema isn't an object.
    """
    name = function.text("name")
    if not name or len(name) > 256:
        raise function.invalid("name", "a name of 1 to 256 characters")
    parameters = function.record(schema_name)
    unchecked: tuple[str, ...] = ()
    if parameters is not None:
        where = function.where(schema_name)
        check_schema(parameters.values, where)
        kinds = parameters.values.get("type", "object")
        if kinds != "object" and not (isinstance(kinds, list) and "object" in kinds):
            raise function.invalid(schema_name, "a schema of objects")
        unchecked = unenforced_places(parameters.values, where)
    described = {
        "name": name,
        "description": function.text("description"),
        "parameters": {"type": "object", "properties": {}}
        if parameters is None
        else parameters.values,
    }
    return Function(json.dumps(described, ensure_ascii=False), unchecked)


def _title(tool: Fields) -> str:
    named = tool.record("custom") if isinstance(tool.values.get("custom"), dict) else tool
    return " ".join(filter(None, (tool.text("type"), (named or tool).text("name"))))[:80]
