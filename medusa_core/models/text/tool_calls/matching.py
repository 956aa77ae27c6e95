"""Fixed texts of a tool call in what a model has written so far: white space may differ."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from medusa_core.messages.tool_calls import Segment, Slot

PARTIAL, MISMATCH = -1, -2  # instead of a place: more text may match; none will
_ID = re.compile(r"[\w.:-]{1,64}")
_TRIGGER = re.compile(r"<[^<>\s][^<>]*>|\[[^\[\]\s]+\]|[^\s{]+")


class Head(NamedTuple):
    """A call up to its arguments.

    Attributes:
        end: The place after it, or `PARTIAL` or `MISMATCH`.
        name: Name of the function.
        call_id: Id that the model has written; empty for none.
        number: Number of the call that the model has written; empty for none.
    """

    end: int
    name: str = ""
    call_id: str = ""
    number: str = ""


def match_text(text: str, place: int, fixed: str) -> int:
    """The place after a fixed text, with any white space before and between its words.

    Args:
        text: What has been written so far.
        place: Where the fixed text must begin.
        fixed: The fixed text; white space at its end isn't taken.

    Returns:
        The place, `PARTIAL` or `MISMATCH`.
    """
    for word in fixed.split():
        place = skip_space(text, place)
        if not text.startswith(word, place):
            return PARTIAL if word.startswith(text[place:]) else MISMATCH
        place += len(word)
    return place


def match_some(text: str, place: int, fixed: str) -> tuple[int, bool]:
    """The place after those first words of a fixed text that are there.

    Returns:
        The place, and whether more text may bring the next word.
    """
    for word in fixed.split():
        start = skip_space(text, place)
        if not text.startswith(word, start):
            return place, word.startswith(text[start:])
        place = start + len(word)
    return place, False


def skip_space(text: str, place: int) -> int:
    """The first place that isn't white space."""
    while place < len(text) and text[place].isspace():
        place += 1
    return place


def match_head(text: str, place: int, segments: Sequence[Segment], names: Collection[str]) -> Head:
    """A call up to its arguments, whose name must be known.

    Args:
        text: What has been written so far.
        place: Where it must begin.
        segments: What it is made of.
        names: Names of the functions that may be called.
    """
    return _match(text, place, segments, names, Head(0))


def _match(
    text: str, place: int, segments: Sequence[Segment], names: Collection[str], head: Head
) -> Head:
    if not segments:
        return head._replace(end=place)
    segment, *rest = segments
    if isinstance(segment, str):
        end = match_text(text, place, segment)
        return _match(text, end, rest, names, head) if end >= 0 else Head(end)
    place = skip_space(text, place)
    if segment is Slot.NAME:
        candidates = [head.name] if head.name else sorted(names, key=len, reverse=True)
        # A longer name that may still come is waited for.
        for name in candidates:
            found = _with_name(text, place, rest, names, head, name)
            if found.end != MISMATCH:
                return found
        return Head(MISMATCH)
    found_id = _ID.match(text, place)
    if found_id is None or found_id.end() == len(text):
        return Head(PARTIAL if found_id is not None or place >= len(text) else MISMATCH)
    part = found_id.group()
    is_number = segment is Slot.INDEX
    head = head._replace(number=part) if is_number else head._replace(call_id=part)
    return _match(text, found_id.end(), rest, names, head)


def _with_name(
    text: str,
    place: int,
    rest: Sequence[Segment],
    names: Collection[str],
    head: Head,
    name: str,
) -> Head:
    if not text.startswith(name, place):
        return Head(PARTIAL if name.startswith(text[place:]) else MISMATCH)
    return _match(text, place + len(name), rest, names, head._replace(name=name))


def trigger_of(opening: str) -> str:
    """The first word or tag of what opens calls: where it stands, a call may begin.

    Args:
        opening: Text before a call; what is JSON in it is no word.
    """
    found = _TRIGGER.match(opening.lstrip())
    return found.group() if found is not None else ""
