"""`/v1/messages` of a started server, and how its requests are read."""

import json
from typing import Any

import pytest

from medusa_core.messages import Role
from medusa_core.models.text.answer_grammar import ToolMode
from medusa_core.server.api_error import ApiError
from medusa_core.server.chat import ChatRequest
from medusa_core.server.dialects.anthropic_requests import (
    CountBody,
    MessagesBody,
    parse_messages,
)
from medusa_core.server.records import validate
from tests.support.server.served import Served

ASK: dict[str, Any] = {
    "model": "",
    "max_tokens": 12,
    "messages": [{"role": "user", "content": "Tell me a story."}],
}
COLD = {"temperature": 0}  # the client doesn't know it any more
TOOL = {"name": "weather", "description": "", "input_schema": {"type": "object", "properties": {}}}


def read(**fields: Any) -> ChatRequest:
    return parse_messages(validate(MessagesBody, {**ASK, **fields}))


def test_a_wrong_field_is_refused_in_anthropics_format(served: Served) -> None:
    reply = served.post("/v1/messages", {**ASK, "thinking": {"type": "deep"}})
    body = reply.json()
    assert (reply.status_code, body["type"]) == (400, "error")
    assert body["error"]["type"] == "invalid_request_error"
    assert "thinking" in body["error"]["message"]


def test_other_errors_have_anthropics_format_too(guarded: Served) -> None:
    missing = guarded.post("/v1/messages", {**ASK, "model": "other"})
    assert (missing.status_code, missing.json()["error"]["type"]) == (404, "not_found_error")
    unknown = guarded.post("/v1/messages", ASK, **{"x-api-key": ""})
    assert (unknown.status_code, unknown.json()["error"]["type"]) == (401, "authentication_error")
    assert guarded.post("/v1/messages", {**ASK, **COLD}).json()["usage"]["output_tokens"] == 12


def test_messages_of_blocks_are_read() -> None:
    chat = read(
        system=[{"type": "text", "text": "Be brief."}],
        tools=[TOOL],
        tool_choice={"type": "auto", "disable_parallel_tool_use": True},
        thinking={"type": "disabled"},
        messages=[
            {"role": "user", "content": [{"type": "text", "text": "rain?"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": ""},
                    {"type": "text", "text": "Let me see."},
                    {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Ulm"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": "wet"},
                    {"type": "text", "text": "So?"},
                ],
            },
        ],
    )
    roles = [message.role for message in chat.messages]
    assert roles == [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL, Role.USER]
    _, _, answer, result, _ = chat.messages
    assert answer.text == "Let me see."
    assert answer.tool_calls[0].arguments == '{"city": "Ulm"}'
    assert (result.text, result.tool_name, result.call_id) == ("wet", "weather", "t1")
    assert chat.tool_choice == (ToolMode.AUTO, "", False)
    assert chat.settings.thinks is False


def test_a_tool_result_alone_is_a_turn() -> None:
    turn = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": ""}]}
    chat = read(messages=[ASK["messages"][0], turn])
    assert [message.role for message in chat.messages] == [Role.USER, Role.TOOL]


def test_counting_tokens_needs_no_max_tokens() -> None:
    body = {**ASK, "max_tokens": None}
    assert parse_messages(validate(CountBody, body)).messages
    with pytest.raises(ApiError, match="max_tokens"):
        validate(MessagesBody, body)


def test_system_messages_among_the_turns_keep_their_place(served: Served) -> None:
    user, answer = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}
    reminder = {"role": "system", "content": [{"type": "text", "text": "Be brief."}]}
    for messages in ([user, answer, reminder, user], [user, reminder], [reminder]):
        asked = {**ASK, "messages": messages}
        answered = served.post("/v1/messages", asked)
        counted = served.post("/v1/messages/count_tokens", asked)
        assert (answered.status_code, counted.status_code) == (200, 200)
        usage = answered.json()["usage"]
        num_read = usage["input_tokens"] + usage.get("cache_read_input_tokens", 0)
        assert counted.json()["input_tokens"] == num_read > 3
    chat = read(system="Be kind.", messages=[user, answer, reminder, user])
    assert [(turn.role, turn.text) for turn in chat.messages] == [
        (Role.SYSTEM, "Be kind."),
        (Role.USER, "Hi"),
        (Role.ASSISTANT, "Hello"),
        (Role.SYSTEM, "Be brief."),
        (Role.USER, "Hi"),
    ]


def test_server_tools_of_anthropic_are_omitted_and_named(served: Served) -> None:
    search = {"type": "web_search_20250305", "name": "web_search"}
    reply = served.post("/v1/messages", {**ASK, "max_tokens": 1, "tools": [search, TOOL]})
    assert reply.status_code == 200, reply.text
    assert "web_search_20250305 web_search" in reply.headers["x-medusa-warning"]
    chat = read(tools=[search, TOOL])
    assert [json.loads(tool)["name"] for tool in chat.tools] == [TOOL["name"]]


def test_blocks_with_text_are_read_and_others_become_notes() -> None:
    document = {"type": "document", "title": "Rain", "source": {"type": "text", "data": "It pours"}}
    parts = {"type": "content", "content": [{"type": "text", "text": "and pours"}]}
    found = {"type": "search_result", "source": "https://a.example", "title": "Found"}
    found["content"] = [{"type": "text", "text": "Sun"}]
    result = [
        {"type": "text", "text": "seen "},
        {"type": "image", "source": {"type": "base64", "data": "AA=="}},
        {"type": "tool_reference", "tool_name": "weather"},
        found,
    ]
    answer = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
        {"type": "text", "text": "Sunny."},
        {"type": "tool_use", "id": "t1", "name": "weather", "input": {}},
    ]
    chat = read(
        messages=[
            {"role": "user", "content": [document, {"type": "document", "source": parts}]},
            {"role": "assistant", "content": answer},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t1", "content": result}],
            },
        ]
    )
    said, answered, given = (message.text for message in chat.messages)
    assert said == "Rain\nIt pours\nand pours\n"
    assert answered == "Sunny."
    assert given == "seen [image][tool: weather]Found\nhttps://a.example\nSun\n"


def test_a_document_file_is_refused_by_its_position() -> None:
    source = {"type": "base64", "media_type": "application/pdf", "data": "AA=="}
    content = [{"type": "document", "source": source}]
    with pytest.raises(ApiError) as caught:
        read(messages=[{"role": "user", "content": content}])
    assert caught.value.param == "messages[0].content[0].source.type"
