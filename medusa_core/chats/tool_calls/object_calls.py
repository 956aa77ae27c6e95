"""Calls that are JSON objects with a name and arguments, with or without markers around them."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from medusa_core.messages.tool_calls import ToolCallFormat

_STRING = r'"(?:[^"\\]|\\.)*"'
_ID_KEYS = ("id", "call_id", "tool_call_id", "type")


class ObjectHead(NamedTuple):
    """The part of an object before its arguments.

    Attributes:
        name: Name of the function.
        end: Position of the arguments.
        num_braces: Number of open braces. Qwen2.5-Coder's template describes a call with doubled
            ones, which the model may imitate.
    """

    name: str
    end: int
    num_braces: int


class ObjectCalls:
    """The keys of a format's calls, or the usual ones if its calls aren't JSON objects.

    Attributes:
        is_native: Whether the format's calls are JSON objects.
        close: Markers after the object.
    """

    def __init__(self, shape: ToolCallFormat) -> None:
        self.is_native = bool(shape.name_key)
        names = dict.fromkeys(one for one in ("name", shape.name_key) if one)
        arguments = ("arguments", "parameters", shape.arguments_key)
        self._names, self._arguments = names, dict.fromkeys(one for one in arguments if one)
        self._known = {*names, *self._arguments, *_ID_KEYS}
        ids, name, argument = (
            "|".join(map(re.escape, one)) for one in (_ID_KEYS, names, self._arguments)
        )
        id_pair = rf'"(?:{ids})"\s*:\s*(?:{_STRING}|\d+)\s*,\s*'
        named = rf'\{{{{1,2}}\s*(?:{id_pair})*"(?:{name})"\s*:\s*({_STRING})'
        self._named = re.compile(named)
        self._head = re.compile(rf'{named}\s*,\s*"(?:{argument})"\s*:\s*(?=\{{)')
        self._first = re.compile(r'\{{1,2}\s*"((?:[^"\\]|\\.)*)"\s*:')
        last = shape.call_close[-1] if shape.call_close else ""
        self.close = last.rpartition("}")[2] if isinstance(last, str) else ""
        self._marks = object_marks(shape.opening)

    def marks_after(self, opening: str) -> str:
        """Return the markers between an opening and the JSON object."""
        first = opening.strip()
        return self._marks.removeprefix(first) if first else ""

    def head(self, text: str) -> ObjectHead | None:
        """Return an object's head, if name and arguments come first in it."""
        found = self._head.match(text)
        if found is None:
            return None
        return ObjectHead(_string(found.group(1)), found.end(), 1 + text.startswith("{{"))

    def name(self, text: str) -> str | None:
        """Return the function's name of an incomplete object; None if it may still come.

        It is empty if another first key shows that the object is no call.
        """
        if named := self._named.match(text):
            return _string(named.group(1))
        first = self._first.match(text)
        return "" if first is not None and first.group(1) not in self._known else None

    def read(self, text: str) -> tuple[str, str] | None:
        """Return name and arguments (as JSON) of a complete object; None if it isn't a call."""
        try:
            found: dict[str, Any] = json.loads(text, strict=False)
        except (ValueError, RecursionError):
            return None
        name: Any = next((found[key] for key in self._names if key in found), None)
        arguments: Any = next((found[key] for key in self._arguments if key in found), {})
        if isinstance(arguments, str):  # JSON within JSON
            try:
                arguments = json.loads(arguments)
            except (ValueError, RecursionError):
                return None
        if not isinstance(name, str) or not isinstance(arguments, dict):
            return None
        return name, json.dumps(arguments, ensure_ascii=False)


def object_marks(opening: str) -> str:
    """Return the markers before a JSON call, without the bracket of a list of calls."""
    return opening.rpartition("{")[0].strip().removesuffix("[").rstrip()


def _string(text: str) -> str:
    """Return the value of a JSON string; empty if it is invalid."""
    try:
        return str(json.loads(text))
    except ValueError:
        return ""
