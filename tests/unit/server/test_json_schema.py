"""Schemas that somebody sent: bounds, and what answers then match."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from medusa_core.messages import THINK_TAGS, ReasoningFormat
from medusa_core.models.text.answer_grammar import (
    AnswerRules,
    ReasoningState,
    ToolChoice,
    answer_grammar,
)
from medusa_core.models.text.schema_check import MOST_BYTES, MOST_DEPTH
from medusa_core.models.text.schema_keywords import enforced_schema
from medusa_core.server.api_error import ApiError
from medusa_core.server.json_schema import (
    ANY_OBJECT,
    check_schema,
    refuse_unenforced,
    unenforced_places,
)
from tests.support.server.grammar_checks import MARK_IDS, matches
from tests.support.server.served import Served

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "friend": {"$ref": "#/$defs/friend"}},
    "required": ["name"],
    "additionalProperties": False,
    "$defs": {"friend": {"oneOf": [{"type": "null"}, {"type": "string", "maxLength": 5}]}},
}
Matches = Callable[[str], bool]
CLOSE_ID = {"</think>": MARK_IDS["</think>"]}


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"items": schema}
    return schema


def test_a_schema_beyond_the_limits_is_refused_with_its_position() -> None:
    for schema, reason in (
        ({"description": "x" * MOST_BYTES}, "bytes"),
        (deep(MOST_DEPTH), "deep"),
        ({"properties": {f"p{number}": {} for number in range(1001)}}, "properties"),
        ({"enum": list(range(1001))}, "enums"),
        ({"items": [{"$ref": "https://example.com/schema"}]}, "https://example.com/schema"),
        ({"$ref": "file:///etc/passwd"}, "isn't fetched"),
    ):
        with pytest.raises(ApiError, match=reason) as caught:
            check_schema(schema, "response_format.json_schema.schema")
        assert caught.value.status == 400
        assert caught.value.param == "response_format.json_schema.schema"


def test_schemas_within_the_limits_are_accepted() -> None:
    check_schema(PERSON, "schema")
    check_schema(deep(MOST_DEPTH - 1), "schema")
    check_schema({"properties": {"$ref": {"type": "string"}, "enum": {"enum": ["a"]}}}, "schema")


def grammar(schema: str, thoughts: ReasoningState = ReasoningState.NONE, **marks: int) -> str:
    tags = THINK_TAGS._replace(tokens=tuple((number, mark) for mark, number in marks.items()))
    return answer_grammar(AnswerRules(None, (), ToolChoice(), schema, thoughts, {}, tags))


def test_an_answer_matches_its_schema() -> None:
    found = grammar(json.dumps(PERSON))
    for text in ('{"name": "Ann"}', '{"name": "Ann", "friend": null}'):
        assert matches(found, text)
    for text in ("Ann", '{"name": 5}', '{"name": "Ann", "friend": "Maximilian"}', '{"friend": ""}'):
        assert not matches(found, text)


def test_json_object_accepts_any_object() -> None:
    assert matches(grammar(ANY_OBJECT), '{"a": [1, {"b": null}]}')
    assert not matches(grammar(ANY_OBJECT), "[]")


def test_an_empty_schema_is_no_grammar() -> None:
    assert grammar("") == ""


def test_an_answer_cannot_loop_in_white_space() -> None:
    assert not matches(grammar(ANY_OBJECT), '{ "a":\n1}')
    own = {"type": "object", "x-guidance": {"whitespace_flexible": True}}
    assert not matches(grammar(json.dumps(own)), '{ "a":\n1}')


@pytest.mark.parametrize("marks", [{}, CLOSE_ID], ids=["text", "tokens"])
def test_reasoning_before_an_answer_is_unconstrained(marks: dict[str, int]) -> None:
    begun = grammar('{"type": "integer"}', ReasoningState.BEGUN, **marks)
    assert matches(begun, "so {it} is\n</think>\n\n5", marks)
    assert not matches(begun, "so </think>five", marks)
    assert not matches(begun, "5", marks)
    possible = grammar('{"type": "integer"}', ReasoningState.POSSIBLE, **marks)
    assert matches(possible, "<think>so</think>5", marks)
    assert matches(possible, "5", marks)
    assert not matches(possible, "so</think>5", marks)


def reasoned(tags: ReasoningFormat, thoughts: ReasoningState, *, with_tokens: bool) -> Matches:
    """Whether an answer of a number after reasoning in a format is allowed."""
    ids = {
        mark: number
        for mark, number in MARK_IDS.items()
        if with_tokens and mark in "".join(tags.tags)
    }
    tags = tags._replace(tokens=tuple((number, mark) for mark, number in ids.items()))
    schema = '{"type": "integer"}'
    found = answer_grammar(AnswerRules(None, (), ToolChoice(), schema, thoughts, {}, tags))
    return lambda text: matches(found, text, ids)


@pytest.mark.parametrize("with_tokens", [False, True], ids=["text", "tokens"])
def test_tags_around_an_answer_are_allowed(with_tokens: bool) -> None:
    tags = ReasoningFormat("<|A|>", "<|/A|>", responses=("<|R|>",), response_ends=("<|/R|>",))
    is_allowed = reasoned(tags, ReasoningState.POSSIBLE, with_tokens=with_tokens)
    for text in ("<|A|>so</|A|>", "<|A|>so"):
        assert not is_allowed(text)
    for text in ("5", "<|R|>5<|/R|>", "<|A|>so<|/A|>\n5", "<|A|>so<|/A|><|R|>5<|/R|>"):
        assert is_allowed(text), text
    is_allowed = reasoned(tags, ReasoningState.BEGUN, with_tokens=with_tokens)
    assert is_allowed("so<|/A|><|R|>5<|/R|>")
    assert not is_allowed("<|R|>5<|/R|>")
    assert not is_allowed("so<|/A|><|R|>five")


def test_reasoning_may_be_a_separate_message() -> None:
    tags = ReasoningFormat(
        "<|channel|>analysis<|message|>",
        "<|end|>",
        "<|start|>assistant",
        ("<|channel|>final<|message|>", "<|channel|>commentary<|message|>"),
    )
    is_allowed = reasoned(tags, ReasoningState.POSSIBLE, with_tokens=True)
    thought = "<|channel|>analysis<|message|>so<|end|><|start|>assistant"
    assert is_allowed(f"{thought}<|channel|>final<|message|>5")
    assert is_allowed("<|channel|>final<|message|>5")
    for text in ("5", thought, f"{thought}5", f"{thought}<|channel|>final<|message|>five"):
        assert not is_allowed(text), text


CASES = {
    "int64": {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
    "silent": {"type": "array", "uniqueItems": False, "unevaluatedItems": True},
    "format": {"type": "string", "format": "animationFile"},
    "metaschema": {"$schema": "https://example.com/schema", "unevaluatedProperties": {}},
}
UNENFORCED = {
    "look-around": {"type": "string", "pattern": r"^(?!\s*$).+"},
    "word boundaries": {"type": "string", "pattern": r"\bfoo\b"},
    "back-references": {"type": "string", "pattern": r"(a)\1"},
    "no value is allowed": {"enum": []},
    "nothing is at": {"$ref": "#/$defs/x"},
    "no such type": {"type": "text"},
    "too large": {"minimum": 2**63},
    "uniqueItems": {"type": "array", "uniqueItems": True},
    "not": {"not": {"const": 5}},
}


@pytest.mark.parametrize("schema", CASES.values(), ids=CASES)
def test_annotations_are_ignored(schema: dict[str, Any]) -> None:
    refuse_unenforced({"properties": {"x": schema}}, "schema")
    assert unenforced_places({"properties": {"x": schema}}, "schema") == ()
    assert matches(grammar(json.dumps({"type": "object", "properties": {"x": schema}})), "{}")


def test_an_unenforceable_keyword_is_named_with_its_position() -> None:
    for reason, schema in UNENFORCED.items():
        place = next(iter(set(schema) - {"type"}), "type")
        with pytest.raises(ApiError, match=reason) as caught:
            refuse_unenforced({"properties": {"x": schema}}, "response_format")
        assert f"`properties.x.{place}`" in caught.value.message
        assert caught.value.param == "response_format"
        (named,) = unenforced_places({"properties": {"x": schema}}, "tools[0]")
        assert named.startswith(f"`tools[0].properties.x.{place}`")


def test_patterns_that_only_look_unsupported_are_enforced() -> None:
    for pattern in (r"[\b(?=]", r"\\b", r"a\(?!", r"(?<year>\d+)", r"\p{Lu}[[a]"):
        schema = {"type": "string", "pattern": pattern}
        assert enforced_schema(schema, is_lenient=True) == (schema, ())


def test_values_are_not_interpreted_as_schemas() -> None:
    schema = {"properties": {"pattern": {"enum": [{"not": 1}]}}, "const": {"uniqueItems": False}}
    assert enforced_schema(schema, is_lenient=True) == (schema, ())


def test_a_tool_with_an_unenforceable_schema_can_be_called_nevertheless(served: Served) -> None:
    properties = dict(enumerate(UNENFORCED.values())) | {"broken": {"pattern": "("}}
    parameters = {
        "type": "object",
        "properties": {f"p{key}": properties[key] for key in properties},
    }
    parameters["required"] = list(parameters["properties"])
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 8, "tools": [tool]}
    reply = served.post("/v1/chat/completions", {**body, "tool_choice": "required"})
    assert reply.status_code == 200, reply.text
    assert "tools[0].function.parameters.properties.p0.pattern" in reply.headers["x-medusa-warning"]


@pytest.mark.parametrize(
    "schema",
    [{"type": "string", "pattern": "("}, {"type": "integer", "minimum": 5, "maximum": 3}],
    ids=["pattern", "bounds"],
)
def test_a_schema_that_cannot_be_compiled_is_refused_without_positions_of_the_grammar(
    served: Served, schema: dict[str, Any]
) -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    body = {"messages": [{"role": "user", "content": "Hi"}], "response_format": wanted}
    error = served.error("/v1/chat/completions", {**body, "max_tokens": 8}, 400)
    assert error["param"] == "response_format"
    assert "at 1(" not in error["message"]
    assert "compile JSON" not in error["message"]
