"""Requests as Anthropic's API has them: turns of blocks, tools, thinking."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from medusa_core.messages import ChatMessage, Role, ToolCall
from medusa_core.server.chat import ChatRequest, ToolChoice, ToolMode
from medusa_core.server.dialects.anthropic_blocks import read_blocks, read_result
from medusa_core.server.dialects.openai_messages import (
    read_content,
    read_format,
)
from medusa_core.server.fields import Fields
from medusa_core.server.limits import Limits
from medusa_core.server.offered_tools import Function, read_function, read_offered
from medusa_core.server.sampling import read_max_tokens, read_settings, read_stops

_MOST_BLOCKS = 1024
_MOST_FUNCTIONS = 128
_CHOICES = {
    "auto": ToolMode.AUTO,
    "any": ToolMode.REQUIRED,
    "tool": ToolMode.REQUIRED,
    "none": ToolMode.NONE,
}
_SYSTEMS = ("system", "developer")
_ROLES = ("user", "assistant", *_SYSTEMS)
_THOUGHTS = {"enabled": True, "disabled": False, "adaptive": None}
# A model's earlier thoughts, and what Anthropic's servers did beside the text.
_NOT_READ = ("thinking", "redacted_thinking", "server_tool_use", "tool_reference")


class MessagesRequest(NamedTuple):
    """A request of this API.

    Attributes:
        chat: What is asked.
        streams: The answer is wanted as it comes.
    """

    chat: ChatRequest
    streams: bool


def read_request(fields: Fields, limits: Limits, *, needs_max_tokens: bool) -> MessagesRequest:
    """What a request wants.

    Args:
        fields: The request.
        limits: What it may cost.
        needs_max_tokens: An answer is wanted, whose length this API must know.

    Raises:
        ApiError: It can't be read.
    """
    max_tokens = read_max_tokens(fields, limits, "max_tokens")
    if needs_max_tokens and not max_tokens:
        raise fields.missing("max_tokens")
    stops = read_stops(fields, limits, "stop_sequences")
    settings, open_settings = read_settings(fields, limits, max_tokens, stops)
    offered = read_offered(fields.records("tools", _MOST_FUNCTIONS), _read_tool)
    tools = offered.functions
    choice = _tool_choice(fields, tools)
    chat = ChatRequest(
        model=fields.text("model"),
        messages=_messages(fields, limits),
        settings=replace(settings, thinks=_thinks(fields, settings.thinks)),
        open_settings=open_settings,
        tools=() if choice.mode is ToolMode.NONE else tools,
        tool_choice=choice,
        schema=_schema(fields),
        warning=offered.warning,
    )
    return MessagesRequest(chat, fields.flag("stream"))


def _messages(fields: Fields, limits: Limits) -> tuple[ChatMessage, ...]:
    messages: list[ChatMessage] = []
    names: dict[str, str] = {}  # of functions, by the ids of their calls
    for turn in fields.records("messages", limits.most_messages):
        role = turn.text("role")
        if role not in _ROLES:
            raise turn.invalid("role", f"one of {', '.join(_ROLES)}")
        if not turn.has("content"):
            raise turn.missing("content")
        if role in _SYSTEMS:  # which clients send in the middle, too
            messages.append(ChatMessage(Role.SYSTEM, read_content(turn)))
        elif role == "assistant":
            answer = _answer(turn)
            names |= {call.call_id: call.name for call in answer.tool_calls}
            messages.append(answer)
        else:
            messages += _user_turn(turn, names)
    if all(message.role is Role.ASSISTANT for message in messages):
        raise fields.invalid("messages", "a list with a user's message")
    system = read_content(fields, "system")
    return (ChatMessage(Role.SYSTEM, system), *messages) if system else tuple(messages)


def _answer(turn: Fields) -> ChatMessage:
    """An earlier answer: its text and its calls; what was thought isn't read again."""
    if isinstance(turn.values.get("content"), str):
        return ChatMessage(Role.ASSISTANT, turn.text("content"))
    texts, calls = [], []
    for block in turn.records("content", _MOST_BLOCKS):
        kind = block.text("type")
        if kind == "text":
            texts.append(block.text("text"))
        elif kind == "tool_use":
            arguments = block.record("input") or Fields({})
            written = json.dumps(arguments.values, ensure_ascii=False)
            calls.append(ToolCall(block.text("id"), block.text("name"), written))
        elif kind not in _NOT_READ and not kind.endswith("_tool_result"):
            raise block.invalid("type", '"text" or "tool_use"')
    return ChatMessage(Role.ASSISTANT, "".join(texts), tool_calls=tuple(calls))


def _user_turn(turn: Fields, names: dict[str, str]) -> Iterator[ChatMessage]:
    """A user's turn: results of calls first, then what the user says."""
    if isinstance(turn.values.get("content"), str):
        yield ChatMessage(Role.USER, turn.text("content"))
        return
    blocks, has_results = [], False
    for block in turn.records("content", _MOST_BLOCKS):
        if block.text("type") == "tool_result":
            has_results = True
            call_id = block.text("tool_use_id")
            content = read_result(block)
            yield ChatMessage(Role.TOOL, content, tool_name=names.get(call_id, ""), call_id=call_id)
        else:
            blocks.append(block)
    text = read_blocks(blocks)
    if text or not has_results:
        yield ChatMessage(Role.USER, text)


def _read_tool(tool: Fields) -> Function | None:
    """A function; tools of other types, which Anthropic's servers run, can't be run here."""
    if tool.text("type", "custom") != "custom":
        return None
    return read_function(tool, "input_schema")


def _tool_choice(fields: Fields, tools: tuple[str, ...]) -> ToolChoice:
    choice = fields.record("tool_choice")
    if choice is None:
        return ToolChoice()
    kind = choice.text("type")
    if kind not in _CHOICES:
        raise choice.invalid("type", f"one of {', '.join(_CHOICES)}")
    mode, name = _CHOICES[kind], ""
    if mode is ToolMode.REQUIRED and not tools:
        raise fields.invalid("tool_choice", "left out where there are no tools")
    if kind == "tool":
        name = choice.text("name")
        if name not in {json.loads(tool)["name"] for tool in tools}:
            raise choice.invalid("name", "the name of one of the tools")
    is_parallel = not choice.flag("disable_parallel_tool_use")
    return ToolChoice(mode, name, is_parallel)


def _schema(fields: Fields) -> str:
    """The JSON schema that the answer must match; empty for free text."""
    config = fields.record("output_config")
    wanted = None if config is None else config.record("format")
    return "" if wanted is None else read_format(wanted, wanted)


def _thinks(fields: Fields, otherwise: bool | None) -> bool | None:
    thinking = fields.record("thinking")
    if thinking is None:
        return otherwise
    kind = thinking.text("type")
    if kind not in _THOUGHTS:
        raise thinking.invalid("type", f"one of {', '.join(_THOUGHTS)}")
    return _THOUGHTS[kind]
