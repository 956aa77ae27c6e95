"""Lark expressions for strings that a format of tool calls writes without quotes or escapes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from medusa_core.models.text.schema_keywords import enforced_schema
from medusa_core.system.files.json_file import is_whole

ANY = r"(.|\n)"  # one character of a value
_MOST_CHARS = 4096  # of a length or a repetition that is enforced: each is a state of the lexer
_TOKEN = re.compile(
    r"\\[pP]\{\w+\}|\\.|\[\^?(?:\\.|[^\]\\])*\]|\{\d+(?:,\d*)?\}|\(\?:|\(\?<[A-Za-z_]\w*>|\(\?|.",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\([^A-Za-z0-9<>]|[dDwWsSnrtfvux]|[pP]\{\w+\})", re.DOTALL)
_SET_OPERATION = re.compile(r"(?<!\\)\[|&&|--|~~")
_NUMBER = re.compile(r"\d+")


def string_expression(schema: Any, excluded: str = "", quote: str = "") -> str:
    """Return a Lark expression for the strings that a schema allows; empty if it allows any.

    Keywords that can't be enforced are ignored, as in `schema_rules.arguments_rule`.

    Args:
        schema: Schema of a string, of which `pattern`, `minLength` and `maxLength` count.
        excluded: Text that may not occur, because it would end the value; empty for none.
        quote: Quotation mark around a string of Python, whose text is matched; empty for others.
    """
    if not isinstance(schema, Mapping):
        return ""
    found = enforced_schema(dict(schema), is_lenient=True).schema
    search = found.get("pattern")
    pattern = search_pattern(search) if isinstance(search, str) else ""
    unit = ANY
    if quote:  # a pattern would have to match escapes by what they stand for
        escapes = "" if pattern else r"|\\[nrt\\'\"]"
        unit = rf"([^{quote}\\\n]{escapes})"
    length = _length_pattern(found.get("minLength"), found.get("maxLength"), unit)
    parts = [f"/{one}/" for one in (pattern, length) if one]
    if pattern and quote:
        parts.append(f"/{unit}*/")
    if parts and excluded:
        parts.append(f"~/{ANY}*{text_pattern(excluded)}{ANY}*/")
    return " & ".join(parts)


def search_pattern(pattern: str) -> str:
    """Return a pattern of whole texts for one that a schema searches; empty if it has none.

    Only the constructs are accepted that JSON Schema's dialect and the grammar's read in one way.

    Args:
        pattern: The regular expression, which may be anchored by `^` and `$`.
    """
    alternatives: list[list[str]] = [[]]
    depth = 0
    for token in _TOKEN.findall(pattern):
        if not _is_common(token):
            return ""
        depth += token.startswith("(") - (token == ")")
        if token == "|" and not depth:
            alternatives.append([])
        else:
            alternatives[-1].append(token)
    written = [_whole(tokens) for tokens in alternatives]
    return "|".join(written) if all(written) else ""


def text_pattern(text: str) -> str:
    """Return a Lark regular expression that matches exactly a text."""
    return re.escape(text).replace("/", r"\/").replace("\\\n", r"\n")


def _is_common(token: str) -> bool:
    """Whether a part of a pattern means the same in both dialects."""
    if token.startswith("["):
        inner = token[1:-1]
        escapes = re.findall(r"\\.", inner, re.DOTALL)
        is_empty = inner in ("", "^")
        has_set = _SET_OPERATION.search(inner) is not None
        return len(token) > 1 and not is_empty and not has_set and all(map(_is_common, escapes))
    if token.startswith("\\"):
        return _ESCAPE.fullmatch(token) is not None
    if token.startswith("{"):
        numbers = _NUMBER.findall(token)
        return bool(numbers) and all(int(one) <= _MOST_CHARS for one in numbers)
    return token != "(?"  # look-around, flags and the like


def _whole(tokens: list[str]) -> str:
    """Return the pattern of whole texts for one alternative; empty if anchors are within it."""
    is_begun, is_ended = tokens[:1] == ["^"], tokens[-1:] == ["$"]
    inner = tokens[is_begun : len(tokens) - is_ended]
    if "^" in inner or "$" in inner:
        return ""
    text = "".join(one if one.startswith("\\") else one.replace("/", r"\/") for one in inner)
    text = text.replace("\n", r"\n")
    before, after = ("" if is_begun else f"{ANY}*"), ("" if is_ended else f"{ANY}*")
    return f"(?:{before}(?:{text}){after})"


def _length_pattern(least: Any, most: Any, unit: str) -> str:
    """Return a pattern of texts of a length; empty if both bounds are absent or too large."""
    low = least if is_whole(least, 0, _MOST_CHARS) else 0
    high = str(most) if is_whole(most, 0, _MOST_CHARS) else ""
    if (not low and not high) or (high and int(high) < low):
        return ""
    return f"{unit}{{{low},{high}}}"
