"""Constraints as llama-server's and vLLM's clients send them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from medusa_core.models.text.answer_grammar import as_rule
from medusa_core.server.api_error import ApiError
from medusa_core.server.constraints import Constraint, ConstraintRecord, read_constraint
from medusa_core.server.records import validate
from tests.support.server.served import Served

CHECKED = {"type": "object", "properties": {"n": {"type": "boolean"}}, "required": ["n"]}
CHECKED["additionalProperties"] = False
YES = 'root ::= "yes"'


def asked(served: Served, **fields: Any) -> str:
    body = {"max_tokens": 40, "messages": [{"role": "user", "content": "Tell a story."}], **fields}
    reply = served.post("/v1/chat/completions", body)
    assert reply.status_code == 200, reply.text
    return str(reply.json()["choices"][0]["message"]["content"])


def test_every_kind_of_constraint_is_enforced(served: Served) -> None:
    assert asked(served, grammar=YES) == "yes"
    assert asked(served, guided_grammar='start: "no"') == "no"
    assert asked(served, json_schema={"const": "42"}) == '"42"'
    for schema in ({"guided_json": CHECKED}, {"structured_outputs": {"json": CHECKED}}):
        assert isinstance(json.loads(asked(served, **schema))["n"], bool)
    assert isinstance(json.loads(asked(served, guided_json=json.dumps(CHECKED)))["n"], bool)
    assert asked(served, structured_outputs={"choice": ["red", "green"]}) in ("red", "green")
    assert re.fullmatch("[ab]{3}/", asked(served, guided_regex="[ab]{3}/"))


def test_without_constraints_no_grammar_is_compiled() -> None:
    for fields in ({}, {"grammar": ""}, {"grammar": None, "structured_outputs": {}}):
        assert read_constraint(validate(ConstraintRecord, fields)) == Constraint()
    with pytest.raises(ApiError, match="response_format"):
        read_constraint(ConstraintRecord(grammar=YES), "{}")


def test_a_grammar_can_be_embedded_in_a_larger_one() -> None:
    grammar = 'start: "start" | /start\\/x/ start\n'
    assert as_rule(grammar, "inner") == 'inner: "start" | /start\\/x/ inner'
