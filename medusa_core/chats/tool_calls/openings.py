"""Openings of calls in the model's format: where a call may begin, up to its arguments."""

from __future__ import annotations

from collections.abc import Collection

from medusa_core.chats.tool_calls.matching import (
    MISMATCH,
    PARTIAL,
    Head,
    match_head,
    match_text,
    trigger_of,
)
from medusa_core.chats.tool_calls.object_calls import object_marks
from medusa_core.messages.tool_calls import ArgumentStyle, Segment, Slot, ToolCallFormat


class CallOpenings:
    """The openings of calls whose function name is enclosed by markers."""

    def __init__(
        self, shape: ToolCallFormat, names: Collection[str], *, takes_unknown: bool
    ) -> None:
        """Prepare.

        Args:
            names: Names of the functions that may be called.
            takes_unknown: Whether calls of other functions match, too.
        """
        self._shape, self._names, self._takes_unknown = shape, names, takes_unknown
        first, *others = shape.call_open
        assert isinstance(first, str)  # by the making of formats
        last_line = first.strip().splitlines()[-1:]
        # Models forget the markers around several calls.
        openings = dict.fromkeys((shape.opening, shape.separator + first, first, *last_line))
        self._segments = [*((one, *others) for one in openings), *shape.other_openings]
        close = next((one for one in shape.call_close if isinstance(one, str)), "")
        # What follows the opening of a call with tags: an argument, or its end.
        followers = (shape.tags.before_key, close, shape.section_close)
        self._followers = [one.split()[0] for one in followers if one.strip()]

    def match(self, text: str) -> Head:
        """Match a call up to its arguments; the end is `PARTIAL` if more text may match."""
        heads = [self._match(text, segments) for segments in self._segments]
        complete = (head for head in heads if head.end >= 0)
        is_partial = any(head.end == PARTIAL for head in heads)
        return next(complete, Head(PARTIAL if is_partial else MISMATCH))

    def call_id(self, head: Head) -> str:
        """Return the call id that the model wrote; empty if it wrote none."""
        if not self._shape.call_id:
            return head.call_id
        parts = {Slot.NAME: head.name, Slot.INDEX: head.number, Slot.CALL_ID: head.call_id}
        return "".join(one if isinstance(one, str) else parts[one] for one in self._shape.call_id)

    def _match(self, text: str, segments: tuple[Segment, ...]) -> Head:
        """Match one opening; a mismatch if no arguments follow."""
        found = match_head(text, 0, segments, self._names, takes_unknown=self._takes_unknown)
        if found.end < 0:
            return found
        if self._shape.style is not ArgumentStyle.TAGS:
            begin = match_text(text, found.end, "{")
            return found._replace(end=begin - 1 if begin >= 0 else begin)
        after = [match_text(text, found.end, one) for one in self._followers]
        is_begun = max(after, default=MISMATCH) >= 0
        return found if is_begun else Head(PARTIAL if PARTIAL in after else MISMATCH)


def triggers(shape: ToolCallFormat) -> tuple[str, ...]:
    """Return the words and tags that may begin a call within text."""
    first = shape.call_open[0] if isinstance(shape.call_open[0], str) else ""
    openings = [shape.opening, first]
    if shape.name_key:
        openings = list(map(object_marks, openings))
    else:
        openings += [line for line in first.strip().splitlines()[-1:] if line.startswith("<")]
        openings += [one[0] for one in shape.other_openings if isinstance(one[0], str)]
    found = (trigger_of(opening) for opening in openings)
    return tuple(dict.fromkeys(trigger for trigger in found if len(trigger) > 2))
