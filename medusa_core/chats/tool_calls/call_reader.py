"""Separate the tool calls of an answer from its text, with positions in the answer."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from medusa_core.chats.tool_calls.events import CallStarted, ContentDelta, ToolCallEvent
from medusa_core.chats.tool_calls.parser import ToolCallParser
from medusa_core.messages import ToolCall, ToolCallFormat

# Decoded UTF-8 never holds half a surrogate pair. The first halves stand for tags of reasoning.
_FIRST_SYMBOL = 0xDC00
_SYMBOLS = re.compile("([\udc00-\udfff])")


class CallForm(NamedTuple):
    """How a model writes calls of the functions that it was offered.

    Attributes:
        format: Format of the calls.
        tools: The functions, as in `Generate.tools`.
        markers: Special tokens that mark calls: names by ids.
    """

    format: ToolCallFormat
    tools: tuple[str, ...]
    markers: tuple[tuple[int, str], ...] = ()


class Range(NamedTuple):
    """Characters of an answer."""

    start: int
    end: int


class CallReader:
    """Reads the text of an answer; special tokens that mark calls, which have no text, are symbols.

    Attributes:
        calls: The calls so far; the arguments of the last one may be incomplete.
    """

    def __init__(self, form: CallForm) -> None:
        """Read one answer.

        Args:
            form: How the model writes calls.
        """
        self.calls: list[ToolCall] = []
        self._parser = ToolCallParser(form.format, map(json.loads, form.tools), takes_unknown=True)
        symbols = enumerate(form.markers, start=_FIRST_SYMBOL)
        self._ids: Mapping[int, str] = {one[0]: chr(code) for code, one in symbols}
        self._names = {self._ids[token_id]: name for token_id, name in form.markers}
        # What was pushed: where pieces start among all that was pushed, and in the answer; a
        # marker takes no character of the answer.
        self._starts: list[int] = []
        self._places: list[Range] = []
        self._num_pushed = 0
        self._call_start = self._call_end = 0  # of the last call, among all that was pushed

    @property
    def has_unmarked(self) -> bool:
        """Whether a call came without the format's markers."""
        return self._parser.has_unmarked

    def symbol(self, token_id: int) -> str:
        """Return the symbol of a marker; empty for other tokens."""
        return self._ids.get(token_id, "")

    def num_chars(self, text: str) -> int:
        """Return the number of characters without symbols."""
        return len(text) - sum(text.count(symbol) for symbol in self._names)

    def push(self, text: str, start: int) -> Iterator[Range]:
        """Read more of the answer.

        Args:
            text: The next characters, with symbols of markers.
            start: Position of the first character in the answer.

        Yields:
            Ranges of the answer that are in no call.
        """
        for part in _SYMBOLS.split(text) if self._names else (text,):
            name = self._names.get(part, "")
            end = start if name else start + len(part)
            if part:
                self._starts.append(self._num_pushed)
                self._places.append(Range(start, end))
                self._num_pushed += len(name or part)
                yield from self._ranges(self._parser.push(name or part))
            start = end

    def finish(self) -> Iterator[Range]:
        """Read the end of the answer; a call whose arguments are incomplete is text after all.

        Yields:
            As `push`.
        """
        yield from self._ranges(self._parser.finish())
        if self.calls and not _is_json(self.calls[-1].arguments):
            self.calls.pop()
            yield from self._in_answer(self._call_start, self._num_pushed)

    def _ranges(self, events: Iterable[ToolCallEvent]) -> Iterator[Range]:
        """Add calls to `calls`, and yield the ranges of the answer that are text."""
        for event in events:
            if isinstance(event, ContentDelta):
                end = self._parser.content_end
                yield from self._in_answer(end - len(event.text), end)
            elif isinstance(event, CallStarted):
                self._call_start = max(self._parser.content_end, self._call_end)
                self.calls.append(ToolCall(event.call_id, event.name, ""))
            else:
                call = self.calls[event.place]
                self.calls[event.place] = call._replace(arguments=call.arguments + event.text)
                self._call_end = self._parser.position

    def _in_answer(self, start: int, end: int) -> Iterator[Range]:
        """Yield the ranges of the answer for a range of what was pushed."""
        first = max(0, bisect_right(self._starts, start) - 1)
        starts = (*self._starts[first:], self._num_pushed)
        for (begin, stop), place in zip(pairwise(starts), self._places[first:], strict=True):
            if begin >= end:
                return
            low = min(place.end, place.start + max(0, start - begin))
            high = min(place.end, place.start + end - begin)
            if low < high and stop > start:
                yield Range(low, high)


def _is_json(text: str) -> bool:
    """Whether a text is JSON."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
