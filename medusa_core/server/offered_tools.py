"""The tools of a request, with a warning of those that are left out or unchecked in part."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple

from pydantic import model_validator

from medusa_core.server.api_error import bad_request
from medusa_core.server.json_schema import check_schema, unenforced_places
from medusa_core.server.records import Record, refusal

MOST_TOOLS = 128
_MOST_NAME_CHARS = 256
_WARNING_CHARS = 512  # as OpenAI bounds a value of metadata
_TITLE_CHARS = 80


class Tool(Record):
    """A tool of a request.

    Attributes:
        function_type: Type of the tools that the client runs; others are left out of the prompt.
        schema_path: Path of the schema of the arguments in the tool.
    """

    function_type: ClassVar[str] = "function"
    schema_path: ClassVar[str] = "parameters"

    type: str = "function"
    name: str = ""
    description: str = ""
    parameters: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _needs_name(self) -> Tool:
        """Require a function's name, limited in length."""
        if self.type == self.function_type and not 0 < len(self.name) <= _MOST_NAME_CHARS:
            raise refusal(f"must be a name of 1 to {_MOST_NAME_CHARS} characters", "name")
        return self


class OfferedTools(NamedTuple):
    """The tools of a request.

    Attributes:
        functions: The functions, in the form of `ChatRequest.tools`.
        warning: Sentences that name left-out tools and unchecked schema keywords; empty for none.
    """

    functions: tuple[str, ...]
    warning: str


def read_tools(tools: Iterable[Tool], path: str = "") -> OfferedTools:
    """Return the functions of a request.

    Args:
        tools: All tools of the request.
        path: Path of a `Tool` in an item of the request's list, with a dot at its end.

    Raises:
        ApiError: A schema is out of bounds, or isn't one of objects.
    """
    functions: list[str] = []
    left_out: list[str] = []
    unchecked: list[str] = []
    for index, tool in enumerate(tools):
        if tool.type != tool.function_type:
            left_out.append(" ".join(filter(None, (tool.type, tool.name)))[:_TITLE_CHARS])
            continue
        if tool.parameters is not None:
            where = f"tools[{index}].{path}{tool.schema_path}"
            check_schema(tool.parameters, where)
            kinds = tool.parameters.get("type", "object")
            if kinds != "object" and not (isinstance(kinds, list) and "object" in kinds):
                raise bad_request(f"`{where}` must be a schema of objects.", where)
            unchecked += unenforced_places(tool.parameters, where)
        described = {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters or {"type": "object", "properties": {}},
        }
        functions.append(json.dumps(described, ensure_ascii=False))
    parts = []
    if left_out:
        parts.append(f"Not run here, so left out: {', '.join(left_out)}")
    if unchecked:
        parts.append(f"Not enforced: {', '.join(unchecked)}")
    return OfferedTools(tuple(functions), ". ".join(parts)[:_WARNING_CHARS])
