"""Check the arguments of a call against the tool's schema, which may be hostile.

Only keywords are checked that take no time and reach nothing: no patterns and no references. The
tool checks the rest itself.
"""

from __future__ import annotations

import json
from typing import Any

_MOST_LEVELS = 16
# Letters and symbols that look like space: fillers, the empty Braille pattern.
_BLANKS = frozenset("\u034f\u115f\u1160\u2800\u3164\uffa0")
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def arguments_problem(arguments: str, schema: str) -> str:
    """Return why a call can't have these arguments, for the model; empty if it can.

    Args:
        arguments: Arguments as a JSON object, as text.
        schema: JSON schema of the arguments, as text.
    """
    try:
        values = json.loads(
            arguments or "{}", object_pairs_hook=_object, parse_constant=_no_constant
        )
        json.dumps(values, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return "The arguments hold half of a surrogate pair, which is no character."
    except (ValueError, RecursionError) as error:
        return f"The arguments are no valid JSON: {error}."
    if not isinstance(values, dict):
        return "The arguments are no JSON object."
    return _problem(values, json.loads(schema), "The arguments", _MOST_LEVELS)


def visible_text(text: str) -> str:
    """Return a text with JSON's escapes in place of characters that hide what it says.

    Such characters turn the direction of writing or move a cursor, or look like a space.
    """
    return "".join(one if _is_visible(one) else json.dumps(one)[1:-1] for one in text)


def _is_visible(character: str) -> bool:
    """Whether a character is shown as itself."""
    return character == "\n" or (character.isprintable() and character not in _BLANKS)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; the user may see another of two equal keys than the tool reads.

    Raises:
        ValueError: A key occurs twice.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice in an object")
    return found


def _no_constant(name: str) -> float:
    """Refuse NaN and Infinity, which aren't JSON."""
    raise ValueError(f"{name} is no JSON value")


def _problem(value: Any, schema: Any, name: str, num_levels: int) -> str:
    """Return what is wrong with a value; empty if nothing is found."""
    if not isinstance(schema, dict) or not num_levels:
        return ""
    types = schema.get("type")
    listed = types if isinstance(types, list) else [types]
    names = [one for one in listed if isinstance(one, str) and one in _TYPES]
    are_known = bool(names) and len(names) == len(listed)
    if are_known and not any(_has_type(value, one) for one in names):
        return f"{name}: expected {' or '.join(names)}, got {_type_name(value)}."
    choices = schema.get("enum")
    if isinstance(choices, list) and value not in choices:
        return f"{name}: expected one of {json.dumps(choices, ensure_ascii=False)[:400]}."
    if isinstance(value, dict):
        return _object_problem(value, schema, name, num_levels)
    if isinstance(value, list):
        found = (
            _problem(item, schema.get("items"), f"{name}[{place}]", num_levels - 1)
            for place, item in enumerate(value)
        )
        return next(filter(None, found), "")
    return ""


def _object_problem(
    value: dict[str, Any], schema: dict[str, Any], name: str, num_levels: int
) -> str:
    """Return what is wrong with an object; empty if nothing is found."""
    required, properties = schema.get("required"), schema.get("properties")
    if isinstance(required, list):
        missing = [one for one in required if isinstance(one, str) and one not in value]
        if missing:
            return f"{name}: {', '.join(missing)[:400]} missing."
    if not isinstance(properties, dict):
        return ""
    is_closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
    unknown = [key for key in value if key not in properties]
    if is_closed and unknown:
        known = ", ".join(map(str, properties))[:400] or "none"
        return f"{name}: there is no {unknown[0][:80]!r}; there are: {known}."
    found = (
        _problem(one, properties.get(key), f"{name}.{key[:80]}", num_levels - 1)
        for key, one in value.items()
    )
    return next(filter(None, found), "")


def _has_type(value: Any, name: str) -> bool:
    """Whether a value has a type of JSON schema, where 1.0 is an integer and true no number."""
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    is_number = name in ("integer", "number")
    return isinstance(value, _TYPES[name]) and not (is_number and isinstance(value, bool))


def _type_name(value: Any) -> str:
    """Return the name of a value's type."""
    return next(name for name in _TYPES if _has_type(value, name))
