"""Fields of a JSON object that somebody sent: read by type and range, or refused by name."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from medusa_core.server.api_error import ApiError, bad_request

_NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?")


class Fields:
    """A JSON object of a request. A field that is null counts as absent.

    Attributes:
        values: The object.
        path: Where it stands in the request, such as `messages[0].`; empty for the request itself.
    """

    def __init__(self, values: Mapping[str, Any], path: str = "") -> None:
        self.values = values
        self.path = path

    def has(self, name: str) -> bool:
        """Is the field there, and not null?"""
        return self.values.get(name) is not None

    def where(self, name: str) -> str:
        """The field's place in the request, for errors."""
        return f"{self.path}{name}"

    def text(self, name: str, default: str = "") -> str:
        """A string.

        Raises:
            ApiError: It is something else.
        """
        value = self.values.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.invalid(name, "a string")
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        """True or false.

        Raises:
            ApiError: It is something else.
        """
        value = self.values.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.invalid(name, "true or false")
        return value

    def number(self, name: str, low: float, high: float) -> float | None:
        """A number in a range; None where it is absent.

        Raises:
            ApiError: It is something else, or out of range.
        """
        value = _typed(self.values.get(name))
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.invalid(name, "a number")
        if not low <= value <= high:
            raise self.invalid(name, f"between {low:g} and {high:g}")
        return float(value)

    def whole(self, name: str, low: int, high: int) -> int | None:
        """A whole number in a range; None where it is absent.

        Raises:
            ApiError: It is something else, or out of range.
        """
        value = _typed(self.values.get(name))
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():  # as 16.0, which some languages write
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.invalid(name, "a whole number")
        if not low <= value <= high:
            raise self.invalid(name, f"between {low} and {high}")
        return value

    def record(self, name: str) -> Fields | None:
        """An object; None where it is absent.

        Raises:
            ApiError: It is something else.
        """
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.invalid(name, "an object")
        return Fields(value, f"{self.where(name)}.")

    def array(self, name: str, most: int) -> list[Any]:
        """A list; empty where it is absent.

        Raises:
            ApiError: It is something else, or too long.
        """
        value = self.values.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.invalid(name, "a list")
        if len(value) > most:
            raise self.invalid(name, f"at most {most} long")
        return value

    def records(self, name: str, most: int) -> Iterator[Fields]:
        """The objects of a list.

        Raises:
            ApiError: It is no list, too long, or holds something else.
        """
        for place, value in enumerate(self.array(name, most)):
            if not isinstance(value, dict):
                raise self.invalid(f"{name}[{place}]", "an object")
            yield Fields(value, f"{self.where(name)}[{place}].")

    def texts(self, name: str, most: int) -> tuple[str, ...]:
        """A string or a list of strings.

        Raises:
            ApiError: It is something else, or too long.
        """
        value = self.values.get(name)
        if isinstance(value, str):
            return (value,)
        found = self.array(name, most)
        if not all(isinstance(one, str) for one in found):
            raise self.invalid(name, "a string or a list of strings")
        return tuple(found)

    def invalid(self, name: str, must_be: str) -> ApiError:
        """The error of a field that isn't what it must be."""
        where = self.where(name)
        return bad_request(f"`{where}` must be {must_be}.", where)

    def missing(self, name: str) -> ApiError:
        """The error of a field that has to be there."""
        where = self.where(name)
        return bad_request(f"`{where}` is missing.", where)


def _typed(value: Any) -> Any:
    """A number that was sent as a string, such as `"0.7"`; other values as they are."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return int(value) if value.lstrip("-").isdigit() else float(value)
    return value


def parse_json(body: bytes, most_depth: int, most_parts: int) -> Any:
    """A JSON text.

    Args:
        body: Its bytes.
        most_depth: Of objects and lists within each other.
        most_parts: Objects, lists, their names and strings: the interpreter does nothing else while
            it makes them.

    Raises:
        ApiError: It is none, too deep, or has too many parts.
    """
    if _num_parts(body, most_parts) > most_parts:
        raise bad_request(f"The JSON has too many parts; {most_parts:,} are the most.")
    try:
        value = json.loads(body.decode(), parse_constant=_refuse, parse_float=_finite)
    except RecursionError:
        raise _too_deep(most_depth) from None
    except ValueError as error:
        raise bad_request(f"The body is no JSON: {_reason(error)}.") from None
    _check(value, most_depth)
    return value


def _num_parts(body: bytes, enough: int) -> int:
    """At least how many objects, lists and strings a text has; what is in strings isn't counted."""
    most = body.count(b"[") + body.count(b"{") + body.count(b'"') // 2
    if most <= enough:
        return most
    # Without escapes every quote begins or ends a string: each second piece is in one.
    pieces = body.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"', 2 * enough)
    rest = b"".join(pieces[::2])
    return len(pieces) // 2 + rest.count(b"[") + rest.count(b"{")


def _reason(error: ValueError) -> str:
    """What is wrong and where, without quoting the text itself."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.pos}"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} isn't UTF-8"
    return "a number that is none or too long"


def _refuse(word: str) -> None:
    raise ValueError(word)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _check(value: Any, most_depth: int) -> None:
    """Refuse what is too deep, and halves of characters, which no UTF-8 can be written from."""
    level: list[Any] = [value]
    for _ in range(most_depth + 1):
        inner: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                inner.extend(one.keys())
                inner.extend(one.values())
            elif isinstance(one, list):
                inner.extend(one)
            elif isinstance(one, str) and not one.isascii():
                _check_text(one)
        if not inner:
            return
        level = inner
    raise _too_deep(most_depth)


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise bad_request("A string holds half a character (a lone surrogate).") from None


def _too_deep(most_depth: int) -> ApiError:
    return bad_request(f"The JSON is nested too deeply; {most_depth} levels are the most.")
