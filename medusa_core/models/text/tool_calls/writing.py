"""Write earlier tool calls in a model's format, for templates that omit them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from medusa_core.messages import ToolCall
from medusa_core.messages.tool_calls import ArgumentStyle, Segment, Slot, ToolCallFormat
from medusa_core.models.text.template_messages import TemplateMessage, arguments_of
from medusa_core.models.text.tool_calls.known_formats import unwritten_format


def omitted_format(source: str) -> ToolCallFormat | None:
    """Return the format of calls that a template's model writes but the template omits.

    None if the template writes calls, or if a system message has to describe the functions.

    Args:
        source: The template's source.
    """
    found = None if "tool_calls" in source else unwritten_format(source)
    return found if found is not None and found.is_described else None


def with_written_calls(message: TemplateMessage, shape: ToolCallFormat) -> TemplateMessage:
    """Return a message whose calls are part of its text."""
    if not message.tool_calls:
        return message
    text = message.content + written_calls(message.tool_calls, shape)
    return message._replace(content=text, tool_calls=())


def written_calls(calls: Sequence[ToolCall], shape: ToolCallFormat) -> str:
    """Return calls as the model would write them.

    Args:
        shape: Its format, with arguments as JSON or in Python syntax.
    """
    texts = ("".join(_call(call, shape)) for call in calls)
    return f"{shape.section_open}{shape.separator.join(texts)}{shape.section_close}"


def _call(call: ToolCall, shape: ToolCallFormat) -> Iterator[str]:
    """Yield opening, arguments and closing of a call."""
    arguments = arguments_of(call)
    yield from (_segment(one, call) for one in shape.call_open)
    if shape.style is ArgumentStyle.PYTHON and isinstance(arguments, Mapping):
        yield ", ".join(f"{key}={_python(value)}" for key, value in arguments.items())
    else:
        yield json.dumps(arguments, ensure_ascii=False)
    yield from (_segment(one, call) for one in shape.call_close)


def _segment(segment: Segment, call: ToolCall) -> str:
    """Return the text of a segment: the name for its slot; nothing for ids and indices."""
    return {Slot.NAME: call.name}.get(segment, "") if isinstance(segment, Slot) else segment


def _python(value: Any) -> str:
    """Return a value as an argument of a Python call."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
