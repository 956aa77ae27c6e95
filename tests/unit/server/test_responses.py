"""`/v1/responses` in a started server, by the official client."""

import json
import typing
from typing import Any

import openai
import pytest
from openai.types.responses import Response, ResponseStreamEvent

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


def test_an_answer_is_the_one_of_the_other_api(client: openai.OpenAI, served: Served) -> None:
    answer = client.responses.create(**ASK)
    expected = served.chat("Tell me a story.", max_tokens=12)
    assert answer.output_text == expected["choices"][0]["message"]["content"]
    assert answer.status == "incomplete"
    assert answer.incomplete_details is not None
    assert answer.incomplete_details.reason == "max_output_tokens"
    assert answer.usage is not None
    assert answer.usage.output_tokens == 12
    assert answer.usage.input_tokens == expected["usage"]["prompt_tokens"]
    assert (answer.store, answer.previous_response_id, answer.temperature) == (False, None, 0)
    assert answer.model_extra is not None
    assert answer.model_extra["timings"]["predicted_n"] == 12


def test_a_stream_brings_the_same_response_in_order(client: openai.OpenAI) -> None:
    whole = client.responses.create(**ASK)
    with client.responses.stream(**ASK) as stream:
        events = list(stream)
    assert events[-1].type == "response.incomplete"
    assert events[-1].response.output_text == whole.output_text
    assert [event.sequence_number for event in events] == list(range(len(events)))
    kinds = [event.type for event in events]
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == whole.output_text
    assert [kind for kind in kinds if kind != "response.output_text.delta"] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.incomplete",
    ]


def test_an_answer_that_ends_by_itself_is_complete(client: openai.OpenAI) -> None:
    with client.responses.stream(**{**ASK, "max_output_tokens": 800}) as stream:
        answer = stream.get_final_response()
    assert answer.status == answer.output[0].status == "completed"
    assert answer.incomplete_details is None
    assert answer.output_text


def test_the_item_in_which_an_answer_is_cut_says_so(client: openai.OpenAI) -> None:
    assert client.responses.create(**ASK).output[0].status == "incomplete"


def test_an_answer_without_text_has_an_empty_message(client: openai.OpenAI) -> None:
    ends_at_once = {"logit_bias": {str(END_ID): 100}}
    answer = client.responses.create(**ASK, extra_body=ends_at_once)
    assert (answer.status, answer.output_text) == ("completed", "")
    assert [item.type for item in answer.output] == ["message"]


@pytest.mark.parametrize("more", [{}, {"top_logprobs": 2}])
def test_responses_and_events_lack_nothing_that_typed_clients_need(
    served: Served, more: dict[str, Any]
) -> None:
    Response.model_validate(served.post("/v1/responses", {**ASK, **more}).json())
    reply = served.post("/v1/responses", {**ASK, **more, "stream": True})
    lines = [line for line in reply.text.splitlines() if line.startswith("data: ")]
    (events, *_) = typing.get_args(ResponseStreamEvent)
    models = {
        typing.get_args(model.model_fields["type"].annotation)[0]: model
        for model in typing.get_args(events)
    }
    for line in lines:
        event = json.loads(line.removeprefix("data: "))
        models[event["type"]].model_validate(event)
    assert len(lines) > 8


def test_a_conversation_that_is_too_long_is_cut_only_where_that_is_wanted(served: Served) -> None:
    turns = [("user", "cat " * 600), ("assistant", "Yes."), ("user", "dog " * 600)]
    long = {**ASK, "input": [{"role": role, "content": text} for role, text in turns]}
    assert "1,024" in served.error("/v1/responses", long, 400)["message"]
    reply = served.post("/v1/responses", {**long, "truncation": "auto"}).json()
    assert 600 < reply["usage"]["input_tokens"] < 1000
    assert reply["truncation"] == "auto"


def test_a_response_says_how_it_was_decoded(client: openai.OpenAI) -> None:
    asked = client.responses.create(**{**ASK, "temperature": 0.4, "top_p": 0.5})
    assert (asked.temperature, asked.top_p) == (0.4, 0.5)
    advised = client.responses.create(model="", input="Hello", max_output_tokens=2)
    assert advised.temperature == 0  # as Pebble's makers advise


def test_probabilities_come_where_they_are_wanted(client: openai.OpenAI) -> None:
    answer = client.responses.create(
        **ASK, top_logprobs=2, include=["message.output_text.logprobs"]
    )
    (message,) = answer.output
    assert message.type == "message"
    (content,) = message.content
    assert content.type == "output_text"
    assert content.logprobs is not None
    assert "".join(token.token for token in content.logprobs) == content.text
    assert all(len(token.top_logprobs or []) == 2 for token in content.logprobs)


def test_a_wrong_field_is_refused_in_openais_form(served: Served) -> None:
    error = served.error("/v1/responses", {**ASK, "background": True}, 400)
    assert (error["type"], error["param"]) == ("invalid_request_error", "background")


def test_items_are_turns() -> None:
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
    assert messages[2].content == "Let me see."
    assert messages[2].tool_calls[0].name == "weather"
    assert (messages[3].content, messages[3].tool_name) == ("wet", "weather")
    assert request.chat.settings.thinks is False


def test_tools_that_nobody_here_runs_are_left_out_and_named(served: Served) -> None:
    hosted = [{"type": "web_search"}, {"type": "namespace", "name": "agents", "tools": []}]
    body = {"input": "Hi", "max_output_tokens": 4, "tools": hosted, "metadata": {"mine": "1"}}
    response = served.post("/v1/responses", body).json()
    assert response["status"] in ("completed", "incomplete")
    assert response["metadata"] == {
        "mine": "1",
        "medusa_warning": "Not run here, so left out: web_search, namespace agents",
    }
