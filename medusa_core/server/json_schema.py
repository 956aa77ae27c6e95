"""Check the JSON schemas of requests: size, references, keywords that can be enforced."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
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


def check_schema(schema: Mapping[str, Any], field: str) -> None:
    """Check size and references of a schema.

    Args:
        field: Its path in the request, for errors.

    Raises:
        ApiError: The schema is too large, or refers to something outside of it.
    """
    num_bytes = len(json.dumps(schema, ensure_ascii=False).encode())
    if num_bytes > MOST_BYTES:
        raise _out_of_bounds(field, f"has {num_bytes:,} bytes; {MOST_BYTES:,} are the most")
    num_properties = num_choices = depth = 0
    level: list[Any] = [schema]
    while level:
        depth += 1
        if depth > MOST_DEPTH:
            raise _out_of_bounds(field, f"is nested too deeply; {MOST_DEPTH} levels are the most")
        for value in level:
            if isinstance(value, dict):
                _check_references(value, field)
                num_properties += _size(value.get("properties"))
                num_choices += _size(value.get("enum"))
        level = [child for value in level for child in _children(value)]
    if num_properties > MOST_PROPERTIES:
        raise _out_of_bounds(
            field, f"has {num_properties:,} properties; {MOST_PROPERTIES:,} are the most"
        )
    if num_choices > MOST_CHOICES:
        raise _out_of_bounds(
            field, f"has {num_choices:,} values in enums; {MOST_CHOICES:,} are the most"
        )


def refuse_unenforced(schema: Mapping[str, Any], field: str) -> None:
    """Refuse a schema with keywords that can't be enforced.

    Args:
        schema: A schema that `check_schema` has passed.
        field: Its path in the request, for errors.

    Raises:
        ApiError: The schema has such keywords.
    """
    keywords = enforced_schema(schema, is_lenient=False).unenforced
    if keywords:
        listed = ", ".join(keyword.text for keyword in keywords[:_MOST_NAMED])
        raise bad_request(
            f"The schema in `{field}` has keywords that can't be enforced: {listed}. Leave them "
            "out.",
            field,
        )


def unenforced_places(schema: Mapping[str, Any], field: str) -> tuple[str, ...]:
    """Return the keywords of a function's schema that can't be enforced, with their paths.

    Args:
        schema: A schema that `check_schema` has passed.
        field: Its path in the request.
    """
    keywords = enforced_schema(schema, is_lenient=True).unenforced
    return tuple(keyword._replace(path=f"{field}.{keyword.path}").text for keyword in keywords)


def schema_text(schema: Mapping[str, Any], field: str) -> str:
    """Return a schema as text, once it has been checked.

    Args:
        field: Its path in the request.

    Raises:
        ApiError: The schema is too large, or has keywords that can't be enforced.
    """
    check_schema(schema, field)
    refuse_unenforced(schema, field)
    return json.dumps(schema, ensure_ascii=False)


def _children(value: Any) -> Iterable[Any]:
    """Return the nested values of a JSON value."""
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _check_references(schema: Mapping[str, Any], field: str) -> None:
    """Refuse references to other documents."""
    for name in _REFERENCES:
        target = schema.get(name)
        if isinstance(target, str) and not target.startswith(_LOCAL):
            raise bad_request(
                f"The schema in `{field}` refers to {target[:80]!r}, which isn't fetched: put it "
                f"into `$defs` and refer to `#/$defs/…`.",
                field,
            )


def _size(value: Any) -> int:
    """Return the number of entries of a JSON object or list; 0 for other values."""
    return len(value) if isinstance(value, dict | list) else 0


def _out_of_bounds(field: str, problem: str) -> ApiError:
    """Make the error for a schema that is too large."""
    return bad_request(f"The schema in `{field}` {problem}. Use a smaller one.", field)
