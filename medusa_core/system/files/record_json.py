"""Converts dataclasses and named tuples to JSON and back, by their field names and types."""

from __future__ import annotations

import dataclasses
import reprlib
import types
import typing
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
_MOST_INT = 1 << 64  # a seed may have any bits


def as_json(record: Any) -> dict[str, Any]:
    """Convert a record to JSON values.

    Args:
        record: A dataclass, or a named tuple with annotations.
    """
    return {name: _written(getattr(record, name)) for name in typing.get_type_hints(type(record))}


def from_json(kind: type[T], raw: object, where: str) -> T:
    """Convert JSON values to a record; missing fields get their defaults.

    Args:
        kind: A dataclass, or a named tuple with annotations, with fields of type int, float, str,
            bool, Path, Enum, record, `T | None`, `tuple[T, ...]` or `tuple[A, B]`.
        where: Where it comes from, for error messages.

    Raises:
        ValueError: A field is unknown or missing, or a value has another type; the text is for
            people.
    """
    if not isinstance(raw, Mapping):
        raise _wrong(where, raw, "names and values")
    hints = typing.get_type_hints(kind)
    if unknown := sorted(map(str, raw.keys() - hints.keys())):
        known = ", ".join(sorted(hints))
        raise ValueError(f"{where} names what isn't known: {', '.join(unknown)}. Known: {known}.")
    values = {
        name: read_value(hints[name], value, f"{where}, {name}") for name, value in raw.items()
    }
    try:
        return kind(**values)
    except TypeError as error:
        raise ValueError(f"{where} lacks a value: {error}.") from error


def _is_record(kind: Any) -> bool:
    """Whether a type or value is a dataclass or named tuple."""
    return dataclasses.is_dataclass(kind) or hasattr(kind, "_fields")


def _written(value: Any) -> Any:
    """Convert a field's value to JSON."""
    if isinstance(value, Path):
        return str(value)
    if _is_record(value):
        return as_json(value)
    return [_written(one) for one in value] if isinstance(value, tuple) else value


def read_value(kind: Any, value: Any, where: str) -> Any:
    """Convert a JSON value to a field's type; see `from_json`."""
    if isinstance(kind, types.UnionType):
        (of,) = (one for one in typing.get_args(kind) if one is not types.NoneType)
        return None if value is None else read_value(of, value, where)
    if _is_record(kind):
        return from_json(kind, value, where)
    if kind is Path and isinstance(value, str) and value:
        return Path(value)
    if kind is float and type(value) is int:
        return _float(value, where)
    if typing.get_origin(kind) is tuple and isinstance(value, list):
        kinds = typing.get_args(kind)
        if kinds[1:] == (...,):
            kinds = kinds[:1] * len(value)
        if len(kinds) == len(value):
            pairs = enumerate(zip(kinds, value, strict=True), 1)
            return tuple(read_value(of, one, f"{where}, {place}") for place, (of, one) in pairs)
    if isinstance(kind, type) and issubclass(kind, Enum):
        found = next((member for member in kind if member.value == value), None)
        if found is not None:
            return found
    if type(value) is kind and not (kind is int and abs(value) > _MOST_INT):
        return value
    name = kind.__name__ if isinstance(kind, type) else kind
    raise _wrong(where, value, f"of type {name}")


def _float(value: int, where: str) -> float:
    """Convert an integer to a float; too large ones raise."""
    try:
        return float(value)
    except OverflowError as error:
        raise _wrong(where, value, "of type float") from error


def _wrong(where: str, value: object, expected: str) -> ValueError:
    """Make the error for a value of another type."""
    return ValueError(f"{where} is {reprlib.repr(value)}, not {expected}.")
