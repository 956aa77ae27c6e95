"""Calls of functions apart from text, while an answer is being written."""

from __future__ import annotations

import json
import re
import secrets
import string
from collections.abc import Callable, Collection, Iterator
from enum import Enum
from typing import Any

from medusa_core.chats.partial_match import partial_match_length
from medusa_core.models.text.tool_calls.call_shape import CallShape
from medusa_core.models.text.tool_calls.events import (
    CallDelta,
    CallStarted,
    ContentDelta,
    ToolCallEvent,
)
from medusa_core.models.text.tool_calls.json_end import JsonEnd
from medusa_core.models.text.tool_calls.python_calls import begins_python_call, python_calls

_ARGUMENTS = ("arguments", "parameters")
_OPENING = re.compile(r"\s*(\[?)\s*")
_FIRST_KEY = re.compile(r'\{\s*"((?:[^"\\]|\\.)*)"\s*:')
_NAMED = re.compile(r'\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")')
_HEAD = re.compile(
    r'\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"(?:arguments|parameters)"\s*:\s*(?=\{)'
)
_FENCE = re.compile(r"```\w*\n")
_FENCE_BEGUN = re.compile(r"`{1,2}|```\w{0,20}")
_ID_LETTERS = string.ascii_letters + string.digits


class _Place(Enum):
    """Where in an answer its end stands."""

    LEAD = 0  # the whole answer may become calls
    TEXT = 1
    CALL = 2  # a call may begin
    PYTHON = 3  # calls as Python writes them, which are read at the end
    ARGUMENTS = 4
    OBJECT = 5  # behind the arguments, in the object that holds them
    BEHIND = 6  # behind a call


def new_call_id() -> str:
    """An id for a call: nine letters or digits, since Mistral's templates take no other."""
    return "".join(secrets.choice(_ID_LETTERS) for _ in range(9))


class ToolCallParser:
    """Takes an answer in pieces; what may become a call with the next one is held back.

    A call begins once its name and the first bracket of its arguments are there; then the
    arguments come as they are written. What only looks like a call comes out as text. An answer
    that is nothing but calls is also read without the marks, which small models forget.

    Attributes:
        num_calls: Calls so far.
    """

    def __init__(
        self,
        shape: CallShape,
        names: Collection[str],
        make_id: Callable[[], str] = new_call_id,
    ) -> None:
        """Read one answer.

        Args:
            shape: How calls look.
            names: Of the functions that may be called.
            make_id: Gives each call its id.
        """
        self.num_calls = 0
        self._shape, self._names, self._make_id = shape, frozenset(names), make_id
        self._place = _Place.LEAD
        self._held = ""
        self._opening = ""  # what stands before a call; it is text if none comes
        self._space = ""  # at the end of the text so far
        self._is_list = self._is_fenced = self._is_marked = self._in_object = False
        self._end = JsonEnd()
        self._steps: dict[_Place, Callable[[], Iterator[ToolCallEvent]]] = {
            _Place.LEAD: self._lead,
            _Place.TEXT: self._text,
            _Place.CALL: self._call,
            _Place.PYTHON: lambda: iter(()),
            _Place.ARGUMENTS: self._arguments,
            _Place.OBJECT: self._object,
            _Place.BEHIND: self._behind,
        }

    def push(self, text: str) -> Iterator[ToolCallEvent]:
        """More of the answer.

        Yields:
            Text that is settled, calls that begin, and more of their arguments.
        """
        self._held += text
        before: tuple[_Place, int] | None = None
        while before != (self._place, len(self._held)):
            before = self._place, len(self._held)
            yield from self._steps[self._place]()

    def finish(self) -> Iterator[ToolCallEvent]:
        """The answer is complete.

        Yields:
            As `push`.
        """
        if self._place is _Place.PYTHON:
            text = self._held.strip().removesuffix("```" if self._is_fenced else "")
            calls = python_calls(text, self._names)
            for name, arguments in calls:
                yield from self._whole_call(name, arguments)
            self._held = "" if calls else self._held
        if self._place not in (_Place.ARGUMENTS, _Place.OBJECT, _Place.BEHIND):
            rest, self._held = self._opening + self._held, ""
            yield from self._say(rest)
        if self._space and not self.num_calls:
            yield ContentDelta(self._space)

    def _lead(self) -> Iterator[ToolCallEvent]:
        """The beginning of an answer that may be nothing but calls."""
        begin, mark = self._held.lstrip(), self._shape.optional_mark
        if not begin or (mark and begin != mark and mark.startswith(begin)):
            return
        if mark and begin.startswith(mark):
            self._open(mark)
        elif fence := _FENCE.match(begin):
            self._is_fenced = True
            self._open(fence.group())
        elif begin[0] in "{[" or self._is_python(begin):
            self._place = _Place.CALL
        elif not _FENCE_BEGUN.fullmatch(begin) and not self._may_be_python(begin):
            self._place = _Place.TEXT
        yield from ()

    def _text(self) -> Iterator[ToolCallEvent]:
        mark = self._shape.mark
        if not mark:
            yield from self._say(self._take(len(self._held)))
            return
        text, found, _ = self._held.partition(mark)
        if found:
            yield from self._say(text)
            self._held = self._held[len(text) :]
            self._is_marked = True
            self._open(mark)
        else:
            yield from self._say(self._take(len(text) - partial_match_length(text, mark)))

    def _open(self, opening: str) -> None:
        """A call may stand behind this, with which the text goes on."""
        before, _, self._held = self._held.partition(opening)
        self._opening = before + opening
        self._place = _Place.CALL

    def _call(self) -> Iterator[ToolCallEvent]:
        """Where a call may begin."""
        opening = _OPENING.match(self._held)
        assert opening is not None  # it matches anything
        rest = self._held[opening.end() :]
        if not rest:
            return
        if self._shape.arguments_mark and self._is_marked and rest[0] != "{":
            yield from self._bare_call(rest)
        elif rest[0] == "{":
            self._is_list = self._is_list or bool(opening.group(1))
            yield from self._object_call(rest)
        elif self._is_python(rest):
            self._place = _Place.PYTHON
        elif not self._may_be_python(rest):
            yield from self._give_up()

    def _is_python(self, text: str) -> bool:
        return self._shape.reads_python and begins_python_call(text, self._names)

    def _may_be_python(self, text: str) -> bool:
        calls = (f"{name}(" for name in self._names)
        return self._shape.reads_python and any(call.startswith(text) for call in calls)

    def _bare_call(self, rest: str) -> Iterator[ToolCallEvent]:
        """A name, a mark, arguments."""
        mark = self._shape.arguments_mark
        name, found, behind = rest.partition(mark)
        arguments = behind.lstrip()
        if found and not arguments:
            return
        if found and name.strip() in self._names and arguments[0] == "{":
            yield self._begin(name.strip())
            self._held, self._place = arguments, _Place.ARGUMENTS
            self._end, self._in_object = JsonEnd(), False
        elif found or not any(f"{one}{mark}".startswith(rest) for one in self._names):
            yield from self._give_up()

    def _object_call(self, rest: str) -> Iterator[ToolCallEvent]:
        """An object of name and arguments."""
        head = _HEAD.match(rest)
        name = "" if head is None else _string(head.group(1))
        if head is not None and name in self._names:
            yield self._begin(name)
            self._held, self._place = rest[head.end() :], _Place.ARGUMENTS
            self._end, self._in_object = JsonEnd(), True
            return
        if head is not None or self._is_other(rest):
            yield from self._give_up()
            return
        end = JsonEnd().find(rest)
        if end < 0:
            return
        call = _read_call(rest[:end])
        if call is None or call[0] not in self._names:
            yield from self._give_up()
            return
        yield from self._whole_call(*call)
        self._held, self._place = rest[end:], _Place.BEHIND

    def _is_other(self, rest: str) -> bool:
        """Does an object begin as no call does? Then it needn't wait for its end."""
        first, named = _FIRST_KEY.match(rest), _NAMED.match(rest)
        if named is not None:
            return _string(named.group(1)) not in self._names
        return first is not None and first.group(1) not in ("name", *_ARGUMENTS)

    def _arguments(self) -> Iterator[ToolCallEvent]:
        end = self._end.find(self._held)
        text = self._take(len(self._held) if end < 0 else end)
        if text:
            yield CallDelta(self.num_calls - 1, text)
        if end >= 0:
            self._place = _Place.OBJECT if self._in_object else _Place.BEHIND

    def _object(self) -> Iterator[ToolCallEvent]:
        """Other keys behind the arguments, such as an id, are of no use."""
        rest = self._held.lstrip()
        if not rest:
            return
        if rest[0] not in "},":
            self._place = _Place.BEHIND
            return
        end = JsonEnd(depth=1).find(rest)
        if end >= 0:
            self._held, self._place = rest[end:], _Place.BEHIND
        yield from ()

    def _behind(self) -> Iterator[ToolCallEvent]:
        """What stands between calls and behind the last one."""
        rest, close = self._held.lstrip(), self._shape.close
        if not rest:
            return
        if self._is_list and rest[0] in ",]":
            self._is_list = rest[0] == ","
            self._go_on(rest[0], _Place.CALL if self._is_list else _Place.BEHIND)
        elif close and close.startswith(rest) and rest != close:
            return
        elif close and rest.startswith(close):
            self._go_on(close, _Place.TEXT)
        elif self._is_marked:
            self._place = _Place.TEXT
        elif self._is_fenced and "```".startswith(rest[:3]):
            if len(rest) >= 3:
                self._is_fenced = False
                self._go_on("```", _Place.LEAD)
        elif rest[0] in ";,":
            self._go_on(rest[0], _Place.CALL)
        else:
            self._place = _Place.CALL if rest[0] == "{" else _Place.TEXT
        yield from ()

    def _go_on(self, taken: str, place: _Place) -> None:
        """Behind something that stands between calls; it is text if no other call comes."""
        self._held = self._held.lstrip()[len(taken) :]
        self._opening = taken if place is _Place.CALL else ""
        self._place = place

    def _begin(self, name: str) -> CallStarted:
        self._opening = self._space = ""
        self.num_calls += 1
        return CallStarted(self.num_calls - 1, self._make_id(), name)

    def _whole_call(self, name: str, arguments: str) -> Iterator[ToolCallEvent]:
        yield self._begin(name)
        yield CallDelta(self.num_calls - 1, arguments)

    def _give_up(self) -> Iterator[ToolCallEvent]:
        """There is no call here: what looked like one is text."""
        opening, self._opening = self._opening, ""
        self._is_list = False
        self._place = _Place.TEXT
        yield from self._say(opening)

    def _say(self, text: str) -> Iterator[ToolCallEvent]:
        """Text; space at its end waits, since none is wanted before a call."""
        text = self._space + text
        shown = text.rstrip()
        self._space = text[len(shown) :]
        if shown:
            yield ContentDelta(shown)

    def _take(self, length: int) -> str:
        taken, self._held = self._held[:length], self._held[length:]
        return taken


def _string(text: str) -> str:
    """A JSON string's value; empty where it is none."""
    try:
        return str(json.loads(text))
    except ValueError:
        return ""


def _read_call(text: str) -> tuple[str, str] | None:
    """Name and arguments of a JSON object, whatever the order of its keys."""
    try:
        found: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError):
        return None
    arguments: Any = next((found[key] for key in _ARGUMENTS if key in found), {})
    if isinstance(arguments, str):  # JSON within JSON
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return None
    if not isinstance(found.get("name"), str) or not isinstance(arguments, dict):
        return None
    return found["name"], json.dumps(arguments, ensure_ascii=False)
