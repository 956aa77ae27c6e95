"""Messages in the form that chat templates expect, with tool calls."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from medusa_core.messages import ChatMessage, Role, ToolCall


class TemplateMessage(NamedTuple):
    """A message without its token ids.

    Attributes:
        role: Role of the message.
        content: Its text.
        tool_calls: Tool calls of an answer.
        tool_name: Name of the function whose result this is; empty for other messages.
        call_id: Id of the call whose result this is; empty for other messages.
    """

    role: str
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_name: str = ""
    call_id: str = ""


def strip_token_ids(messages: Iterable[ChatMessage]) -> tuple[TemplateMessage, ...]:
    """Strip the token ids of messages."""
    return tuple(TemplateMessage(one.role._value_, one.text, *one[3:]) for one in messages)


def message_as_json(message: TemplateMessage) -> dict[str, Any]:
    """Return a message with the keys of OpenAI's API, which templates use."""
    written: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        written["tool_calls"] = [_call_as_json(call) for call in message.tool_calls]
    if message.tool_name:
        written["name"] = message.tool_name
    if message.call_id:
        written["tool_call_id"] = message.call_id
    return written


def tool_as_json(tool: str) -> dict[str, Any]:
    """Return a function with the keys of OpenAI's API; templates rely on `properties`."""
    function = json.loads(tool)
    parameters = function.get("parameters")
    if isinstance(parameters, dict):
        parameters.setdefault("properties", {})
    return {"type": "function", "function": function}


def without_tools(messages: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """Convert calls and results to text, for templates without tools.

    Results become users' messages and are joined with the next one, because such templates want
    user and assistant to alternate.
    """
    plain: list[ChatMessage] = []
    for message in messages:
        text = _as_text(message)
        if plain and text.role is Role.USER is plain[-1].role and text != message:
            plain[-1] = ChatMessage(Role.USER, f"{plain[-1].text}\n\n{text.text}")
        else:
            plain.append(text)
    return tuple(plain)


def call_as_text(call: ToolCall) -> str:
    """Return a call in the JSON form that `tool_prompt` describes."""
    arguments = json.dumps(arguments_of(call), ensure_ascii=False)
    return f'{{"name": {json.dumps(call.name, ensure_ascii=False)}, "arguments": {arguments}}}'


def _as_text(message: ChatMessage) -> ChatMessage:
    """Convert a tool's result to a user's message, and calls to text of the answer."""
    if message.role is Role.TOOL:
        name = f" of {message.tool_name}" if message.tool_name else ""
        return ChatMessage(Role.USER, f"Result{name}:\n{message.text}")
    if message.tool_calls:
        parts = (message.text, *map(call_as_text, message.tool_calls))
        return ChatMessage(message.role, "\n".join(part for part in parts if part))
    return message


def _call_as_json(call: ToolCall) -> dict[str, Any]:
    """Return a call with the keys of OpenAI's API."""
    function = {"name": call.name, "arguments": arguments_of(call)}
    return {"id": call.call_id, "type": "function", "function": function}


def arguments_of(call: ToolCall) -> Any:
    """Return a call's arguments as a value; their text if it isn't JSON."""
    try:
        return json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return call.arguments
