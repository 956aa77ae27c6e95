"""Calls of functions and schemas of a started server, by the official clients."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.support.server.tool_requests import (
    CLOCK,
    PARAMETERS,
    PERSON,
    QUESTION,
    TOOL,
    WEATHER,
    check_arguments,
)

if TYPE_CHECKING:
    import anthropic
    import openai


def test_a_required_call_is_returned_as_a_call(client: openai.OpenAI) -> None:
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


def test_a_stream_gives_the_same_call_in_pieces(client: openai.OpenAI) -> None:
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


def test_responses_return_calls_as_items(client: openai.OpenAI) -> None:
    tool = {"type": "function", **WEATHER}
    answer = client.responses.create(model="", input="Rome?", tools=[tool], tool_choice="required")
    calls = [item for item in answer.output if item.type == "function_call"]
    assert calls
    for call in calls:
        assert call.name == "weather"
        check_arguments(call.arguments)


def test_messages_return_calls_as_blocks(claude: anthropic.Anthropic) -> None:
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


def test_a_tool_result_is_accepted_as_a_block(claude: anthropic.Anthropic) -> None:
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
