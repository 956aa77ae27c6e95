"""Requests of OpenAI's Responses API: items instead of messages, and no state."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from medusa_core.messages import ChatMessage, Overflow, Role, ToolCall
from medusa_core.server.api_error import bad_request
from medusa_core.server.chat import ChatRequest, ToolMode
from medusa_core.server.dialects.openai_messages import (
    read_content,
    read_format,
    read_tool_choice,
)
from medusa_core.server.fields import Fields
from medusa_core.server.limits import Limits
from medusa_core.server.offered_tools import Function, read_function, read_offered
from medusa_core.server.sampling import read_max_tokens, read_settings

_MOST_FUNCTIONS = 128
_MOST_LOGPROBS = 20
_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
}
_STATEFUL = ("previous_response_id", "conversation", "prompt")
_TRUNCATIONS = {"disabled": Overflow.STOP, "auto": Overflow.ROLLING}
_SCORED = "message.output_text.logprobs"


class ResponseRequest(NamedTuple):
    """A request of this API.

    Attributes:
        chat: What is asked.
        streams: The answer is wanted as it comes.
        fields: The request itself, parts of which the response repeats.
    """

    chat: ChatRequest
    streams: bool
    fields: Fields


def read_response_request(fields: Fields, limits: Limits) -> ResponseRequest:
    """What a request wants.

    Raises:
        ApiError: It can't be read, or needs responses to be kept.
    """
    _check_stateless(fields)
    max_tokens = read_max_tokens(fields, limits, "max_output_tokens")
    settings, open_settings = read_settings(fields, limits, max_tokens, ())
    reasoning = fields.record("reasoning") or Fields({})
    if settings.thinks is None and reasoning.text("effort") in ("none", "minimal"):
        settings = replace(settings, thinks=False)
    settings = replace(settings, overflow=_overflow(fields))
    offered = read_offered(fields.records("tools", _MOST_FUNCTIONS), _read_tool)
    tools, choice = read_tool_choice(fields, offered.functions)
    chat = ChatRequest(
        model=fields.text("model"),
        messages=_items(fields, limits),
        settings=settings,
        open_settings=open_settings,
        tools=() if choice.mode is ToolMode.NONE else tools,
        tool_choice=choice,
        schema=_schema(fields),
        num_logprobs=_num_logprobs(fields),
        warning=offered.warning,
    )
    return ResponseRequest(chat, fields.flag("stream"), fields)


def _check_stateless(fields: Fields) -> None:
    for name in _STATEFUL:
        if fields.has(name):
            raise bad_request(
                f"`{name}` isn't known: responses aren't kept here. Send the whole conversation "
                "as `input`.",
                name,
            )
    if fields.flag("background"):
        raise fields.invalid("background", "false: responses aren't kept here")


def _items(fields: Fields, limits: Limits) -> tuple[ChatMessage, ...]:
    """The turns of a request: its instructions, then its input."""
    instructions = fields.text("instructions")
    before = (ChatMessage(Role.SYSTEM, instructions),) if instructions else ()
    if isinstance(fields.values.get("input"), str):
        return (*before, ChatMessage(Role.USER, fields.text("input")))
    messages: list[ChatMessage] = []
    names: dict[str, str] = {}  # of functions, by the ids of their calls
    for item in fields.records("input", limits.most_messages):
        _add(messages, item, names)
    if all(message.role is Role.ASSISTANT for message in messages):
        raise fields.missing("input")
    return (*before, *messages)


def _add(messages: list[ChatMessage], item: Fields, names: dict[str, str]) -> None:
    """Add an item; a call belongs to the answer before it."""
    kind = item.text("type", "message")
    if kind == "message":
        role = _ROLES.get(item.text("role"))
        if role is None:
            raise item.invalid("role", f"one of {', '.join(_ROLES)}")
        if not item.has("content"):
            raise item.missing("content")
        messages.append(ChatMessage(role, read_content(item)))
    elif kind == "function_call":
        call = ToolCall(item.text("call_id"), item.text("name"), item.text("arguments", "{}"))
        names[call.call_id] = call.name
        if not messages or messages[-1].role is not Role.ASSISTANT:
            messages.append(ChatMessage(Role.ASSISTANT, ""))
        last = messages[-1]
        messages[-1] = last._replace(tool_calls=(*last.tool_calls, call))
    elif kind == "function_call_output":
        call_id = item.text("call_id")
        content = read_content(item, "output")
        tool_name = names.get(call_id, "")
        messages.append(ChatMessage(Role.TOOL, content, tool_name=tool_name, call_id=call_id))
    elif kind != "reasoning":  # earlier thoughts aren't read again
        raise item.invalid("type", '"message", "function_call" or "function_call_output"')


def _read_tool(tool: Fields) -> Function | None:
    """A function; hosted and custom tools can't be run here."""
    return read_function(tool) if tool.text("type", "function") == "function" else None


def _schema(fields: Fields) -> str:
    text = fields.record("text")
    wanted = None if text is None else text.record("format")
    return "" if wanted is None else read_format(wanted, wanted)


def _overflow(fields: Fields) -> Overflow:
    """What is done with a conversation that is too long: turns are left out only where wanted."""
    truncation = fields.text("truncation", "disabled")
    if truncation not in _TRUNCATIONS:
        raise fields.invalid("truncation", f"one of {', '.join(_TRUNCATIONS)}")
    return _TRUNCATIONS[truncation]


def _num_logprobs(fields: Fields) -> int:
    count = fields.whole("top_logprobs", 0, _MOST_LOGPROBS) or 0
    return count if count or _SCORED in fields.array("include", 16) else -1
