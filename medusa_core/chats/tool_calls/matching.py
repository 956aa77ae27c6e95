"""Match the fixed texts of a tool call in a partial answer, whatever the white space."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from medusa_core.messages.tool_calls import Segment, Slot

PARTIAL, MISMATCH = -1, -2  # instead of a place: more text may match; none will
_ID = re.compile(r"[\w.:-]{1,64}")
_NOTABLE = re.compile(r'[{}\[\]"\\]')  # of JSON
_TRIGGER = re.compile(r"<[^<>\s][^<>]*>|\[[^\[\]\s]+\]|[^\s{]+")


class Head(NamedTuple):
    """The part of a call before its arguments.

    Attributes:
        end: Position after it, or `PARTIAL` or `MISMATCH`.
        name: Name of the function.
        call_id: Call id that the model wrote; empty if it wrote none.
        number: Index of the call that the model wrote; empty if it wrote none.
    """

    end: int
    name: str = ""
    call_id: str = ""
    number: str = ""


def match_text(text: str, position: int, fixed: str) -> int:
    """Match a fixed text, with any white space before and between its words.

    Args:
        text: Beginning of the call, as far as it is written.
        position: Position at which the fixed text must begin.
        fixed: The fixed text; white space at its end isn't consumed.

    Returns:
        The position after it; `PARTIAL` if `text` ends within it; else `MISMATCH`.
    """
    for word in fixed.split():
        position = skip_space(text, position)
        if not text.startswith(word, position):
            return PARTIAL if word.startswith(text[position:]) else MISMATCH
        position += len(word)
    return position


def match_some(text: str, position: int, fixed: str) -> tuple[int, bool]:
    """Match as many of the first words of a fixed text as are there.

    Returns:
        The position after them, and whether `text` ends where the next word may still come.
    """
    for word in fixed.split():
        start = skip_space(text, position)
        if not text.startswith(word, start):
            return position, word.startswith(text[start:])
        position = start + len(word)
    return position, False


def skip_space(text: str, position: int) -> int:
    """Return the first position at or after `position` that isn't white space."""
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def match_head(
    text: str,
    position: int,
    segments: Sequence[Segment],
    names: Collection[str],
    *,
    takes_unknown: bool = False,
) -> Head:
    """Match a call up to its arguments.

    Args:
        text: Beginning of the call, as far as it is written.
        position: Position at which the call must begin.
        segments: Fixed texts and slots (name, id, index) of the call's opening.
        names: Names of the functions that may be called.
        takes_unknown: Whether calls of other functions match, too.
    """
    found = _match(text, position, segments, names, Head(0))
    if found.end == MISMATCH and takes_unknown:
        found = _match(text, position, segments, (), Head(0))
    return found


def _match(
    text: str, position: int, segments: Sequence[Segment], names: Collection[str], head: Head
) -> Head:
    """Match the remaining segments recursively, and collect name, id and index.

    Without names any name matches.
    """
    if not segments:
        return head._replace(end=position)
    segment, *rest = segments
    if isinstance(segment, str):
        end = match_text(text, position, segment)
        return _match(text, end, rest, names, head) if end >= 0 else Head(end)
    position = skip_space(text, position)
    if segment is Slot.NAME and not names:
        found_name = _ID.match(text, position)
        if found_name is None or found_name.end() == len(text):
            return Head(PARTIAL if found_name is not None or position >= len(text) else MISMATCH)
        head = head._replace(name=found_name.group())
        return _match(text, found_name.end(), rest, names, head)
    if segment is Slot.NAME:
        candidates = [head.name] if head.name else sorted(names, key=len, reverse=True)
        # A longer name that may still come is waited for.
        for name in candidates:
            found = _with_name(text, position, rest, names, head, name)
            if found.end != MISMATCH:
                return found
        return Head(MISMATCH)
    found_id = _ID.match(text, position)
    if found_id is None or found_id.end() == len(text):
        return Head(PARTIAL if found_id is not None or position >= len(text) else MISMATCH)
    part = found_id.group()
    is_number = segment is Slot.INDEX
    head = head._replace(number=part) if is_number else head._replace(call_id=part)
    return _match(text, found_id.end(), rest, names, head)


def _with_name(
    text: str,
    position: int,
    rest: Sequence[Segment],
    names: Collection[str],
    head: Head,
    name: str,
) -> Head:
    """Match a function name, then the segments after it."""
    if not text.startswith(name, position):
        return Head(PARTIAL if name.startswith(text[position:]) else MISMATCH)
    return _match(text, position + len(name), rest, names, head._replace(name=name))


def trigger_of(opening: str) -> str:
    """Return the first word or tag of a call's opening; a call may begin wherever it occurs.

    Args:
        opening: Text before a call; JSON punctuation in it doesn't count as a word.
    """
    found = _TRIGGER.match(opening.lstrip())
    return found.group() if found is not None else ""


class JsonEnd:
    """Finds the end of a JSON object that comes in pieces."""

    def __init__(self, depth: int = 0) -> None:
        """Begin.

        Args:
            depth: Number of brackets that are open already.
        """
        self._depth = depth
        self._in_string = False
        self._escaped_at = -1  # position of a character after a backslash

    def find(self, text: str) -> int:
        """Read more of the text.

        Returns:
            The position after the last bracket; −1 if it hasn't come yet.
        """
        for found in _NOTABLE.finditer(text):
            place, character = found.start(), found.group()
            if place == self._escaped_at:
                continue
            if self._in_string:
                if character == "\\":
                    self._escaped_at = place + 1
                elif character == '"':
                    self._in_string = False
            elif character == '"':
                self._in_string = True
            elif character in "{[":
                self._depth += 1
            elif character in "}]":
                self._depth -= 1
                if self._depth <= 0:
                    return place + 1
        self._escaped_at -= len(text)
        return -1
