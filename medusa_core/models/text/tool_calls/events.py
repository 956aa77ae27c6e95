"""What a parser of tool calls reports while an answer is being written."""

from __future__ import annotations

from typing import NamedTuple


class ContentDelta(NamedTuple):
    """More of an answer's text outside of calls.

    Attributes:
        text: What is new.
    """

    text: str


class CallStarted(NamedTuple):
    """The model begins to call a function.

    Attributes:
        place: Index of the call in the answer, from 0.
        call_id: Id of the call.
        name: Name of the function.
    """

    place: int
    call_id: str
    name: str


class CallDelta(NamedTuple):
    """More of a call's arguments.

    Attributes:
        place: Index of the call in the answer.
        text: What is new of the JSON object.
    """

    place: int
    text: str


ToolCallEvent = ContentDelta | CallStarted | CallDelta
