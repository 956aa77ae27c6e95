"""Write JSON schemas as rules of a Lark grammar for llguidance."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from medusa_core.models.text.schema_keywords import enforced_schema

# Only one way to write a value: an answer can't lose itself in white space, and a client that
# parses a call's arguments and serializes them again mostly produces the same text.
TIGHT_JSON: dict[str, Any] = {
    "whitespace_flexible": False,
    "item_separator": ", ",
    "key_separator": ": ",
}


def json_rule(schema: str) -> str:
    """Return a rule body for the values that match a schema.

    Args:
        schema: The schema as JSON text, of which size and depth have been checked.
    """
    return _rule(json.loads(schema), is_lenient=False)


def value_rule(schema: Any) -> str:
    """Return a rule body for the values of one argument.

    Keywords that the grammar can't enforce are left unchecked, as in `arguments_rule`.
    """
    return _rule(schema, is_lenient=True)


def arguments_rule(parameters: Mapping[str, Any]) -> str:
    """Return a rule body for the arguments of a function.

    Keywords that the grammar can't enforce are left unchecked, because many clients describe their
    functions in more detail than calls need. Only properties that are listed are allowed.

    Args:
        parameters: The schema of its arguments.
    """
    schema: dict[str, Any] = {**parameters, "type": "object"}
    if "properties" in schema and "patternProperties" not in schema:
        schema.setdefault("additionalProperties", False)
    return _rule(schema, is_lenient=True)


def _rule(schema: Any, *, is_lenient: bool) -> str:
    """Return `%json` with the enforceable part of a schema and llguidance's options."""
    schema = enforced_schema(schema, is_lenient=is_lenient).schema
    if isinstance(schema, dict):
        schema = {
            **schema,
            "x-guidance": {**TIGHT_JSON, "coerce_one_of": True, "lenient": is_lenient},
        }
    return f"%json {json.dumps(schema)}"
