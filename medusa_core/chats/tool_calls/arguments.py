"""Incremental readers that convert the arguments of a tool call to JSON."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from typing import Any, Protocol

from medusa_core.chats.partial_match import partial_match_length
from medusa_core.chats.tool_calls.matching import (
    MISMATCH,
    PARTIAL,
    match_text,
    skip_space,
)
from medusa_core.messages.tool_calls import KEY, ArgumentStyle, ArgumentTags, ToolCallFormat

_MOST_KEY_CHARS = 256
_MOST_REFERENCES = 8  # from one part of a schema to the next
_CDATA = "<![CDATA["  # stands before text that holds tags, in some templates
_PLAIN = re.compile(r'[^"\\\x00-\x1f]+')
_HIGH, _LOW = r"\\u[dD][89abAB][\da-fA-F]{2}", r"\\u[dD][c-fC-F][\da-fA-F]{2}"  # of a pair
_ESCAPE = re.compile(r'\\(?:u[\da-fA-F]{4}|["\\/bfnrt])', re.ASCII)
_PAIR = re.compile(_HIGH + _LOW, re.ASCII)
_ESCAPE_BEGUN = re.compile(rf"(?:{_HIGH})?(?:\\(?:u[\da-fA-F]{{0,3}})?)?", re.ASCII)
_TYPE_NAMES: Mapping[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}


class ArgumentReader(Protocol):
    """Reads the arguments of one call.

    Attributes:
        is_done: Whether the arguments are complete.
    """

    is_done: bool

    def push(self, text: str, *, is_last: bool = False) -> tuple[str, int]:
        """Read more of the arguments.

        Args:
            text: The characters not yet consumed, with the new ones at the end.
            is_last: Whether the answer ends after `text`.

        Returns:
            The next part of the JSON text, and the number of characters consumed.
        """
        ...


def argument_reader(shape: ToolCallFormat, schema: Mapping[str, Any]) -> ArgumentReader:
    """Make a reader for the arguments of one call.

    Args:
        shape: The model's format of tool calls.
        schema: JSON schema of the function's parameters.
    """
    if shape.style is ArgumentStyle.TAGS:
        close = next((one for one in shape.call_close if isinstance(one, str)), "")
        return TagReader(shape.tags, close, schema)
    if shape.style is ArgumentStyle.BARE_KEYS:
        return BareKeyReader(shape.tags.quote)
    return JsonReader()


class JsonReader:
    """Rewrites a JSON object on one line, as `json.dumps` would, however the model formatted it.

    Line breaks within strings and backslashes that escape nothing, which models write in code and
    in paths, become valid escapes; a comma before a closing bracket is dropped.
    """

    def __init__(self) -> None:
        self.is_done = False
        self._depth = 0
        self._in_string = self._in_word = False
        self._gap = ""  # a comma or a space that the next character may make unnecessary

    def push(self, text: str, *, is_last: bool = False) -> tuple[str, int]:
        """Read more of the arguments; see `ArgumentReader`."""
        parts: list[str] = []
        place = end = 0
        while place < len(text) and not self.is_done:
            read = self._in_string_at if self._in_string else self._outside_at
            part, end = read(text, place, is_last)
            if end == place:
                break
            parts.append(part)
            place = end
        return "".join(parts), place

    def _in_string_at(self, text: str, position: int, is_last: bool) -> tuple[str, int]:
        """Return the next part of a string as JSON, and the position after it in `text`.

        That is `position` itself if an escape sequence is incomplete.
        """
        if plain := _PLAIN.match(text, position):
            return plain.group(), plain.end()
        character = text[position]
        if character == '"':
            self._in_string = False
            return character, position + 1
        if character != "\\":
            return json.dumps(character)[1:-1], position + 1
        if not is_last and _ESCAPE_BEGUN.fullmatch(text, position):
            return "", position
        if escape := _PAIR.match(text, position) or _ESCAPE.match(text, position):
            value = json.loads(f'"{escape.group()}"')
            is_whole = not "\ud800" <= value <= "\udfff"  # half a pair can't be sent as UTF-8
            written = json.dumps(value, ensure_ascii=not is_whole)[1:-1]
            return written, escape.end()
        if text.startswith("\\'", position):  # as in Python's strings
            return "'", position + 2
        return "\\\\", position + 1

    def _outside_at(self, text: str, position: int, is_last: bool) -> tuple[str, int]:
        """Rewrite one character or word outside of strings; white space is normalized."""
        del is_last
        character = text[position]
        if character == ",":
            self._gap = ", "
        elif character.isspace():
            self._gap = self._gap or (" " if self._in_word else "")
        if character == "," or character.isspace():
            return "", position + 1
        is_word = character not in '{}[]:"'
        is_needed = character not in "}]" if self._gap == ", " else is_word
        gap, self._gap = self._gap if is_needed else "", ""
        self._in_word, self._in_string = is_word, character == '"'
        self._depth += (character in "{[") - (character in "}]")
        self.is_done = character in "}]" and self._depth <= 0
        return gap + (": " if character == ":" else character), position + 1


class BareKeyReader:
    """Converts an object with unquoted keys and its own quotation mark (Gemma 4) to JSON."""

    def __init__(self, quote: str) -> None:
        """Read arguments.

        Args:
            quote: Quotation mark of the format.
        """
        self.is_done = False
        self._quote = quote
        self._open: list[str] = []
        self._in_string = self._is_key_next = False

    def push(self, text: str, *, is_last: bool = False) -> tuple[str, int]:
        """Read more of the arguments; see `ArgumentReader`."""
        written, place = "", 0
        while place < len(text) and not self.is_done:
            part, num = self._part(text[place:], is_last)
            if not num:
                break
            written, place = written + part, place + num
        return written, place

    def _part(self, text: str, is_last: bool) -> tuple[str, int]:
        """Convert the next quote, string part, key or punctuation; nothing if it is incomplete."""
        quote = self._quote
        if text.startswith(quote):
            self._in_string = not self._in_string
            self._is_key_next = False
            return '"', len(quote)
        if quote.startswith(text) and not is_last:
            return "", 0
        if self._in_string:
            end = text.find(quote)
            num = len(text) - partial_match_length(text, quote) if end < 0 else end
            return json.dumps(text[:num], ensure_ascii=False)[1:-1], num
        character = text[0]
        if character.isspace():
            return "", 1
        if character in "{[":
            self._open.append(character)
        elif character in "}]":
            self._open.pop()
            self.is_done = not self._open
        if character in "{,":
            self._is_key_next = self._open[-1:] == ["{"]
        elif self._is_key_next and character not in "}]":
            end = text.find(":")
            if end < 0:
                return "", 0
            self._is_key_next = False
            return json.dumps(text[:end].strip().strip('"'), ensure_ascii=False), end
        return (", " if character == "," else ": " if character == ":" else character), 1


class TagReader:
    """Converts arguments between tags, such as `<parameter=key>value</parameter>`, to JSON."""

    def __init__(self, tags: ArgumentTags, close: str, schema: Mapping[str, Any]) -> None:
        """Read arguments.

        Args:
            close: What ends the call after its last argument.
            schema: JSON schema of the parameters.
        """
        self.is_done = False
        self._tags, self._close, self._schema = tags, close, schema
        self._num = 0  # arguments so far
        self._key = ""
        self._types: frozenset[str] = frozenset()
        self._is_in_value = False
        self._begins_value = False
        self._has_line_break = self._is_cdata = False

    def push(self, text: str, *, is_last: bool = False) -> tuple[str, int]:
        """Read more of the arguments; see `ArgumentReader`."""
        written, place = "", 0
        while not self.is_done:
            step = self._value if self._is_in_value else self._argument
            part, num = step(text[place:], is_last)
            written, place = written + part, place + num
            if not num and not self.is_done:
                break
        return written, place

    def _argument(self, text: str, is_last: bool) -> tuple[str, int]:
        """Read up to a value: the separator, the opening tag and the key."""
        # What ends the call may begin as an argument does.
        close = match_text(text, 0, self._close) if self._close.strip() else MISMATCH
        lead = self._match_lead(text) if close == MISMATCH else close
        if lead == PARTIAL and not is_last:
            return "", 0
        if lead < 0 or close >= 0:
            self.is_done = True
            return ("}" if self._num else "{}"), 0
        found = self._match_key(text, lead)
        if found is None:
            return "", 0
        key, end, before_value = found
        self._key, self._num = key, self._num + 1
        self._types = self._types_of(before_value)
        self._is_in_value = self._begins_value = True
        self._has_line_break, self._is_cdata = before_value.endswith("\n"), False
        begin = ("{" if self._num == 1 else ", ") + json.dumps(key, ensure_ascii=False) + ": "
        return begin + ('"' if self._is_text else ""), end

    def _match_lead(self, text: str) -> int:
        """Return the position of the next key; `PARTIAL` or `MISMATCH` if there is none yet."""
        place = match_text(text, 0, self._tags.separator) if self._num else 0
        if place == MISMATCH:
            place = 0
        if place == PARTIAL:
            return PARTIAL
        return match_text(text, place, self._tags.before_key)

    def _match_key(self, text: str, lead: int) -> tuple[str, int, str] | None:
        """Return a key, the position after its closing tag, and the tag; None while incomplete."""
        tags = self._tags
        marks = {tags.after_key, *(mark for _, mark in tags.after_key_of_others)}
        for end in range(lead, min(len(text), lead + _MOST_KEY_CHARS)):
            found = {mark: match_text(text, end, mark) for mark in marks}
            if PARTIAL in found.values():
                return None
            whole = [mark for mark, place in found.items() if place >= 0]
            if whole:
                mark = max(whole, key=len)
                return text[lead:end].strip(), found[mark], mark
        return None

    def _types_of(self, before_value: str) -> frozenset[str]:
        """Return the types that the value may have, by its tag or else by the schema."""
        tags = self._tags
        others = {mark for _, mark in tags.after_key_of_others}
        if tags.after_key not in others:
            if before_value == tags.after_key:
                return frozenset({"string"})
            return frozenset(set(_TYPE_NAMES.values()) - {"string"})
        properties = self._schema.get("properties")
        found = properties.get(self._key) if isinstance(properties, dict) else None
        return types_of(found, self._schema)

    @property
    def _is_text(self) -> bool:
        """Whether the current value is a string, which is streamed without parsing."""
        return self._types == {"string"}

    def _value(self, text: str, is_last: bool) -> tuple[str, int]:
        """Read more of a value: strings are streamed, other values wait for their end."""
        if self._begins_value and text:
            if _CDATA.startswith(text[: len(_CDATA)]) and len(text) < len(_CDATA) and not is_last:
                return "", 0
            self._begins_value = False
            if text.startswith(_CDATA):
                self._is_cdata = True
                return "", len(_CDATA)
            if text.startswith("\n") and self._has_line_break:  # which belongs to the mark before
                return "", 1
        mark = self._tags.after_value.replace(KEY, self._key)
        if self._is_cdata:
            mark = "]]>" + mark.lstrip()
        end, is_certain = self._find_end(text, mark.strip(), is_last)
        if end < 0:
            return self._some(text, -1 - end, mark) if self._is_text else ("", 0)
        if not is_certain:
            return self._some(text, end, mark) if self._is_text else ("", 0)
        value = text[:end].removesuffix("\n") if mark.startswith("\n") else text[:end]
        self._is_in_value = False
        num = end + len(mark.strip())
        if self._is_text:
            return json.dumps(value, ensure_ascii=False)[1:], num
        return json.dumps(self._converted(value), ensure_ascii=False), num

    def _some(self, text: str, num: int, closing_tag: str) -> tuple[str, int]:
        """Return the part of a string value that precedes a possible closing tag."""
        shown = text[:num].removesuffix("\n") if closing_tag.startswith("\n") else text[:num]
        return json.dumps(shown, ensure_ascii=False)[1:-1], len(shown)

    def _find_end(self, text: str, closing_tag: str, is_last: bool) -> tuple[int, bool]:
        """Find the end of the value: its position, and whether that is certain.

        The position is −1 − n if the value doesn't end within n characters. The closing tag ends
        a value only if another argument or the end of the call follows, because a value may
        contain the tag.
        """
        end = text.find(closing_tag)
        while end >= 0:
            after = end + len(closing_tag)
            if is_last or not self._close:
                return end, True
            followers = (self._tags.separator + self._tags.before_key, self._close)
            found = [match_text(text, after, one) for one in followers]
            if max(found) >= 0 or self._begins(text, after):
                return end, True
            if PARTIAL in found:
                return end, False
            end = text.find(closing_tag, end + 1)
        return -1 - (len(text) - partial_match_length(text, closing_tag)), False

    def _begins(self, text: str, position: int) -> bool:
        """Whether the first word of the call's end is there; models forget the rest."""
        words = self._close.split()
        return bool(words) and match_text(text, position, words[0]) >= 0

    def _converted(self, text: str) -> Any:
        """Convert a value that isn't a string: JSON, a Python literal, or nested tags."""
        stripped = text.strip()
        if match_text(stripped, 0, self._tags.before_key) >= 0 and KEY in self._tags.after_value:
            return _nested(stripped, self._tags)
        for parse in (json.loads, ast.literal_eval):
            try:
                value = parse(stripped)
                json.dumps(value, allow_nan=False)
            except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
                continue
            name = _TYPE_NAMES.get(type(value), "")
            is_number = name == "integer" and "number" in self._types
            if not self._types or name in self._types or is_number or "string" not in self._types:
                return value
        return text


def types_of(schema: Any, root: Mapping[str, Any], depth: int = 8) -> frozenset[str]:
    """Return the JSON types that a schema allows; empty if it allows any or is unclear.

    Args:
        root: The schema that `$ref` refers to.
        depth: Nesting depth of subschemas to follow.
    """
    schema = resolved(schema, root)
    if not isinstance(schema, dict) or not depth:
        return frozenset()
    kind = schema.get("type")
    if isinstance(kind, str | list):
        return frozenset([kind] if isinstance(kind, str) else map(str, kind))
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if isinstance(values, list) and values:
        return frozenset(_TYPE_NAMES.get(type(value), "") for value in values)
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            found = [types_of(one, root, depth - 1) for one in schema[key]]
            return frozenset().union(*found) if all(found) else frozenset()
    return frozenset()


def resolved(schema: Any, root: Mapping[str, Any]) -> Any:
    """Follow a schema's `$ref`; return the schema itself if it has none."""
    for _ in range(_MOST_REFERENCES):
        reference = schema.get("$ref") if isinstance(schema, dict) else None
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return schema
        schema = root
        for part in reference[2:].split("/"):
            schema = schema.get(part) if isinstance(schema, Mapping) else None
    return None


def _nested(text: str, tags: ArgumentTags) -> Any:
    """Parse a value of nested tags; tags of one name make a list."""
    place, found = 0, []
    while place < len(text):
        start = match_text(text, place, tags.before_key)
        after = text.find(tags.after_key, max(start, 0))
        if start < 0 or after < 0:
            return text
        key = text[start:after]
        begin = after + len(tags.after_key)
        end = _closing(text, begin, tags, key)
        if end < 0:
            return text
        mark = tags.after_value.replace(KEY, key)
        inner = text[begin:end]
        is_nested = match_text(inner, 0, tags.before_key) >= 0
        found.append((key, _nested(inner, tags) if is_nested else _scalar(inner)))
        place = skip_space(text, end + len(mark))
    keys = [key for key, _ in found]
    if keys and set(keys) == {"item"}:
        return [value for _, value in found]
    return dict(found)


def _closing(text: str, position: int, tags: ArgumentTags, key: str) -> int:
    """Return the position of a value's closing tag, past nested ones of the same name."""
    opening, closing = tags.before_key + key + tags.after_key, tags.after_value.replace(KEY, key)
    depth = 1
    while depth:
        end = text.find(closing, position)
        if end < 0:
            return -1
        inner = text.find(opening, position)
        if 0 <= inner < end:
            depth, position = depth + 1, inner + len(opening)
        else:
            depth, position = depth - 1, end + len(closing)
    return end


def _scalar(text: str) -> Any:
    """Parse a text as JSON; the text itself if it isn't any."""
    try:
        return json.loads(text)
    except ValueError:
        return text
