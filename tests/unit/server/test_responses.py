"""`/v1/responses` of a started server, and how its requests are read."""

from typing import Any

from medusa_core.messages import Role
from medusa_core.server.dialects.openai_response_requests import (
    ResponseBody,
    parse_response_request,
)
from medusa_core.server.records import validate
from tests.support.server.served import Served

ASK: dict[str, Any] = {
    "model": "",
    "input": "Tell me a story.",
    "temperature": 0,
    "max_output_tokens": 12,
}
END_ID = 1  # of Pebble


def test_a_conversation_that_is_too_long_is_truncated_only_on_request(served: Served) -> None:
    turns = [("user", "cat " * 600), ("assistant", "Yes."), ("user", "dog " * 600)]
    long = {**ASK, "input": [{"role": role, "content": text} for role, text in turns]}
    assert "1,024" in served.error("/v1/responses", long, 400)["message"]
    reply = served.post("/v1/responses", {**long, "truncation": "auto"}).json()
    assert 600 < reply["usage"]["input_tokens"] < 1000
    assert reply["truncation"] == "auto"


def test_a_wrong_field_is_refused_in_openais_format(served: Served) -> None:
    error = served.error("/v1/responses", {**ASK, "background": True}, 400)
    assert (error["type"], error["param"]) == ("invalid_request_error", "background")


def test_input_items_become_turns() -> None:
    body = {
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "rain?"}]},
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Let me see."}],
            },
            {
                "type": "function_call",
                "call_id": "c1",
                "name": "weather",
                "arguments": '{"city": "Ulm"}',
            },
            {"type": "function_call_output", "call_id": "c1", "output": "wet"},
        ],
        "reasoning": {"effort": "none"},
    }
    request = parse_response_request(validate(ResponseBody, body))
    messages = request.chat.messages
    roles = [message.role for message in messages]
    assert roles == [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL]
    assert messages[2].text == "Let me see."
    assert messages[2].tool_calls[0].name == "weather"
    assert (messages[3].text, messages[3].tool_name) == ("wet", "weather")
    assert request.chat.settings.thinks is False


def test_hosted_tools_are_omitted_and_named(served: Served) -> None:
    hosted = [{"type": "web_search"}, {"type": "namespace", "name": "agents", "tools": []}]
    body = {"input": "Hi", "max_output_tokens": 4, "tools": hosted, "metadata": {"mine": "1"}}
    response = served.post("/v1/responses", body).json()
    assert response["status"] in ("completed", "incomplete")
    assert response["metadata"] == {
        "mine": "1",
        "medusa_warning": "Not run here, so left out: web_search, namespace agents",
    }
