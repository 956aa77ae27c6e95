"""Calls of functions and schemas against a started server, in all APIs."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from medusa_core.server.api_error import ApiError
from medusa_core.server.offered_tools import Tool, read_tools
from tests.support.server.served import Served, events_of
from tests.support.server.tool_requests import (
    CLOCK,
    PERSON,
    QUESTION,
    TOOL,
    asked,
)


def test_a_call_is_the_same_with_and_without_drafts(served: Served) -> None:
    options = {"temperature": 0.9, "seed": 4, "tool_choice": "required"}
    texts = [
        [call["function"] for call in answer["choices"][0]["message"]["tool_calls"]]
        for answer in (
            asked(served, QUESTION, **options),
            asked(served, QUESTION, **options, medusa={"drafts": False}),
        )
    ]
    assert texts[0] == texts[1]


def outcome(answer: dict[str, Any]) -> tuple[Any, ...]:
    """Return what a client sees of an answer, without ids."""
    (choice,) = answer["choices"]
    message = choice["message"]
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    return message["content"], calls, choice["finish_reason"]


def test_concurrent_clients_keep_their_tools_and_stop_strings(served: Served) -> None:
    weather = {"type": "function", "function": {"name": "weather"}}
    clock = {"type": "function", "function": {"name": "clock"}}
    requests: list[dict[str, Any]] = [
        {"tools": [TOOL, CLOCK], "tool_choice": weather},
        {"tools": [TOOL, CLOCK], "tool_choice": clock},
        {"tools": [TOOL], "tool_choice": weather, "stop": ["days"]},
        {"tools": [TOOL], "tool_choice": "none", "stop": ["e"]},
        {"tools": [TOOL], "tool_choice": "auto", "stop": ["a", "o"]},
        {"tools": [CLOCK], "tool_choice": "required", "stop": ["weather"]},
    ]
    alone = [outcome(asked(served, QUESTION, **one)) for one in requests]
    assert [name for _, calls, _ in alone[:2] for name in {call["name"] for call in calls}] == [
        "weather",
        "clock",
    ]
    content, [cut], reason = alone[2]
    assert (content, cut["name"], reason) == (None, "weather", "stop")
    assert "city" in cut["arguments"]
    assert "days" not in cut["arguments"]
    assert alone[3][2] == "stop"
    assert "e" not in alone[3][0]
    with ThreadPoolExecutor(len(requests)) as threads:
        for _ in range(2):
            together = threads.map(lambda one: outcome(asked(served, QUESTION, **one)), requests)
            assert list(together) == alone


def test_a_conversation_continues_after_a_call_without_another_prefill(served: Served) -> None:
    question = {**QUESTION, "content": "How will the weather in Rome be tomorrow?"}
    first = asked(served, question, tool_choice="required", parallel_tool_calls=False)
    message = first["choices"][0]["message"]
    (call,) = message["tool_calls"]
    # Clients that read the arguments write them with other spaces.
    arguments = json.dumps(json.loads(call["function"]["arguments"]), separators=(",", ":"))
    sent = {
        **message,
        "tool_calls": [{**call, "function": {"name": "weather", "arguments": arguments}}],
    }
    result = {"role": "tool", "tool_call_id": call["id"], "content": "sunny"}
    second = asked(served, question, sent, result, tool_choice="auto", parallel_tool_calls=False)
    read = first["usage"]["prompt_tokens"] + first["usage"]["completion_tokens"]
    assert second["timings"]["cache_n"] >= read - 2
    foreign = {**sent, "content": "I'll see."}
    other = asked(served, question, foreign, result, tool_choice="auto", parallel_tool_calls=False)
    assert other["timings"]["cache_n"] < read - 2


def test_each_round_of_a_client_reuses_the_rounds_before(served: Served) -> None:
    messages: list[dict[str, Any]] = [{**QUESTION, "content": "How is the weather in the cities?"}]
    read = 0
    for weather in ("sunny", "rainy", "windy"):
        answer = asked(served, *messages, tool_choice="required", parallel_tool_calls=False)
        assert answer["timings"]["cache_n"] >= read - 2
        usage = answer["usage"]
        read = usage["prompt_tokens"] + usage["completion_tokens"]
        message = answer["choices"][0]["message"]
        (call,) = message["tool_calls"]
        messages += [message, {"role": "tool", "tool_call_id": call["id"], "content": weather}]


def test_tool_choice_none_describes_no_function(served: Served) -> None:
    described = asked(served, QUESTION, max_tokens=1)
    none = asked(served, QUESTION, max_tokens=1, tool_choice="none")
    assert none["usage"]["prompt_tokens"] < described["usage"]["prompt_tokens"] - 50
    assert "tool_calls" not in none["choices"][0]["message"]


def test_apply_template_shows_the_described_functions(served: Served) -> None:
    reply = served.post("/apply-template", {"messages": [QUESTION], "tools": [TOOL]})
    assert '"name": "weather"' in reply.json()["prompt"]


def test_a_json_object_begins_with_a_brace(served: Served) -> None:
    answer = served.chat("Give me JSON.", max_tokens=5, response_format={"type": "json_object"})
    assert answer["choices"][0]["message"]["content"].startswith("{")


def test_a_stream_with_a_schema_is_json(served: Served) -> None:
    schema = {"type": "json_schema", "json_schema": {"schema": PERSON}}
    body = {"messages": [QUESTION], "stream": True, "response_format": schema}
    events = events_of(served.post("/v1/chat/completions", body).text.splitlines())
    text = "".join(event["choices"][0]["delta"].get("content") or "" for event in events)
    assert set(json.loads(text)) == {"name", "old"}


def test_an_unusable_schema_is_a_bad_request(served: Served) -> None:
    for schema, said in (
        ({"$ref": "https://example.com"}, "isn't fetched"),
        ({"type": "string", "pattern": "(?=a)"}, "look-around"),
        ({"type": "string", "pattern": "("}, "grammar"),
    ):
        wanted = {"type": "json_schema", "json_schema": {"schema": schema}}
        for streams in (False, True):
            body = {"messages": [QUESTION], "response_format": wanted, "stream": streams}
            assert said in served.error("/v1/chat/completions", body, 400)["message"]


def test_function_parameters_are_objects_within_limits() -> None:
    far = {"properties": {"a": {"$ref": "http://x"}}}
    for parameters in (
        far,
        *({"type": kind} for kind in ("string", "array", ["null", "string"], 5)),
    ):
        function = {"name": "f", "parameters": parameters}
        with pytest.raises(ApiError) as caught:
            read_tools([Tool.model_validate(function)], "function.")
        assert caught.value.param == "tools[0].function.parameters"


def test_nullable_parameters_are_objects_too(served: Served) -> None:
    parameters = {"type": ["object", "null"], "properties": {"a": {"type": "null"}}}
    function = {"name": "f", "parameters": parameters}
    tools = [{"type": "function", "function": function}]
    found = asked(served, QUESTION, tools=tools, tool_choice="required", parallel_tool_calls=False)
    (call,) = found["choices"][0]["message"]["tool_calls"]
    assert isinstance(json.loads(call["function"]["arguments"]), dict)


def test_functions_have_a_common_limit(served: Served) -> None:
    function = {"name": "f", "parameters": {"properties": {"a": {"description": "x" * 60_000}}}}
    tools = [{"type": "function", "function": function}] * 9
    error = served.error("/v1/chat/completions", {"messages": [QUESTION], "tools": tools}, 400)
    assert (error["param"], "fewer functions" in error["message"]) == ("tools", True)
