"""JSON schemas that somebody sent: within bounds, and as parts of a grammar."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from medusa_core.models.text.schema_keywords import enforced_schema
from medusa_core.server.api_error import ApiError, bad_request

MOST_BYTES = 256 << 10
MOST_DEPTH = 32
MOST_PROPERTIES = 1000
MOST_CHOICES = 1000
ANY_OBJECT = '{"type": "object"}'

_MOST_NAMED = 5
_LOCAL = "#"
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def check_schema(schema: Mapping[str, Any], where: str) -> None:
    """Refuse a schema that is too large, or that refers to something outside of it.

    Args:
        schema: The schema.
        where: Its place in the request, for errors.

    Raises:
        ApiError: It is out of bounds.
    """
    num_bytes = len(json.dumps(schema, ensure_ascii=False).encode())
    if num_bytes > MOST_BYTES:
        raise _out_of_bounds(where, f"has {num_bytes:,} bytes; {MOST_BYTES:,} are the most")
    num_properties = num_choices = depth = 0
    level: list[Any] = [schema]
    while level:
        depth += 1
        if depth > MOST_DEPTH:
            raise _out_of_bounds(where, f"is nested too deeply; {MOST_DEPTH} levels are the most")
        for one in _objects(level):
            _check_references(one, where)
            num_properties += _size(one.get("properties"))
            num_choices += _size(one.get("enum"))
        level = [inner for one in level for inner in _inside(one)]
    if num_properties > MOST_PROPERTIES:
        raise _out_of_bounds(
            where, f"has {num_properties:,} properties; {MOST_PROPERTIES:,} are the most"
        )
    if num_choices > MOST_CHOICES:
        raise _out_of_bounds(
            where, f"has {num_choices:,} values in enums; {MOST_CHOICES:,} are the most"
        )


def refuse_unenforced(schema: Mapping[str, Any], where: str) -> None:
    """Refuse a schema with keywords that can't be enforced.

    Args:
        schema: The schema; `check_schema` has passed it.
        where: Its place in the request, for errors.

    Raises:
        ApiError: It has some.
    """
    found = enforced_schema(schema, is_lenient=False).unenforced
    if found:
        listed = ", ".join(one.text for one in found[:_MOST_NAMED])
        raise bad_request(
            f"The schema in `{where}` has keywords that can't be enforced: {listed}. Leave them "
            "out.",
            where,
        )


def unenforced_places(schema: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """Name the keywords of a function's schema that stay unchecked.

    Args:
        schema: The schema; `check_schema` has passed it.
        where: Its place in the request.
    """
    found = enforced_schema(schema, is_lenient=True).unenforced
    return tuple(one._replace(path=f"{where}.{one.path}").text for one in found)


def schema_text(schema: Mapping[str, Any], where: str) -> str:
    """Return a schema as text, once it has been checked.

    Args:
        schema: The schema.
        where: Its place in the request.

    Raises:
        ApiError: The schema is out of bounds, or has keywords that can't be enforced.
    """
    check_schema(schema, where)
    refuse_unenforced(schema, where)
    return json.dumps(schema, ensure_ascii=False)


def _objects(level: list[Any]) -> Iterator[dict[str, Any]]:
    return (one for one in level if isinstance(one, dict))


def _inside(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _check_references(one: Mapping[str, Any], where: str) -> None:
    for name in _REFERENCES:
        target = one.get(name)
        if isinstance(target, str) and not target.startswith(_LOCAL):
            raise bad_request(
                f"The schema in `{where}` refers to {target[:80]!r}, which isn't fetched: put it "
                f"into `$defs` and refer to `#/$defs/…`.",
                where,
            )


def _size(value: Any) -> int:
    return len(value) if isinstance(value, dict | list) else 0


def _out_of_bounds(where: str, what: str) -> ApiError:
    return bad_request(f"The schema in `{where}` {what}. Use a smaller one.", where)
