"""Schemas that somebody sent: bounds, and what answers then match."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from medusa_core.messages import THINK_TAGS, ReasoningFormat
from medusa_core.server.answer_grammar import AnswerRules, Thoughts, answer_grammar
from medusa_core.server.api_error import ApiError
from medusa_core.server.chat import ToolChoice
from medusa_core.server.json_schema import ANY_OBJECT, MOST_BYTES, MOST_DEPTH, check_schema
from tests.server.grammar_checks import MARK_IDS, matches

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


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"description": "x" * MOST_BYTES}, "bytes"),
        (deep(MOST_DEPTH), "deep"),
        ({"properties": {f"p{number}": {} for number in range(1001)}}, "properties"),
        ({"enum": list(range(1001))}, "enums"),
        ({"items": [{"$ref": "https://example.com/schema"}]}, "https://example.com/schema"),
        ({"$ref": "file:///etc/passwd"}, "isn't fetched"),
    ],
)
def test_a_schema_out_of_bounds_is_refused_with_its_place(
    schema: dict[str, Any], said: str
) -> None:
    with pytest.raises(ApiError, match=said) as caught:
        check_schema(schema, "response_format.json_schema.schema")
    assert caught.value.status == 400
    assert caught.value.param == "response_format.json_schema.schema"


def test_schemas_within_bounds_pass() -> None:
    check_schema(PERSON, "schema")
    check_schema(deep(MOST_DEPTH - 1), "schema")
    check_schema({"properties": {"$ref": {"type": "string"}, "enum": {"enum": ["a"]}}}, "schema")


def grammar(schema: str, thoughts: Thoughts = Thoughts.NONE, **marks: int) -> str:
    tags = THINK_TAGS._replace(tokens=tuple((number, mark) for mark, number in marks.items()))
    return answer_grammar(AnswerRules(None, (), ToolChoice(), schema, thoughts, {}, tags))


def test_an_answer_matches_its_schema() -> None:
    found = grammar(json.dumps(PERSON))
    for text in ('{"name": "Ann"}', '{"name": "Ann", "friend": null}'):
        assert matches(found, text)
    for text in ("Ann", '{"name": 5}', '{"name": "Ann", "friend": "Maximilian"}', '{"friend": ""}'):
        assert not matches(found, text)


def test_any_object_is_an_object() -> None:
    assert matches(grammar(ANY_OBJECT), '{"a": [1, {"b": null}]}')
    assert not matches(grammar(ANY_OBJECT), "[]")


def test_no_schema_is_no_grammar() -> None:
    assert grammar("") == ""


def test_an_answer_cant_lose_itself_in_spaces() -> None:
    assert not matches(grammar(ANY_OBJECT), '{ "a":\n1}')
    own = {"type": "object", "x-guidance": {"whitespace_flexible": True}}
    assert not matches(grammar(json.dumps(own)), '{ "a":\n1}')


@pytest.mark.parametrize("marks", [{}, CLOSE_ID], ids=["text", "tokens"])
def test_a_thought_before_an_answer_is_free(marks: dict[str, int]) -> None:
    begun = grammar('{"type": "integer"}', Thoughts.BEGUN, **marks)
    assert matches(begun, "so {it} is\n</think>\n\n5", marks)
    assert not matches(begun, "so </think>five", marks)
    assert not matches(begun, "5", marks)
    possible = grammar('{"type": "integer"}', Thoughts.POSSIBLE, **marks)
    assert matches(possible, "<think>so</think>5", marks)
    assert matches(possible, "5", marks)
    assert not matches(possible, "so</think>5", marks)


def reasoned(tags: ReasoningFormat, thoughts: Thoughts, *, with_tokens: bool) -> Matches:
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
    is_allowed = reasoned(tags, Thoughts.POSSIBLE, with_tokens=with_tokens)
    for text in ("<|A|>so</|A|>", "<|A|>so"):
        assert not is_allowed(text)
    for text in ("5", "<|R|>5<|/R|>", "<|A|>so<|/A|>\n5", "<|A|>so<|/A|><|R|>5<|/R|>"):
        assert is_allowed(text), text
    is_allowed = reasoned(tags, Thoughts.BEGUN, with_tokens=with_tokens)
    assert is_allowed("so<|/A|><|R|>5<|/R|>")
    assert not is_allowed("<|R|>5<|/R|>")
    assert not is_allowed("so<|/A|><|R|>five")


def test_reasoning_may_be_a_message_of_its_own() -> None:
    tags = ReasoningFormat(
        "<|channel|>analysis<|message|>",
        "<|end|>",
        "<|start|>assistant",
        ("<|channel|>final<|message|>", "<|channel|>commentary<|message|>"),
    )
    is_allowed = reasoned(tags, Thoughts.POSSIBLE, with_tokens=True)
    thought = "<|channel|>analysis<|message|>so<|end|><|start|>assistant"
    assert is_allowed(f"{thought}<|channel|>final<|message|>5")
    assert is_allowed("<|channel|>final<|message|>5")
    for text in ("5", thought, f"{thought}5", f"{thought}<|channel|>final<|message|>five"):
        assert not is_allowed(text), text
