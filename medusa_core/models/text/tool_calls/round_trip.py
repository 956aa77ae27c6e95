"""Check a learned format: calls that the template renders must parse as the same calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from medusa_core.chats.tool_calls.openings import triggers
from medusa_core.chats.tool_calls.whole import parse_answer
from medusa_core.messages import ChatMessage, Role, ToolCall
from medusa_core.messages.tool_calls import ToolCallFormat
from medusa_core.models.text.tool_calls.comparing import header_length, num_turn_end

_QUESTION, _TEXT, _OTHER_TEXT = "Which bird nests in reeds?", "Let me look.", "A bittern."
_PARAMETERS = {
    "type": "object",
    "properties": {
        "river": {"type": "string", "description": "Its name"},
        "code": {"type": "string", "description": "Digits"},
        "depth": {"type": "number", "description": "Metres"},
        "is_frozen": {"type": "boolean", "description": "Ice"},
        "extent": {
            "type": "object",
            "description": "Where",
            "additionalProperties": {"type": "string"},
        },
    },
    "required": ["river"],
}
_TOOLS = (
    {"name": "find_bird", "description": "Finds one.", "parameters": _PARAMETERS},
    {"name": "find_bird_again", "description": "Finds more.", "parameters": _PARAMETERS},
)
_FIRST = {
    "river": "Große Röder {7}",
    "code": "0042",
    "depth": 3.5,
    "is_frozen": True,
    "extent": {"from": [1, "x"], "to": "y"},
}
_SECOND = {"river": "Elbe, near <b>Riesa</b>"}

Texts = Callable[[Sequence[ChatMessage], bool, tuple[str, ...]], str]


def check_round_trip(shape: ToolCallFormat, text_of: Texts) -> None:
    """Render calls with a template and parse the text, character by character.

    Args:
        text_of: Renders messages, with or without generation prompt, and tools; returns an empty
            text if the template refuses them.

    Raises:
        ValueError: The parsed calls differ from the rendered ones.
    """
    calls = [ToolCall("Ga7Hb8Jc9", "find_bird", json.dumps(_FIRST))]
    if shape.is_parallel:
        calls.append(ToolCall("Rd1Se2Tf3", "find_bird_again", json.dumps(_SECOND)))
    tools = tuple(map(json.dumps, _TOOLS))
    question = ChatMessage(Role.USER, _QUESTION)
    opened = text_of((question,), True, tools).rpartition(_QUESTION)[2]
    plain = _answer(text_of, tools, _OTHER_TEXT)
    # Calls without marks before them are the whole answer.
    contents = ("", _TEXT) if triggers(shape) else ("",)
    for content in contents:
        written = _answer(text_of, tools, content, *calls).rstrip()
        if content and calls[0].name not in written:
            continue  # the template writes text or calls, not both
        begin = max(header_length(written, opened), header_length(written, plain))
        written = written[begin : len(written) - num_turn_end(written, plain)]
        is_first = 0 <= written.find(content) < written.find(calls[0].name)
        if is_first:
            written = written[written.find(content) :]
        text, parsed = parse_answer(shape, written, _TOOLS)  # character by character
        found = [(call.name, json.loads(call.arguments)) for call in parsed]
        wanted = [(call.name, json.loads(call.arguments)) for call in calls]
        if found != wanted:
            raise ValueError(f"{found} is read, {wanted} was written")
        is_kept = text.strip().startswith(content) if is_first else content in text
        if (content in written and not is_kept) or (text.strip() and not content):
            raise ValueError(f"{text!r} is read instead of {content!r}")


def _answer(text_of: Texts, tools: tuple[str, ...], content: str, *calls: ToolCall) -> str:
    """Render an answer, and return the text after the question."""
    answer = ChatMessage(Role.ASSISTANT, content, tool_calls=calls)
    prompt = text_of((ChatMessage(Role.USER, _QUESTION), answer), False, tools)
    return prompt.rpartition(_QUESTION)[2]
