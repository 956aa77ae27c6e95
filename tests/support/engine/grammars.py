"""Grammars for tests, and whether a text matches them."""

import json
from functools import cache
from typing import Any

import fastjsonschema

from medusa_core.messages import ToolCallFormat
from medusa_core.models.text.grammar_compiler import json_schema_grammar
from medusa_core.models.text.tool_calls.grammar import ToolCallGrammar

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "maxItems": 3},
        "city": {"enum": ["Berlin", "Paris", "Rome"]},
    },
    "required": ["name", "age", "tags", "city"],
    "additionalProperties": False,
}


def grammar_of(schema: dict[str, Any]) -> str:
    """The grammar of a schema."""
    return json_schema_grammar(json.dumps(schema))


def _call_grammar() -> str:
    """The grammar of a call in a fence, without text as an alternative."""
    function = {"name": "person", "parameters": PERSON}
    calls = ToolCallGrammar(ToolCallFormat(), (function,), {}, is_parallel=False)
    return "\n".join((f"start: {calls.unmarked}", *calls.lines()))


PERSON_GRAMMAR = grammar_of(PERSON)
CALL_GRAMMAR = _call_grammar()
ABC_GRAMMAR = "start: /(a|bc|the|[ ]){1,30}/"


@cache
def _person() -> Any:
    return fastjsonschema.compile(PERSON)


def check_person(text: str) -> None:
    """See that a text is a person as JSON."""
    _person()(json.loads(text))
