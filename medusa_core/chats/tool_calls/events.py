"""Events of the incremental parser of tool calls."""

from __future__ import annotations

from typing import NamedTuple


class ContentDelta(NamedTuple):
    """New text outside of calls.

    Attributes:
        text: The new characters.
    """

    text: str


class CallStarted(NamedTuple):
    """Start of a call, reported once the function's name is complete.

    Attributes:
        place: Index of the call in the answer, from 0.
        call_id: Id of the call.
        name: Name of the function.
    """

    place: int
    call_id: str
    name: str


class CallDelta(NamedTuple):
    """New part of a call's arguments.

    Attributes:
        place: Index of the call in the answer.
        text: The new characters of the JSON object.
    """

    place: int
    text: str


ToolCallEvent = ContentDelta | CallStarted | CallDelta
