"""Formats of tool calls that can't be learned from the chat template, as models write them.

Each entry is recognised by a text that only its templates contain.
"""

from __future__ import annotations

from medusa_core.messages.tool_calls import (
    ArgumentStyle,
    ArgumentTags,
    Slot,
    ToolCallFormat,
)

_PYTHON_TAGS = ArgumentTags(
    after_key="=", after_key_of_others=(("integer", "="),), separator=", ", quote='"'
)
# Source: the model's page. Its templates describe functions, but some write no calls.
_LFM2 = ToolCallFormat(
    section_open="<|tool_call_start|>[",
    call_open=("", Slot.NAME, "("),
    call_close=(")",),
    separator=", ",
    section_close="]<|tool_call_end|>",
    style=ArgumentStyle.PYTHON,
    tags=_PYTHON_TAGS,
    name_key="",
    arguments_key="",
    reads_python=True,
)
# Source: Google's page on function calling with Gemma 2 and 3, which gives both forms.
_GEMMA = ToolCallFormat(
    call_open=('{"name": "', Slot.NAME, '", "parameters": '),
    arguments_key="parameters",
    reads_python=True,
    is_described=False,
)
# Source: the system message of the template, which writes no calls.
_GRANITE_3 = ToolCallFormat(
    section_open="<|tool_call|>[", separator=", ", section_close="]", is_replayed=True
)
# Source: OpenAI's page on harmony. The template writes the recipient before the channel, models
# mostly after it.
_CHANNEL = "<|channel|>commentary"
_HARMONY = ToolCallFormat(
    call_open=(f"{_CHANNEL} to=functions.", Slot.NAME, " <|constrain|>json<|message|>"),
    other_openings=(
        (f"{_CHANNEL} to=functions.", Slot.NAME, " json<|message|>"),
        (f"{_CHANNEL} to=functions.", Slot.NAME, "<|message|>"),
        ("to=functions.", Slot.NAME, f"{_CHANNEL} <|constrain|>json<|message|>"),
        ("to=functions.", Slot.NAME, f"{_CHANNEL} json<|message|>"),
    ),
    call_close=("<|call|>",),
    separator="<|start|>assistant",
    name_key="",
    arguments_key="",
    is_parallel=False,
    is_replayed=False,
)
# Source: the template. Its prompts end with the mark that begins calls and text alike.
_FUNCTIONARY = ToolCallFormat(
    call_open=(">>>", Slot.NAME, "\n"),
    call_close=(),
    separator="",
    name_key="",
    arguments_key="",
    text_mark=">>>all\n",
    is_open=True,
)


def known_format(template: str) -> ToolCallFormat | None:
    """Return the format for a template of the table; None if it has to be learned.

    A template that doesn't mention `tool_calls` has nothing to learn from.
    """
    if _CHANNEL in template:
        return _HARMONY
    if ">>>${recipient}" in template:
        return _FUNCTIONARY
    return None if "tool_calls" in template else unwritten_format(template)


def unwritten_format(template: str) -> ToolCallFormat | None:
    """Return the format for a template that renders no calls; None if it isn't in the table."""
    if "<start_of_turn>" in template:
        return _GEMMA
    if "<|tool_call|>" in template:
        return _GRANITE_3
    if "<|im_start|>" in template and "List of tools: " in template:
        return _LFM2
    return None
