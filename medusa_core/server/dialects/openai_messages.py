"""Turns of a conversation, functions and formats as chat completions have them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from medusa_core.messages import ChatMessage, Role, ToolCall
from medusa_core.server.api_error import ApiError, bad_request
from medusa_core.server.chat import ToolChoice, ToolMode
from medusa_core.server.fields import Fields
from medusa_core.server.json_schema import ANY_OBJECT, check_schema, refuse_unenforced
from medusa_core.server.limits import Limits
from medusa_core.server.offered_tools import Function, OfferedTools, read_function, read_offered

_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
}
_MOST_PARTS = 1024
_THOUGHT_PARTS = ("thinking", "redacted_thinking", "reasoning", "reasoning_text")  # not read again
_MOST_TOOLS = 128


def read_messages(fields: Fields, limits: Limits) -> tuple[ChatMessage, ...]:
    """The turns of a request.

    Raises:
        ApiError: There are none, or one is something else than text.
    """
    messages: list[ChatMessage] = []
    names: dict[str, str] = {}  # of functions, by the ids of their calls
    for turn in fields.records("messages", limits.most_messages):
        message = _message(turn)
        names |= {call.call_id: call.name for call in message.tool_calls}
        if message.role is Role.TOOL and not message.tool_name:
            message = message._replace(tool_name=names.get(message.call_id, ""))
        messages.append(message)
    if all(message.role is Role.ASSISTANT for message in messages):
        raise fields.invalid("messages", "a list with a user's message")
    return tuple(messages)


def read_tools(fields: Fields) -> OfferedTools:
    """The functions of a request; custom tools, whose calls are no JSON, are left out.

    Raises:
        ApiError: One is none.
    """
    return read_offered(fields.records("tools", _MOST_TOOLS), _read_tool)


def _read_tool(tool: Fields) -> Function | None:
    kind = tool.text("type", "function")
    if kind == "custom":
        return None
    if kind != "function":
        raise tool.invalid("type", '"function"')
    function = tool.record("function")
    if function is None:
        raise tool.missing("function")
    return read_function(function)


def refuse_legacy_functions(fields: Fields) -> None:
    """Refuse OpenAI's form of functions before November 2023, which would be ignored.

    Raises:
        ApiError: The request has it.
    """
    for name in ("functions", "function_call"):
        if fields.has(name):
            raise bad_request(
                f"`{name}` is OpenAI's form of 2023. Send `tools` and `tool_choice` instead.", name
            )


def read_tool_choice(fields: Fields, tools: tuple[str, ...]) -> tuple[tuple[str, ...], ToolChoice]:
    """Read which functions may be called.

    Args:
        fields: The request.
        tools: Its functions.

    Returns:
        Those of the functions that may be called, and how.

    Raises:
        ApiError: It names none of them.
    """
    is_parallel = fields.flag("parallel_tool_calls", default=True)
    choice = fields.values.get("tool_choice")
    if choice is None:
        return tools, ToolChoice(is_parallel=is_parallel)
    if choice in (ToolMode.AUTO.value, ToolMode.NONE.value, ToolMode.REQUIRED.value):
        return tools, _mode_choice(fields, choice, tools, is_parallel)
    if not isinstance(choice, dict):
        raise fields.invalid("tool_choice", '"auto", "none", "required" or a function')
    record = Fields(choice, "tool_choice.")
    if record.text("type") == "allowed_tools":
        allowed = record.record("allowed_tools") or record  # chat completions nest them
        names = {_tool_name(one) for one in allowed.records("tools", _MOST_TOOLS)}
        tools = tuple(tool for tool in tools if json.loads(tool)["name"] in names)
        return tools, _mode_choice(allowed, allowed.text("mode", "auto"), tools, is_parallel)
    name = _tool_name(record)
    if name not in {json.loads(tool)["name"] for tool in tools}:
        raise record.invalid("name", "the name of one of the tools")
    return tools, ToolChoice(ToolMode.REQUIRED, name, is_parallel)


def _mode_choice(
    fields: Fields, mode: str, tools: tuple[str, ...], is_parallel: bool
) -> ToolChoice:
    if mode not in (ToolMode.AUTO.value, ToolMode.NONE.value, ToolMode.REQUIRED.value):
        raise fields.invalid("mode", '"auto" or "required"')
    if mode == ToolMode.REQUIRED.value and not tools:
        raise fields.invalid("tool_choice", "left out where there are no tools")
    return ToolChoice(ToolMode(mode), is_parallel=is_parallel)


def _tool_name(tool: Fields) -> str:
    return (tool.record("function") or tool).text("name")


def read_schema(fields: Fields) -> str:
    """The JSON schema that an answer must match; empty for free text.

    Raises:
        ApiError: The format is unknown, or has no schema.
    """
    wanted = fields.record("response_format")
    return "" if wanted is None else read_format(wanted, wanted.record("json_schema"))


def read_format(wanted: Fields, described: Fields | None) -> str:
    """The JSON schema of a format; empty for free text.

    Args:
        wanted: The format.
        described: Where its schema stands, if it has one.

    Raises:
        ApiError: The format is unknown, or has no schema.
    """
    kind = wanted.text("type")
    if kind == "text":
        return ""
    if kind == "json_object":
        if not wanted.has("schema"):
            return ANY_OBJECT
        described = wanted  # llama-server's way to bring one
        kind = "json_schema"
    if kind != "json_schema":
        raise wanted.invalid("type", '"text", "json_object" or "json_schema"')
    schema = None if described is None else described.record("schema")
    if schema is None:
        raise (described or wanted).missing("schema")
    where = schema.path.removesuffix(".")
    check_schema(schema.values, where)
    refuse_unenforced(schema.values, where)
    return json.dumps(schema.values, ensure_ascii=False)


def read_content(turn: Fields, name: str = "content") -> str:
    """What a turn says: a string, or parts of text.

    Raises:
        ApiError: It is something else, such as a picture.
    """
    value = turn.values.get(name)
    if value is None or isinstance(value, str):
        return value or ""
    if not isinstance(value, list):
        raise turn.invalid(name, "a string or a list of parts")
    return "".join(_texts(turn, name))


def _texts(turn: Fields, name: str) -> Iterator[str]:
    for part in turn.records(name, _MOST_PARTS):
        kind = part.text("type")
        if kind in _THOUGHT_PARTS:
            continue
        if kind == "refusal":
            yield part.text("refusal")
            continue
        if kind not in ("text", "input_text", "output_text"):
            raise _no_text(part, kind)
        if not part.has("text"):
            raise part.missing("text")
        yield part.text("text")


def _no_text(part: Fields, kind: str) -> ApiError:
    where = part.where("type")
    return bad_request(
        f"`{where}` is {kind[:40]!r}, but the models here read text alone: send text parts.", where
    )


def _message(turn: Fields) -> ChatMessage:
    role = _ROLES.get(turn.text("role"))
    if role is None:
        raise turn.invalid("role", f"one of {', '.join(_ROLES)}")
    content = read_content(turn)
    if role is Role.ASSISTANT:
        return ChatMessage(role, content, tool_calls=tuple(_calls(turn)))
    if not turn.has("content"):
        raise turn.missing("content")
    if role is Role.TOOL:
        return ChatMessage(
            role, content, tool_name=turn.text("name"), call_id=turn.text("tool_call_id")
        )
    return ChatMessage(role, content)


def _calls(turn: Fields) -> Iterator[ToolCall]:
    for call in turn.records("tool_calls", _MOST_TOOLS):
        function = call.record("function")
        if function is None:
            raise call.missing("function")
        arguments: Any = function.values.get("arguments") or "{}"
        if isinstance(arguments, dict):  # some clients forget to write them as text
            arguments = json.dumps(arguments, ensure_ascii=False)
        if not isinstance(arguments, str):
            raise function.invalid("arguments", "a string")
        yield ToolCall(call.text("id"), function.text("name"), arguments)
