"""Check the JSON schemas of requests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from medusa_core.models.text.schema_check import SchemaProblem, keyword_problem, size_problem
from medusa_core.models.text.schema_keywords import enforced_schema
from medusa_core.server.api_error import bad_request

ANY_OBJECT = '{"type": "object"}'


def check_schema(schema: Mapping[str, Any], field: str) -> None:
    """Check size and references of a schema.

    Args:
        field: Its path in the request, for errors.

    Raises:
        ApiError: The schema is too large, or refers to something outside of it.
    """
    _refuse(size_problem(schema), field)


def refuse_unenforced(schema: Mapping[str, Any], field: str) -> None:
    """Refuse a schema with keywords that can't be enforced.

    Args:
        schema: A schema that `check_schema` has passed.
        field: Its path in the request, for errors.

    Raises:
        ApiError: The schema has such keywords.
    """
    _refuse(keyword_problem(schema), field)


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


def _refuse(problem: SchemaProblem | None, field: str) -> None:
    """Refuse a schema that has a problem."""
    if problem is not None:
        raise bad_request(f"The schema in `{field}` {problem.reason}. {problem.hint}", field)
