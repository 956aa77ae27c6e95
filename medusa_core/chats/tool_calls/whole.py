"""Parse tool calls of a complete answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from medusa_core.chats.tool_calls.events import CallDelta, CallStarted, ContentDelta
from medusa_core.chats.tool_calls.parser import ToolCallParser
from medusa_core.messages import ToolCall
from medusa_core.messages.tool_calls import ToolCallFormat


def parse_answer(
    shape: ToolCallFormat, pieces: Iterable[str], tools: Iterable[Mapping[str, Any]]
) -> tuple[str, tuple[ToolCall, ...]]:
    """Return the text of an answer outside of its calls, and the calls.

    Args:
        shape: The model's format of tool calls.
        pieces: The answer in pieces.
        tools: Functions that may be called, as in `ToolCallParser`.
    """
    parser = ToolCallParser(shape, tools)
    events = [event for piece in pieces for event in parser.push(piece)]
    text = ""
    calls: list[ToolCall] = []
    for event in (*events, *parser.finish()):
        if isinstance(event, ContentDelta):
            text += event.text
        elif isinstance(event, CallStarted):
            calls.append(ToolCall(event.call_id, event.name, ""))
        elif isinstance(event, CallDelta):
            call = calls[event.place]
            calls[event.place] = call._replace(arguments=call.arguments + event.text)
    return text, tuple(calls)
