"""`/v1/responses` of a started server, by the official client."""

from __future__ import annotations

import json
import typing
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import openai

    from tests.support.server.served import Served

ASK: dict[str, Any] = {
    "model": "",
    "input": "Tell me a story.",
    "temperature": 0,
    "max_output_tokens": 12,
}
END_ID = 1  # of Pebble


def test_an_answer_equals_the_chat_completions_apis(client: openai.OpenAI, served: Served) -> None:
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


def test_a_stream_gives_the_same_response_in_order(client: openai.OpenAI) -> None:
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


def test_a_cut_items_status_says_so(client: openai.OpenAI) -> None:
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
    from openai.types.responses import Response, ResponseStreamEvent

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


def test_a_response_has_decoding_figures(client: openai.OpenAI) -> None:
    asked = client.responses.create(**{**ASK, "temperature": 0.4, "top_p": 0.5})
    assert (asked.temperature, asked.top_p) == (0.4, 0.5)
    advised = client.responses.create(model="", input="Hello", max_output_tokens=2)
    assert advised.temperature == 0  # as Pebble's makers advise


def test_log_probabilities_are_returned_on_request(client: openai.OpenAI) -> None:
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
