"""The format of a model's tool calls, as data; it is learned from the chat template."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Slot(Enum):
    """A part of a call's text that differs from call to call."""

    NAME = "name"  # of the function
    CALL_ID = "id"
    INDEX = "index"  # of the call, from 0 or 1


Segment = str | Slot
KEY = "\0"  # stands for a parameter's name in `ArgumentTags.after_value`


class ArgumentStyle(Enum):
    """Syntax of a call's arguments."""

    JSON = "JSON"
    TAGS = "tags"  # each argument between marks, strings without quotes
    PYTHON = "Python"  # key='text', key=1
    BARE_KEYS = "bare keys"  # as JSON, with bare keys and another quotation mark


class ArgumentTags(NamedTuple):
    """The tags around one argument: `before_key KEY after_key VALUE after_value`.

    Attributes:
        before_key: Text before the parameter's name.
        after_key: Text between the name and a value that is a string.
        after_key_of_others: Text before values of other JSON types, by type. Where it equals
            `after_key`, the parameter's schema says whether a value is a string.
        after_value: Text after the value; `KEY` stands for the parameter's name.
        separator: Text between two arguments.
        quote: Quotation mark around strings; empty where they have none.
    """

    before_key: str = ""
    after_key: str = ""
    after_key_of_others: tuple[tuple[str, str], ...] = ()
    after_value: str = ""
    separator: str = ""
    quote: str = ""


class ToolCallFormat(NamedTuple):
    """A format of tool calls: `section_open CALL separator CALL … section_close`.

    A call is `call_open ARGUMENTS call_close`. White space at the ends of these texts is what the
    template writes; a parser accepts any.

    Attributes:
        section_open: Text before the first call; empty if each call has markers of its own.
        call_open: Segments of a call before its arguments.
        call_close: Segments of a call after its arguments.
        separator: Text between two calls.
        section_close: Text after the last call.
        style: Syntax of the arguments.
        tags: Tags around an argument, unless the arguments are one JSON object.
        name_key: Key of the function's name if a call is a JSON object, else empty.
        arguments_key: Key of the arguments if a call is a JSON object.
        other_openings: Variants of `call_open` that the model may write.
        call_id: Segments of the call id that the template demands; empty if any id will do.
        optional_mark: Optional marker before calls that are the whole answer.
        text_mark: Marker before text that isn't a call; not part of the answer.
        is_open: Whether the prompt ends with the beginning of a call.
        is_parallel: Whether an answer may contain several calls.
        reads_python: Whether the model may also write `[name(key=value)]`.
        is_described: Whether the template describes the functions to the model; else a system
            message does.
        is_replayed: Whether an earlier answer with calls can be rendered as plain text. False if
            the template accepts tool results only after structured calls.
    """

    section_open: str = ""
    call_open: tuple[Segment, ...] = ('{"name": "', Slot.NAME, '", "arguments": ')
    call_close: tuple[Segment, ...] = ("}",)
    separator: str = "\n"
    section_close: str = ""
    style: ArgumentStyle = ArgumentStyle.JSON
    tags: ArgumentTags = ArgumentTags()
    name_key: str = "name"
    arguments_key: str = "arguments"
    other_openings: tuple[tuple[Segment, ...], ...] = ()
    call_id: tuple[Segment, ...] = ()
    optional_mark: str = ""
    text_mark: str = ""
    is_open: bool = False
    is_parallel: bool = True
    reads_python: bool = False
    is_described: bool = True
    is_replayed: bool = True

    @property
    def opening(self) -> str:
        """Fixed text before the first slot of the first call."""
        first = self.call_open[0]
        return self.section_open + (first if isinstance(first, str) else "")

    @property
    def texts(self) -> tuple[str, ...]:
        """All fixed texts of the format; parts of them may be special tokens."""
        openings = (self.call_open, *self.other_openings)
        segments = (*(one for opening in openings for one in opening), *self.call_close)
        tags = (*self.tags[:2], *(text for _, text in self.tags[2]), *self.tags[3:])
        marks = (self.section_open, self.separator, self.section_close)
        others = (self.optional_mark, self.text_mark)
        fixed = (one for one in segments if isinstance(one, str))
        return tuple(text for text in (*fixed, *marks, *tags, *others) if text)

    def without_end(self, end_names: frozenset[str]) -> ToolCallFormat:
        """Return the format, cut at the first end-of-turn token.

        Args:
            end_names: Names of the tokens that end an answer.
        """
        close = self.call_close
        last = close[-1] if close and isinstance(close[-1], str) else ""
        cut_call, cut_section = _before(last, end_names), _before(self.section_close, end_names)
        if cut_call != last:
            return self._replace(call_close=(*close[:-1], cut_call), section_close="")
        return self._replace(section_close=cut_section)


# Written by models whose templates have no form of their own: a system message asks for it.
DESCRIBED_JSON = ToolCallFormat(is_described=False)


def _before(text: str, ends: frozenset[str]) -> str:
    """The text before the first of the end tokens' names."""
    places = [place for end in ends if end and (place := text.find(end)) >= 0]
    return text[: min(places)] if places else text
