"""Calls of functions and schemas against a started server, in all APIs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anthropic
import openai
import pytest

from medusa_core.server.api_error import ApiError
from medusa_core.server.offered_tools import Tool, read_tools
from tests.support.server.served import Served, events_of
from tests.support.server.tool_requests import (
    CLOCK,
    PARAMETERS,
    PERSON,
    QUESTION,
    TOOL,
    WEATHER,
    asked,
    check_arguments,
)


def test_a_required_call_comes_as_a_call(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model="", messages=[QUESTION], tools=[TOOL], tool_choice="required"
    )
    (choice,) = answer.choices
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content is None
    calls = choice.message.tool_calls
    assert {call.function.name for call in calls} == {"weather"}
    assert len({call.id for call in calls}) == len(calls)
    for call in calls:
        check_arguments(call.function.arguments)


def test_a_stream_brings_the_same_call_in_pieces(client: openai.OpenAI) -> None:
    options: dict[str, Any] = {"model": "", "messages": [QUESTION], "temperature": 0}
    options |= {"tools": [TOOL, CLOCK], "parallel_tool_calls": False}
    options |= {"tool_choice": {"type": "function", "function": {"name": "weather"}}}
    (whole,) = client.chat.completions.create(**options).choices[0].message.tool_calls
    chunks = [one.choices[0] for one in client.chat.completions.create(**options, stream=True)]
    deltas = [call for chunk in chunks for call in chunk.delta.tool_calls or ()]
    assert [delta.function.name for delta in deltas if delta.function.name] == ["weather"]
    assert "".join(delta.function.arguments or "" for delta in deltas) == whole.function.arguments
    assert len(deltas) > 2
    assert not any(chunk.delta.content for chunk in chunks)
    assert chunks[-1].finish_reason == "tool_calls"


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
    """What a client sees of an answer, without ids."""
    (choice,) = answer["choices"]
    message = choice["message"]
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    return message["content"], calls, choice["finish_reason"]


def test_clients_at_once_keep_their_tools_and_stops_apart(served: Served) -> None:
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


def test_a_conversation_goes_on_behind_a_call_without_reading_it_again(served: Served) -> None:
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


def test_tool_choice_none_describes_no_function(served: Served) -> None:
    described = asked(served, QUESTION, max_tokens=1)
    none = asked(served, QUESTION, max_tokens=1, tool_choice="none")
    assert none["usage"]["prompt_tokens"] < described["usage"]["prompt_tokens"] - 50
    assert "tool_calls" not in none["choices"][0]["message"]


def test_a_prompt_that_describes_functions_is_shown(served: Served) -> None:
    reply = served.post("/apply-template", {"messages": [QUESTION], "tools": [TOOL]})
    assert '"name": "weather"' in reply.json()["prompt"]


def test_an_answer_matches_its_schema(client: openai.OpenAI) -> None:
    schema = {"name": "person", "schema": PERSON, "strict": True}
    answer = client.chat.completions.create(
        model="",
        messages=[QUESTION],
        n=3,
        temperature=1.2,
        response_format={"type": "json_schema", "json_schema": schema},
    )
    for choice in answer.choices:
        person = json.loads(choice.message.content)
        assert len(person["name"]) <= 8
        assert isinstance(person["old"], bool)
        assert choice.finish_reason == "stop"


def test_a_json_object_begins_as_one(served: Served) -> None:
    answer = served.chat("Give me JSON.", max_tokens=5, response_format={"type": "json_object"})
    assert answer["choices"][0]["message"]["content"].startswith("{")


def test_a_stream_with_a_schema_is_json(served: Served) -> None:
    schema = {"type": "json_schema", "json_schema": {"schema": PERSON}}
    body = {"messages": [QUESTION], "stream": True, "response_format": schema}
    events = events_of(served.post("/v1/chat/completions", body).text.splitlines())
    text = "".join(event["choices"][0]["delta"].get("content") or "" for event in events)
    assert set(json.loads(text)) == {"name", "old"}


def test_a_schema_that_cant_be_used_is_a_bad_request(served: Served) -> None:
    for schema, said in (
        ({"$ref": "https://example.com"}, "isn't fetched"),
        ({"type": "string", "pattern": "(?=a)"}, "look-around"),
        ({"type": "string", "pattern": "("}, "grammar"),
    ):
        wanted = {"type": "json_schema", "json_schema": {"schema": schema}}
        for streams in (False, True):
            body = {"messages": [QUESTION], "response_format": wanted, "stream": streams}
            assert said in served.error("/v1/chat/completions", body, 400)["message"]


def test_parameters_of_functions_are_objects_within_bounds() -> None:
    far = {"properties": {"a": {"$ref": "http://x"}}}
    for parameters in (
        far,
        *({"type": kind} for kind in ("string", "array", ["null", "string"], 5)),
    ):
        function = {"name": "f", "parameters": parameters}
        with pytest.raises(ApiError) as caught:
            read_tools([Tool.model_validate(function)], "function.")
        assert caught.value.param == "tools[0].function.parameters"


def test_arguments_that_may_be_null_are_objects_too(served: Served) -> None:
    parameters = {"type": ["object", "null"], "properties": {"a": {"type": "null"}}}
    function = {"name": "f", "parameters": parameters}
    tools = [{"type": "function", "function": function}]
    found = asked(served, QUESTION, tools=tools, tool_choice="required", parallel_tool_calls=False)
    (call,) = found["choices"][0]["message"]["tool_calls"]
    assert isinstance(json.loads(call["function"]["arguments"]), dict)


def test_functions_have_bounds_together(served: Served) -> None:
    function = {"name": "f", "parameters": {"properties": {"a": {"description": "x" * 60_000}}}}
    tools = [{"type": "function", "function": function}] * 9
    error = served.error("/v1/chat/completions", {"messages": [QUESTION], "tools": tools}, 400)
    assert (error["param"], "fewer functions" in error["message"]) == ("tools", True)


def test_responses_bring_calls_as_items(client: openai.OpenAI) -> None:
    tool = {"type": "function", **WEATHER}
    answer = client.responses.create(model="", input="Rome?", tools=[tool], tool_choice="required")
    calls = [item for item in answer.output if item.type == "function_call"]
    assert calls
    for call in calls:
        assert call.name == "weather"
        check_arguments(call.arguments)


@pytest.fixture
def claude(served: Served) -> Iterator[anthropic.Anthropic]:
    """Anthropic's client."""
    with anthropic.Anthropic(base_url=served.url(""), api_key="none", max_retries=0) as found:
        yield found


def test_messages_bring_calls_as_blocks(claude: anthropic.Anthropic) -> None:
    tool = {"name": "weather", "input_schema": PARAMETERS}
    options: dict[str, Any] = {"model": "", "max_tokens": 80, "messages": [QUESTION]}
    options |= {"tools": [tool], "tool_choice": {"type": "any"}}
    whole = claude.messages.create(**options)
    with claude.messages.stream(**options) as stream:
        streamed = stream.get_final_message()
    for message in (whole, streamed):
        assert message.stop_reason == "tool_use"
        assert message.content
        for block in message.content:
            assert block.type == "tool_use"
            check_arguments(json.dumps(block.input))


def test_a_result_goes_back_as_a_block(claude: anthropic.Anthropic) -> None:
    tool = {"name": "weather", "input_schema": PARAMETERS}
    options: dict[str, Any] = {"model": "", "max_tokens": 80, "tools": [tool]}
    choice = {"type": "tool", "name": "weather", "disable_parallel_tool_use": True}
    question = {**QUESTION, "content": "Is it warm in Paris?"}
    first = claude.messages.create(**options, messages=[question], tool_choice=choice)
    (block,) = first.content
    result = {"type": "tool_result", "tool_use_id": block.id, "content": "warm"}
    turns = [
        question,
        {"role": "assistant", "content": first.content},
        {"role": "user", "content": [result]},
    ]
    auto = {"type": "auto", "disable_parallel_tool_use": True}
    second = claude.messages.create(**options, messages=turns, tool_choice=auto)
    read = first.usage.input_tokens + first.usage.cache_read_input_tokens
    assert second.usage.cache_read_input_tokens >= read + first.usage.output_tokens - 2
