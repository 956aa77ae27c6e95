"""Answers of models that think aloud first: `<think>…</think>`, then what they say.

Some templates put the `<think>` at the end of the prompt; then an answer begins inside of it, and
only a `</think>` that stands at the beginning of a line shows that it did.
"""

from __future__ import annotations

import re
from typing import NamedTuple

OPEN, CLOSE = "<think>", "</think>"

_LEAD = re.compile(r"\s*")
_LATE_CLOSE = re.compile(rf"^[ \t]*{CLOSE}[ \t]*$", re.MULTILINE)


class Thinking(NamedTuple):
    """Which part of an answer was thought, and which is said.

    Attributes:
        start: Where the thought begins.
        end: Behind its last character.
        answer_start: Where the answer itself begins; the end of the text while it is still thought.
        is_open: The thought hasn't come to its end.
    """

    start: int
    end: int
    answer_start: int
    is_open: bool


NOTHING_THOUGHT = Thinking(0, 0, 0, False)


def find_thinking(text: str, begins_inside: bool = False) -> Thinking:
    """Where an answer's thought stands; `NOTHING_THOUGHT` if it has none.

    A text that may become a `<think>` with its next characters counts as one that has begun.

    Args:
        text: The answer, or what there is of it.
        begins_inside: The prompt ended with `<think>`.
    """
    if begins_inside and not text.lstrip().startswith(OPEN):
        end = text.find(CLOSE)
        if end < 0:
            return Thinking(0, len(text), len(text), is_open=True)
        return Thinking(0, end, _after_spaces(text, end + len(CLOSE)), is_open=False)
    lead = _LEAD.match(text)
    first = lead.end() if lead is not None else 0
    if text.startswith(OPEN, first):
        start = first + len(OPEN)
        end = text.find(CLOSE, start)
        if end < 0:
            return Thinking(start, len(text), len(text), is_open=True)
        return Thinking(start, end, _after_spaces(text, end + len(CLOSE)), is_open=False)
    if first < len(text) and OPEN.startswith(text[first:]):
        return Thinking(len(text), len(text), len(text), is_open=True)
    late = _LATE_CLOSE.search(text) if CLOSE in text else None
    if late is None:
        return NOTHING_THOUGHT
    return Thinking(0, late.start(), _after_spaces(text, late.end()), is_open=False)


def without_thinking(text: str, begins_inside: bool = False) -> str:
    """What was said, without what was thought before it; empty if all of it is thought."""
    found = find_thinking(text, begins_inside)
    return text if found == NOTHING_THOUGHT else text[found.answer_start :]


def _after_spaces(text: str, at: int) -> int:
    found = _LEAD.match(text, at)
    return found.end() if found is not None else at
