"""Calls in forms that are learned from templates, enforced while a model decodes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.server.fixtures import TEMPLATED
from tests.support.server.served import Served, events_of
from tests.support.server.tool_requests import CLOCK, QUESTION, TOOL, check_arguments


def message_of(answer: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = answer["choices"][0]["message"]
    return found


@pytest.mark.parametrize("name", TEMPLATED)
def test_a_call_in_a_learned_format_matches_its_schema_and_can_be_returned(
    guarded: Served, name: str
) -> None:
    options = {"model": name, "temperature": 0, "max_tokens": 160, "tools": [TOOL, CLOCK]}

    def asked(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
        reply = guarded.post("/v1/chat/completions", {"messages": messages, **options, **fields})
        assert reply.status_code == 200, reply.text
        found: dict[str, Any] = reply.json()
        return found

    named = {"type": "function", "function": {"name": "weather"}}
    first = asked(QUESTION, tool_choice=named, parallel_tool_calls=False)
    message = message_of(first)
    assert first["choices"][0]["finish_reason"] == "tool_calls"
    assert message["content"] is None, message
    (call,) = message["tool_calls"]
    check_arguments(call["function"]["arguments"])
    result = {"role": "tool", "tool_call_id": call["id"], "content": "Sunny."}
    second = message_of(asked(QUESTION, message, result, tool_choice="auto"))
    for again in second.get("tool_calls", ()):
        json.loads(again["function"]["arguments"])
    body = {"messages": [QUESTION], **options, "tool_choice": named, "stream": True}
    reply = guarded.post("/v1/chat/completions", body)
    deltas = [
        one["function"]["arguments"]
        for event in events_of(reply.text.splitlines())
        if event["choices"]
        for one in event["choices"][0]["delta"].get("tool_calls", ())
        if one["index"] == 0 and "arguments" in one["function"]
    ]
    check_arguments("".join(deltas))
