"""Incremental parser that separates tool calls from the text of an answer."""

from __future__ import annotations

import re
import secrets
import string
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any

from medusa_core.chats.partial_match import partial_match_length
from medusa_core.chats.tool_calls.arguments import (
    ArgumentReader,
    JsonReader,
    argument_reader,
)
from medusa_core.chats.tool_calls.events import (
    CallDelta,
    CallStarted,
    ContentDelta,
    ToolCallEvent,
)
from medusa_core.chats.tool_calls.matching import (
    MISMATCH,
    PARTIAL,
    JsonEnd,
    match_some,
    match_text,
    trigger_of,
)
from medusa_core.chats.tool_calls.object_calls import ObjectCalls
from medusa_core.chats.tool_calls.openings import CallOpenings, triggers
from medusa_core.chats.tool_calls.python_calls import begins_python_call, python_calls
from medusa_core.messages.tool_calls import ArgumentStyle, ToolCallFormat

_OPENING = re.compile(r"\s*(\[?)\s*")
_FENCE = re.compile(r"```\w*\n")
_FENCE_BEGUN = re.compile(r"`{1,2}|```\w{0,20}")

_ID_LETTERS = string.ascii_letters + string.digits


class _Place(Enum):
    """State of the parser: which part of an answer the next characters belong to."""

    LEAD = 0  # the whole answer may become calls
    TEXT = 1
    CALL = 2  # a call may begin
    PYTHON = 3  # calls as Python writes them, which are read as a whole
    ARGUMENTS = 4
    OBJECT = 5  # after the arguments, in the object that holds them
    CLOSE = 6  # after the arguments, where marks close the call
    AFTER = 7  # after a call


def new_call_id() -> str:
    """Make a random call id: nine letters or digits, as Mistral's templates demand."""
    return "".join(secrets.choice(_ID_LETTERS) for _ in range(9))


class ToolCallParser:
    """Parses a streamed answer into text and tool calls.

    Text that may turn out to begin a call is held back. `CallStarted` is reported once the name and
    the first character of the arguments are parsed; arguments are then streamed as JSON, whatever
    the model's format. Text that only resembles a call is reported as text. An answer that consists
    of JSON calls alone is also parsed without the format's markers: small models forget them.

    Attributes:
        num_calls: Number of calls so far.
        content_end: Position after the last reported text, in all text that was pushed.
        has_unmarked: Whether a call came without the format's markers.
    """

    def __init__(
        self,
        shape: ToolCallFormat,
        tools: Iterable[Mapping[str, Any]],
        make_id: Callable[[], str] = new_call_id,
        *,
        takes_unknown: bool = False,
    ) -> None:
        """Parse one answer.

        Args:
            shape: The model's format of tool calls.
            tools: Functions that may be called: objects of `name` and `parameters`.
            make_id: Makes an id for a call to which the model gave none.
            takes_unknown: Whether calls of other functions are calls, too, and not text, where the
                format's markers show that they are meant as calls.
        """
        self.num_calls = self.content_end = 0
        self.has_unmarked = False
        self._num_pushed = 0
        self._takes_unknown = takes_unknown
        self._shape, self._make_id = shape, make_id
        self._schemas = {tool["name"]: tool.get("parameters") or {} for tool in tools}
        self._names = self._schemas.keys()
        self._objects = ObjectCalls(shape)
        self._openings = CallOpenings(shape, self._names, takes_unknown=takes_unknown)
        self._triggers = triggers(shape)
        self._place = _Place.LEAD
        self._held = ""
        self._opening = ""  # text before a call: part of the answer if no call comes
        self._is_implied = False  # `opening` is the end of the prompt
        self._space = ""  # at the end of the text so far
        self._is_list = self._is_fenced = self._is_marked = False
        self._num_braces = 0  # open, of the object that holds the arguments
        self._reader: ArgumentReader = JsonReader()
        self._steps: dict[_Place, Callable[[], Iterator[ToolCallEvent]]] = {
            _Place.LEAD: self._parse_lead,
            _Place.TEXT: self._parse_text,
            _Place.CALL: self._parse_call,
            _Place.PYTHON: self._parse_python,
            _Place.ARGUMENTS: self._parse_arguments,
            _Place.OBJECT: self._parse_object,
            _Place.CLOSE: self._parse_close,
            _Place.AFTER: self._parse_after,
        }
        if shape.is_open:
            self._is_marked = self._is_implied = True
            self._opening, self._place = shape.opening, _Place.CALL

    def push(self, text: str) -> Iterator[ToolCallEvent]:
        """Parse more of the answer.

        Yields:
            Text that can't become part of a call, started calls, and deltas of their arguments.
        """
        self._held += text
        self._num_pushed += len(text)
        before: tuple[_Place, int] | None = None
        while before != (self._place, len(self._held)):
            before = self._place, len(self._held)
            yield from self._steps[self._place]()

    def finish(self) -> Iterator[ToolCallEvent]:
        """Parse the end of the answer.

        Yields:
            As `push`.
        """
        if self._place is _Place.ARGUMENTS:
            yield from self._read_arguments(is_last=True)
        elif self._place is _Place.PYTHON:
            text = self._held.strip().removesuffix("```" if self._is_fenced else "")
            yield from self._emit_python_calls(text, len(self._held))
        if self._place in (_Place.LEAD, _Place.TEXT, _Place.CALL, _Place.PYTHON):
            opening = "" if self._is_implied else self._opening
            rest, self._held = opening + self._held, ""
            yield from self._emit_text(rest)
        if self._space and not self.num_calls:
            yield self._content(self._space)

    @property
    def position(self) -> int:
        """Position of the first character that isn't consumed, in all text that was pushed."""
        return self._num_pushed - len(self._held)

    def _parse_lead(self) -> Iterator[ToolCallEvent]:
        """Parse the beginning of an answer, which may consist of calls alone."""
        begin, mark = self._held.lstrip(), self._shape.optional_mark
        if not begin or (mark and begin != mark and mark.startswith(begin)):
            return
        if mark and begin.startswith(mark):
            self._expect_call(mark)
        elif fence := _FENCE.match(begin):
            self._is_fenced = True
            self._expect_call(fence.group())
        elif begin[0] in "{[" or self._is_python(begin):
            self._place = _Place.CALL
        elif not _FENCE_BEGUN.fullmatch(begin) and not self._may_be_python(begin):
            self._place = _Place.TEXT
        yield from ()

    def _parse_text(self) -> Iterator[ToolCallEvent]:
        """Report text up to the first trigger; hold back what may begin one."""
        held = self._held
        found = [(place, mark) for mark in self._triggers if (place := held.find(mark)) >= 0]
        num_begun = max((partial_match_length(held, mark) for mark in self._triggers), default=0)
        if found:
            place, mark = min(found, key=lambda one: (one[0], -len(one[1])))
            yield from self._emit_text(self._take_held(place))
            self._is_marked, self._is_list = True, False
            self._expect_call(mark)
        else:
            yield from self._emit_text(self._take_held(len(held) - num_begun))

    def _expect_call(self, opening: str) -> None:
        """Expect a call after `opening`, which is in the held text."""
        before, _, self._held = self._held.partition(opening)
        self._opening = before + opening
        self._place = _Place.CALL

    def _parse_call(self) -> Iterator[ToolCallEvent]:
        """Parse the held text as the beginning of a call, by the format's style."""
        text, mark = self._opening + self._held, self._shape.text_mark
        if self._is_marked and mark and text.startswith(mark):
            if self._space:
                yield self._content(self._space, len(self._opening))
            self._opening, self._held, self._place = "", text[len(mark) :], _Place.TEXT
            self._space, self._is_implied = "", False
            return
        if self._is_marked and mark.startswith(text):
            return
        if self._is_marked and self._shape.style is ArgumentStyle.PYTHON:
            self._place = _Place.PYTHON
        elif self._is_marked and not self._objects.is_native:
            yield from self._parse_marked_call()
        else:
            yield from self._parse_unmarked_call()

    def _parse_marked_call(self) -> Iterator[ToolCallEvent]:
        """Parse a call whose function name is enclosed by markers."""
        text = self._opening + self._held
        found = self._openings.match(text)
        if found.end >= 0:
            self._held = text[found.end :]
            yield self._begin_call(found.name, self._openings.call_id(found))
            self._reader = argument_reader(self._shape, self._schemas.get(found.name, {}))
            self._place, self._num_braces = _Place.ARGUMENTS, 0
        elif found.end != PARTIAL:
            yield from self._emit_as_text()

    def _parse_unmarked_call(self) -> Iterator[ToolCallEvent]:
        """Parse a call in the form of a JSON object, or in Python syntax."""
        start = self._skip_marks()
        opening = _OPENING.match(self._held, max(start, 0))
        assert opening is not None  # it matches anything
        rest = self._held[opening.end() :]
        if start == PARTIAL or not rest:
            return
        if rest[0] == "{":
            self._is_list = self._is_list or bool(opening.group(1))
            yield from self._parse_object_call(rest)
        elif self._is_python(rest):
            self._place = _Place.PYTHON
        elif not self._may_be_python(rest):
            yield from self._emit_as_text()

    def _skip_marks(self) -> int:
        """Return the position after the markers between the trigger and the JSON object."""
        if not self._is_marked:
            return 0
        place, is_partial = match_some(self._held, 0, self._objects.marks_after(self._opening))
        return PARTIAL if is_partial else place

    def _is_python(self, text: str) -> bool:
        """Whether a text begins with a Python call of a known function."""
        return self._shape.reads_python and begins_python_call(text, self._names)

    def _may_be_python(self, text: str) -> bool:
        """Whether a text could become a Python call of a known function."""
        calls = (f"{name}(" for name in self._names)
        return self._shape.reads_python and any(call.startswith(text) for call in calls)

    def _parse_object_call(self, rest: str) -> Iterator[ToolCallEvent]:
        """Parse a JSON object with a name and arguments."""
        name = self._objects.name(rest)
        if name is not None and not self._is_function(name):
            yield from self._emit_as_text()
        elif (head := self._objects.head(rest)) is not None:
            self._held, self._place = rest[head.end :], _Place.ARGUMENTS
            self._reader, self._num_braces = JsonReader(), head.num_braces
            yield self._begin_call(head.name)
        elif (end := JsonEnd().find(rest)) >= 0:
            call = self._objects.read(rest[:end])
            if call is None or not self._is_function(call[0]):
                yield from self._emit_as_text()
                return
            self._held, self._place = rest[end:], _Place.AFTER
            yield from self._emit_call(*call)

    def _is_function(self, name: str) -> bool:
        """Whether a JSON object with this name is a call."""
        return name in self._names or (self._takes_unknown and self._is_marked and bool(name))

    def _parse_python(self) -> Iterator[ToolCallEvent]:
        """Parse calls in Python syntax once their closing marker is there."""
        end = self._shape.section_close.strip().lstrip("])").strip()
        place = self._held.find(end) if end else -1
        if place >= 0 and self._is_marked:
            num_calls = self.num_calls
            opening = self._shape.section_open.strip()
            text = (self._opening + self._held[:place]).removeprefix(trigger_of(opening))
            yield from self._emit_python_calls(text, place + len(end))
            if self.num_calls == num_calls:
                yield from self._emit_as_text()

    def _emit_python_calls(self, text: str, length: int) -> Iterator[ToolCallEvent]:
        """Report the calls in a text in Python syntax; nothing if it isn't one.

        Args:
            text: The text, without markers.
            length: Number of held characters that it takes up.
        """
        calls = python_calls(text, self._names)
        if calls:
            self._held, self._place = self._held[length:], _Place.AFTER
        for name, arguments in calls:
            yield from self._emit_call(name, arguments)

    def _parse_arguments(self) -> Iterator[ToolCallEvent]:
        """Parse arguments while the answer is streamed."""
        yield from self._read_arguments(is_last=False)

    def _read_arguments(self, *, is_last: bool) -> Iterator[ToolCallEvent]:
        """Convert held text to JSON arguments and report them."""
        text, num = self._reader.push(self._held, is_last=is_last)
        self._held = self._held[num:]
        if text:
            yield CallDelta(self.num_calls - 1, text)
        if self._reader.is_done:
            self._place = _Place.OBJECT if self._num_braces else _Place.CLOSE

    def _parse_object(self) -> Iterator[ToolCallEvent]:
        """Skip keys after the arguments, such as an id."""
        rest = self._held.lstrip()
        if not rest:
            return
        if rest[0] not in "},":
            self._place = _Place.AFTER
            return
        end = JsonEnd(depth=self._num_braces).find(rest)
        if end >= 0:
            self._held, self._place = rest[end:], _Place.AFTER
        yield from ()

    def _parse_close(self) -> Iterator[ToolCallEvent]:
        """Skip the markers after a call's arguments; models may leave some out."""
        place = 0
        for segment in self._shape.call_close:
            if not isinstance(segment, str):
                continue
            place, is_partial = match_some(self._held, place, segment)
            if is_partial:
                return
        self._held, self._place = self._held[place:], _Place.AFTER
        yield from ()

    def _parse_after(self) -> Iterator[ToolCallEvent]:
        """Parse separators and closing markers after a call."""
        rest = self._held.lstrip()
        if not rest:
            return
        if self._is_list and rest[0] in ",]":
            self._is_list = rest[0] == ","
            self._skip_separator(rest[0], _Place.CALL if self._is_list else _Place.AFTER)
        elif self._is_marked:
            self._parse_after_marked(rest)
        elif (close := self._objects.close) and match_text(rest, 0, close) != MISMATCH:
            if match_text(rest, 0, close) >= 0:  # a mark that nothing has opened
                self._skip_separator(close, _Place.TEXT)
        elif self._is_fenced and "```".startswith(rest[:3]):
            if len(rest) >= 3:
                self._is_fenced = False
                self._skip_separator("```", _Place.LEAD)
        elif rest[0] in ";,":
            self._skip_separator(rest[0], _Place.CALL)
        else:
            self._place = _Place.CALL if rest[0] == "{" else _Place.TEXT
        yield from ()

    def _parse_after_marked(self, rest: str) -> None:
        """Decide what follows a call with markers: another call, the closing marker, or text."""
        shape = self._shape
        if self._objects.is_native:
            place, is_partial = match_some(rest, 0, self._objects.close)
            if is_partial:
                return
            if place:
                self._held = rest = rest[place:]
            if not rest.strip():
                return
            rest = rest.lstrip()
            if shape.section_open and rest[:1] == "{":
                self._opening, self._place = "", _Place.CALL
                return
        elif shape.style is not ArgumentStyle.PYTHON:
            end = self._openings.match(rest).end
            if end >= 0:
                self._opening, self._held, self._place = "", rest, _Place.CALL
            if end != MISMATCH:
                return
        close = shape.section_close.lstrip()
        close = close.removeprefix("]") if self._objects.is_native else close  # read with the list
        place, is_partial = match_some(rest, 0, close)
        if is_partial:
            return
        self._held = rest[place:] if place else self._held
        self._opening, self._place = "", _Place.TEXT

    def _skip_separator(self, separator: str, next_place: _Place) -> None:
        """Skip a separator; it is reported as text if no further call follows."""
        end = match_text(self._held, 0, separator)
        self._held = self._held[end:]
        self._opening = separator if next_place is _Place.CALL else ""
        self._place = next_place

    def _begin_call(self, name: str, call_id: str = "") -> CallStarted:
        """Number a new call; its id is the model's or a random one."""
        self._opening = self._space = ""
        self._is_implied = False
        self.num_calls += 1
        self.has_unmarked |= bool(self._triggers) and not self._is_marked
        return CallStarted(self.num_calls - 1, call_id or self._make_id(), name)

    def _emit_call(self, name: str, arguments: str) -> Iterator[ToolCallEvent]:
        """Report a complete call."""
        yield self._begin_call(name)
        yield CallDelta(self.num_calls - 1, arguments)

    def _emit_as_text(self) -> Iterator[ToolCallEvent]:
        """Report the held text as text, because it isn't a call."""
        opening, self._opening = ("" if self._is_implied else self._opening), ""
        self._is_list = self._is_implied = False
        self._place = _Place.TEXT
        yield from self._emit_text(opening)

    def _emit_text(self, text: str) -> Iterator[ToolCallEvent]:
        """Report text; hold trailing white space back, which is dropped before a call."""
        text = self._space + text
        shown = text.rstrip()
        self._space = text[len(shown) :]
        if shown:
            yield self._content(shown, len(self._space))

    def _content(self, text: str, num_after: int = 0) -> ContentDelta:
        """Report text, which ends `num_after` characters before the held text."""
        self.content_end = self.position - num_after
        return ContentDelta(text)

    def _take_held(self, length: int) -> str:
        """Remove the first characters of the held text and return them."""
        taken, self._held = self._held[:length], self._held[length:]
        return taken
