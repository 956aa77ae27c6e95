"""Whatever is wrong with a field of a request, the error names the field: in every dialect."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel

from medusa_core.server.api_error import ApiError
from medusa_core.server.constraints import ConstraintFields
from medusa_core.server.dialects import anthropic_requests, openai_chat, openai_completions
from medusa_core.server.dialects.llama_completions import _gap, _wish
from medusa_core.server.dialects.openai_chat import ContinuationFields
from medusa_core.server.dialects.openai_response_requests import read_response_request
from medusa_core.server.fields import Fields
from medusa_core.server.limits import Limits
from medusa_core.server.text_prompts import InfillFields
from tests.support.spoiled_json import spoil

Read = Callable[[Fields], object]
ALL: dict[str, Any] = {
    "model": "x",
    "temperature": 1,
    "top_p": 0.5,
    "min_p": 0.1,
    "top_k": 3,
    "seed": 4,
    "presence_penalty": 1,
    "frequency_penalty": 1,
    "repeat_penalty": 2,
    "stream": True,
    "max_tokens": 5,
    "logit_bias": {"5": 1},
    "enable_thinking": True,
    "medusa": {"drafter": "a", "rule": "b", "rows": 4, "growth": "chain", "drafts": True},
}
FUNCTION = {"name": "f", "description": "d", "parameters": {"type": "object"}}
CHAT = {
    **ALL,
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "x"},
    ],
    "tools": [{"type": "function", "function": FUNCTION}],
    "stop": ["x"],
    "n": 2,
    "logprobs": True,
    "top_logprobs": 2,
    "parallel_tool_calls": True,
    "stream_options": {"include_usage": True},
}
RESPONSE = {
    **ALL,
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "wet"},
    ],
    "tools": [{"type": "function", **FUNCTION}],
    "instructions": "Be brief.",
    "max_output_tokens": 5,
    "top_logprobs": 2,
    "truncation": "auto",
    "reasoning": {"effort": "none"},
    "background": False,
}
MESSAGES = {
    **ALL,
    "system": [{"type": "text", "text": "Be brief."}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f"}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]},
    ],
    "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object"}}],
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
    "stop_sequences": ["x"],
    "thinking": {"type": "disabled"},
}
COMPLETION = {
    **ALL,
    "prompt": ["a"],
    "n": 1,
    "logprobs": 2,
    "echo": False,
    "stream_options": {"include_usage": True},
}
GAP = {**ALL, "input_prefix": "a", "input_suffix": "b", "n_predict": 4}


def _read_gap(fields: Fields) -> object:
    return _wish(fields, Limits(), (_gap(fields),))


DIALECTS: dict[str, tuple[Read, dict[str, Any]]] = {
    "chat": (partial(openai_chat.read_chat, limits=Limits()), CHAT),
    "responses": (partial(read_response_request, limits=Limits()), RESPONSE),
    "completions": (partial(openai_completions.read_text_wish, limits=Limits()), COMPLETION),
    "infill": (_read_gap, GAP),
    "messages": (
        partial(anthropic_requests.read_request, limits=Limits(), needs_max_tokens=True),
        MESSAGES,
    ),
}
# What each way to read a field refuses, of types and at the ends of ranges.
WRONG: dict[str, Callable[..., list[Any]]] = {
    "text": lambda *_: [5, True, [], {}],
    "flag": lambda *_: ["yes", 1, [], {}],
    "number": lambda low, high: ["hot", True, [], {}, low - 1, high + 1],
    "whole": lambda low, high: ["many", 1.5, True, [], {}, low - 1, high + 1],
    "record": lambda *_: [5, "x", []],
    "array": lambda most: [5, "x", {}, [None] * (most + 1)],
    "records": lambda most: [5, {}, [5], [{}] * (most + 1)],
    "texts": lambda most: [5, {}, [5], ["x"] * (most + 1)],
}


def fields_read(read: Read, body: dict[str, Any]) -> dict[str, set[tuple[Any, ...]]]:
    """Every field that reading a body asks for, with the ways in which it is read."""
    found: dict[str, set[tuple[Any, ...]]] = {}

    def noting(kind: str, plain: Callable[..., Any]) -> Callable[..., Any]:
        def noted(self: Fields, name: str, *args: Any, **options: Any) -> Any:
            found.setdefault(self.where(name), set()).add((kind, *args))
            return plain(self, name, *args, **options)

        return noted

    with pytest.MonkeyPatch.context() as patch:
        for kind in WRONG:
            patch.setattr(Fields, kind, noting(kind, getattr(Fields, kind)))
        read(Fields(body))
    return found


def path_of(where: str) -> tuple[str | int, ...]:
    """`messages[0].role` as keys."""
    parts = re.findall(r"([^.\[\]]+)|\[(\d+)\]", where)
    return tuple(name or int(number) for name, number in parts)


def is_there(value: Any, path: tuple[str | int, ...]) -> bool:
    for key in path:
        if isinstance(value, dict) and key not in value:
            return False
        value = value[key]
    return True


def refusal(read: Read, body: Mapping[str, Any]) -> str | None:
    """The field that an error names; None where nothing is refused."""
    try:
        read(Fields(body))
    except ApiError as error:
        failed = error
    else:
        return None
    assert failed.status == 400
    assert failed.message
    return failed.param


def wrong_bodies(read: Read, body: dict[str, Any]) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    for where, ways in fields_read(read, body).items():
        path = path_of(where)
        is_union = len({kind for kind, *_ in ways}) > 1 or where == "prompt"
        if is_union or not is_there(body, path[:-1]):
            continue
        (kind, *args), *_ = ways
        for value in WRONG[kind](*(arg for arg in args if kind not in ("text", "flag"))):
            yield where, value, spoil(body, path, value)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_field_of_another_type_or_out_of_range_is_named(dialect: str) -> None:
    read, body = DIALECTS[dialect]
    assert refusal(read, body) is None
    wrong = list(wrong_bodies(read, body))
    named = [(where, repr(value)[:30], refusal(read, spoiled)) for where, value, spoiled in wrong]
    assert len({where for where, *_ in named}) >= 20
    assert [row for row in named if row[2] is None or not row[2].startswith(row[0])] == []


@pytest.mark.parametrize("record", [ConstraintFields, ContinuationFields, InfillFields])
def test_a_field_of_a_record_that_has_another_type_is_named(record: type[BaseModel]) -> None:
    read, body = DIALECTS["infill" if record is InfillFields else "chat"]
    for name in record.model_fields:
        found = refusal(read, {**body, name: 7.5})
        assert found is not None
        assert found.split(".")[0] == name


USER = {"role": "user", "content": "Hi"}
TOOL = {"name": "f", "input_schema": {"type": "object"}}


def part_of(kind: str) -> dict[str, Any]:
    return {"messages": [{**USER, "content": [{"type": kind}]}]}


YES = 'root ::= "yes"'
ROWS: dict[str, list[tuple[dict[str, Any], str]]] = {
    "chat": [
        ({"max_tokens": 0}, "max_tokens"),
        ({"logit_bias": {"word": 1}}, "logit_bias"),
        ({"logit_bias": {"5": 101}}, "logit_bias.5"),
        ({"logprobs": None}, "logprobs"),
        ({"messages": []}, "messages"),
        ({"messages": ["Hello"]}, "messages[0]"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"response_format": {"type": "yaml"}}, "response_format.type"),
        ({"response_format": "json"}, "response_format"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"tools": None, "tool_choice": "required"}, "tool_choice"),
        ({"medusa": {"growth": "bush"}}, "medusa.growth"),
        ({"grammar": "root ::= ("}, "grammar"),
        ({"grammar": "(" * 4000}, "grammar"),
        ({"grammar": YES, "json_schema": {}}, "grammar"),
        ({"guided_json": "{"}, "guided_json"),
        ({"structured_outputs": {"jsn": {}}}, "structured_outputs.jsn"),
        ({"structured_outputs": {"choice": []}}, "structured_outputs.choice"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"continue_final_message": True, "add_generation_prompt": True}, "continue_final_message"),
        *((part_of(kind), "messages[0].content[0].type") for kind in ("image_url", "file")),
    ],
    "completions": [
        ({"echo": True}, "echo"),
        ({"suffix": "the end", "prompt": [1]}, "prompt"),
        ({"best_of": 3}, "best_of"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [["word"]]}, "prompt"),
        ({"prompt": {"text": "x"}}, "prompt"),
        ({"n": 9, "prompt": ["a", "b"]}, "n"),
        ({"logprobs": 6}, "logprobs"),
    ],
    "responses": [
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"background": True}, "background"),
        ({"input": None}, "input"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type"),
        ({"input": [{**USER, "content": [{"type": "input_image"}]}]}, "input[0].content[0].type"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
        ({"text": {"format": {"type": "json_schema"}}}, "text.format.schema"),
        ({"input": [{"role": "user"}]}, "input[0].content"),
        ({"truncation": "always"}, "truncation"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
    ],
    "infill": [
        ({"input_prefix": "", "input_suffix": ""}, "input_prefix"),
        ({"input_extra": [{"filename": "a"}]}, "input_extra.0.text"),
    ],
    "messages": [
        ({"max_tokens": None}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "messages"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{**USER, "content": [{"type": "image"}]}]}, "messages[0].content[0].type"),
        ({"system": [{"type": "image"}]}, "system[0].type"),
        ({"tools": [{"input_schema": {}}]}, "tools[0].name"),
        ({"tools": None, "tool_choice": {"type": "any"}}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": {"type": "tool", "name": "x"}}, "tool_choice.name"),
        ({"thinking": {"type": "deep"}}, "thinking.type"),
        ({"output_config": {"format": {"type": "xml"}}}, "output_config.format.type"),
    ],
}


@pytest.mark.parametrize("dialect", ROWS)
def test_what_no_type_tells_is_refused_by_its_name_too(dialect: str) -> None:
    read, body = DIALECTS[dialect]
    wrong = [
        (fields, param, found)
        for fields, param in ROWS[dialect]
        if (found := refusal(read, {**body, **fields})) != param
    ]
    assert wrong == []
