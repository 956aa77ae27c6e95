"""Whatever is wrong with a field of a request, the error names the field: in every dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from medusa_core.server.api_error import ApiError
from medusa_core.server.constraints import ConstraintRecord
from medusa_core.server.dialects.anthropic_requests import MessagesBody, parse_messages
from medusa_core.server.dialects.llama_completions import InfillBody, gap_prompt, parse_text
from medusa_core.server.dialects.openai_chat import ChatBody, parse_chat
from medusa_core.server.dialects.openai_completions import CompletionBody, parse_completion
from medusa_core.server.dialects.openai_response_requests import (
    ResponseBody,
    parse_response_request,
)
from medusa_core.server.records import Record, validate
from tests.support.spoiled_json import places, spoil

Read = Callable[[Mapping[str, Any]], object]
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
del RESPONSE["max_tokens"]  # another name there
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


def reader(kind: type[Record], parse: Callable[[Any], object]) -> Read:
    return lambda body: parse(validate(kind, body))


DIALECTS: dict[str, tuple[Read, dict[str, Any]]] = {
    "chat": (reader(ChatBody, parse_chat), CHAT),
    "responses": (reader(ResponseBody, parse_response_request), RESPONSE),
    "completions": (reader(CompletionBody, parse_completion), COMPLETION),
    "infill": (reader(InfillBody, lambda body: parse_text(body, (gap_prompt(body),))), GAP),
    "messages": (reader(MessagesBody, parse_messages), MESSAGES),
}
# Other types and values out of range, by the type of the right value.
WRONG: dict[type, list[Any]] = {
    str: [5, True, [], {}],
    bool: ["yes", 1, [], {}],
    int: ["many", True, [], {}, -(1 << 70), 1 << 70],
    float: ["hot", True, [], {}, -(1 << 70), 1 << 70],
    dict: [5, "x", []],
    list: [5, True, {}, [5], [{}] * 5000],
}
# Fields that several types fit: each with those that don't.
UNIONS = {
    "content": [5, True, {}, [5]],
    "input": [5, True, {}, [5]],
    "output": [5, True, {}, [5]],
    "prompt": [5, True, {}, [{}]],
    "stop": [5, True, {}, [5]],
    "stop_sequences": [5, True, {}, [5]],
    "system": [5, True, {}, [5]],
    "arguments": [5, True, [1]],
}


def path_text(path: tuple[str | int, ...]) -> str:
    """Keys as `messages[0].role`."""
    parts = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    return "".join(parts).removeprefix(".")


def refusal(read: Read, body: Mapping[str, Any]) -> str | None:
    """The field that an error names; None where nothing is refused."""
    try:
        read(body)
    except ApiError as error:
        failed = error
    else:
        return None
    assert failed.status == 400
    assert failed.message
    return failed.param


def wrong_bodies(body: dict[str, Any]) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    for path in places(body):
        # Schemas are checked elsewhere; a list of tokens is no list of prompts.
        if not path or {"parameters", "input_schema", "prompt"} & set(path[:-1]):
            continue
        right: Any = body
        for key in path:
            right = right[key]
        if right is not None:
            for value in UNIONS.get(str(path[-1])) or WRONG[type(right)]:
                yield path_text(path), value, spoil(body, path, value)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_field_of_another_type_or_out_of_range_is_named(dialect: str) -> None:
    read, body = DIALECTS[dialect]
    assert refusal(read, body) is None
    named = [
        (where, repr(value)[:30], refusal(read, spoiled))
        for where, value, spoiled in wrong_bodies(body)
    ]
    assert len({where for where, *_ in named}) >= 20
    assert [row for row in named if row[2] is None or not row[2].startswith(row[0])] == []


@pytest.mark.parametrize("dialect", ["chat", "completions"])
def test_a_constraint_that_has_another_type_is_named(dialect: str) -> None:
    read, body = DIALECTS[dialect]
    for name in ConstraintRecord.model_fields:
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
        ({"input_extra": [{"filename": "a"}]}, "input_extra[0].text"),
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
def test_invalid_values_of_a_valid_type_are_refused_by_name(dialect: str) -> None:
    read, body = DIALECTS[dialect]
    wrong = [
        (fields, param, found)
        for fields, param in ROWS[dialect]
        if (found := refusal(read, {**body, **fields})) != param
    ]
    assert wrong == []
