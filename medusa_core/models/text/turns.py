"""The turns of a conversation as chat templates take them, calls of functions included."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from medusa_core.messages import ChatMessage, Role, ToolCall


class TemplateTurn(NamedTuple):
    """A message without its tokens: what a template can read of it.

    Attributes:
        role: Who speaks.
        content: What is said.
        tool_calls: Of an answer, the functions it wants called.
        tool_name: Of a tool's result, the function it comes from.
        call_id: Of a tool's result, the call it answers.
    """

    role: str
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_name: str = ""
    call_id: str = ""


def turns_of(messages: Iterable[ChatMessage]) -> tuple[TemplateTurn, ...]:
    """The turns of a conversation."""
    return tuple(TemplateTurn(one.role._value_, one.content, *one[3:]) for one in messages)


def turn_as_json(turn: TemplateTurn) -> dict[str, Any]:
    """A turn as templates name its parts, which are those of OpenAI's messages."""
    written: dict[str, Any] = {"role": turn.role, "content": turn.content}
    if turn.tool_calls:
        written["tool_calls"] = [_call_as_json(call) for call in turn.tool_calls]
    if turn.tool_name:
        written["name"] = turn.tool_name
    if turn.call_id:
        written["tool_call_id"] = turn.call_id
    return written


def tool_as_json(tool: str) -> dict[str, Any]:
    """A function as templates take it, which look for properties of its parameters."""
    function = json.loads(tool)
    parameters = function.get("parameters")
    if isinstance(parameters, dict):
        parameters.setdefault("properties", {})
    return {"type": "function", "function": function}


def without_tools(messages: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """The turns for a template that knows no functions: calls and results become text.

    A result belongs to the user's turn, and neighbours of one role are one turn: such templates
    want user and assistant to alternate.
    """
    plain: list[ChatMessage] = []
    for message in messages:
        turn = _as_text(message)
        if plain and turn.role is Role.USER is plain[-1].role and turn != message:
            plain[-1] = ChatMessage(Role.USER, f"{plain[-1].content}\n\n{turn.content}")
        else:
            plain.append(turn)
    return tuple(plain)


def call_as_text(call: ToolCall) -> str:
    """A call as models write it that were told to answer with JSON."""
    arguments = json.dumps(arguments_of(call), ensure_ascii=False)
    return f'{{"name": {json.dumps(call.name, ensure_ascii=False)}, "arguments": {arguments}}}'


def _as_text(message: ChatMessage) -> ChatMessage:
    if message.role is Role.TOOL:
        name = f" of {message.tool_name}" if message.tool_name else ""
        return ChatMessage(Role.USER, f"Result{name}:\n{message.content}")
    if message.tool_calls:
        parts = (message.content, *map(call_as_text, message.tool_calls))
        return ChatMessage(message.role, "\n".join(part for part in parts if part))
    return message


def _call_as_json(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": arguments_of(call)}
    return {"id": call.call_id, "type": "function", "function": function}


def arguments_of(call: ToolCall) -> Any:
    """Return a call's arguments as a value; their text if it isn't JSON."""
    try:
        return json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return call.arguments
