"""Check the JSON schema of an answer: size, references, keywords that can be enforced."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from medusa_core.errors import GrammarError
from medusa_core.i18n import tr
from medusa_core.models.text.schema_keywords import enforced_schema

MOST_BYTES = 256 << 10
MOST_DEPTH = 32
MOST_PROPERTIES = 1000
MOST_CHOICES = 1000

_MOST_NAMED = 5
_LOCAL = "#"
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_USE_SMALLER = tr("Use a smaller schema.")


class SchemaProblem(NamedTuple):
    """Why a schema can't be used.

    Attributes:
        reason: The end of a sentence that begins with the schema.
        hint: What to do.
    """

    reason: str
    hint: str


def check_json_schema(text: str) -> None:
    """Check a schema that a user wrote.

    Args:
        text: The schema as JSON.

    Raises:
        GrammarError: It is no JSON object, is too large, or can't be enforced.
    """
    try:
        schema = json.loads(text)
    except ValueError as error:
        at = error if isinstance(error, json.JSONDecodeError) else None
        place = (at.lineno, at.colno) if at is not None else (1, 1)
        raise GrammarError(
            tr("The schema is no JSON: it has an error in line {0}, at character {1}.", *place),
            "Correct it there.",
        ) from error
    except RecursionError as error:
        raise GrammarError("The schema is nested too deeply.", _USE_SMALLER) from error
    if not isinstance(schema, dict):
        raise GrammarError(
            "The schema is no JSON object.", 'Begin it with a brace, as in {"type": "object"}.'
        )
    problem = size_problem(schema) or keyword_problem(schema)
    if problem is not None:
        raise GrammarError(tr("The schema {0}.", problem.reason), problem.hint)


def size_problem(schema: Mapping[str, Any]) -> SchemaProblem | None:
    """Return why a schema is too large, or to which other document it refers; None if neither."""
    num_bytes = len(json.dumps(schema, ensure_ascii=False).encode("utf-8", "replace"))
    if num_bytes > MOST_BYTES:
        reason = tr("has {0:,} bytes; {1:,} are the most", num_bytes, MOST_BYTES)
        return SchemaProblem(reason, _USE_SMALLER)
    num_properties = num_choices = depth = 0
    level: list[Any] = [schema]
    while level:
        depth += 1
        if depth > MOST_DEPTH:
            reason = tr("is nested too deeply; {0} levels are the most", MOST_DEPTH)
            return SchemaProblem(reason, _USE_SMALLER)
        for value in level:
            if isinstance(value, dict):
                if (target := _reference(value)) is not None:
                    return SchemaProblem(
                        tr("refers to {0}, which isn't fetched", repr(target[:80])),
                        tr("Put that into `$defs` and refer to `#/$defs/…`."),
                    )
                num_properties += _size(value.get("properties"))
                num_choices += _size(value.get("enum"))
        level = [child for value in level for child in _children(value)]
    if num_properties > MOST_PROPERTIES:
        reason = tr("has {0:,} properties; {1:,} are the most", num_properties, MOST_PROPERTIES)
        return SchemaProblem(reason, _USE_SMALLER)
    if num_choices > MOST_CHOICES:
        reason = tr("has {0:,} values in enums; {1:,} are the most", num_choices, MOST_CHOICES)
        return SchemaProblem(reason, _USE_SMALLER)
    return None


def keyword_problem(schema: Mapping[str, Any]) -> SchemaProblem | None:
    """Return which keywords of a schema can't be enforced; None if all can.

    Args:
        schema: A schema without a `size_problem`.
    """
    keywords = enforced_schema(schema, is_lenient=False).unenforced
    if not keywords:
        return None
    listed = ", ".join(keyword.text for keyword in keywords[:_MOST_NAMED])
    reason = tr("has keywords that can't be enforced: {0}", listed)
    return SchemaProblem(reason, tr("Leave them out."))


def _children(value: Any) -> Iterable[Any]:
    """Return the nested values of a JSON value."""
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _reference(schema: Mapping[str, Any]) -> str | None:
    """Return a reference to another document; None if there is none."""
    targets = (schema.get(name) for name in _REFERENCES)
    outside = (t for t in targets if isinstance(t, str) and not t.startswith(_LOCAL))
    return next(outside, None)


def _size(value: Any) -> int:
    """Return the number of entries of a JSON object or list; 0 for other values."""
    return len(value) if isinstance(value, dict | list) else 0
