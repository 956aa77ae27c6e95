"""`/v1/messages` of a started server, by the official client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import anthropic

    from tests.support.server.served import Served

ASK: dict[str, Any] = {
    "model": "",
    "max_tokens": 12,
    "messages": [{"role": "user", "content": "Tell me a story."}],
}
COLD = {"temperature": 0}  # the client doesn't know it any more


@pytest.fixture
def messages(claude: anthropic.Anthropic) -> anthropic.resources.Messages:
    """The official client's messages."""
    return claude.messages


def test_an_answer_equals_the_openai_apis(
    messages: anthropic.resources.Messages, served: Served
) -> None:
    answer = messages.create(**ASK, extra_body=COLD)
    assert answer.content[0].type == "text"
    expected = served.chat("Tell me a story.", max_tokens=12)
    assert answer.content[0].text == expected["choices"][0]["message"]["content"]
    assert (answer.role, answer.stop_reason, answer.stop_sequence) == (
        "assistant",
        "max_tokens",
        None,
    )
    assert answer.usage.output_tokens == 12
    read_tokens = answer.usage.input_tokens + (answer.usage.cache_read_input_tokens or 0)
    assert read_tokens == expected["usage"]["prompt_tokens"]
    assert answer.model == expected["model"]
    assert not answer.model_extra


def test_a_stream_gives_the_same_message(messages: anthropic.resources.Messages) -> None:
    whole = messages.create(**ASK, extra_body=COLD)
    with messages.stream(**ASK, extra_body=COLD) as stream:
        kinds = [event.type for event in stream]
        streamed = stream.get_final_message()
    (block,), (expected,) = streamed.content, whole.content
    assert block.type == expected.type == "text"
    assert block.text == expected.text
    assert (streamed.stop_reason, streamed.usage.output_tokens) == ("max_tokens", 12)
    assert kinds[0] == "message_start"
    assert kinds[-2:] == ["message_delta", "message_stop"]
    assert not streamed.model_extra
    assert kinds.index("content_block_start") < kinds.index("content_block_delta")
    assert kinds.index("content_block_stop") > kinds.index("content_block_delta")


def test_the_start_of_a_stream_counts_input_tokens(messages: anthropic.resources.Messages) -> None:
    counted = messages.count_tokens(model="", messages=ASK["messages"])
    with messages.stream(**ASK, extra_body=COLD) as stream:
        start = next(iter(stream))
    assert start.type == "message_start"
    assert start.message.usage.input_tokens == counted.input_tokens > 4


def test_a_stop_sequence_ends_an_answer_and_is_named(
    messages: anthropic.resources.Messages,
) -> None:
    text = messages.create(**{**ASK, "max_tokens": 40}, extra_body=COLD).content[0]
    assert text.type == "text"
    stop = text.text.split()[4]
    answer = messages.create(**{**ASK, "max_tokens": 40}, extra_body=COLD, stop_sequences=[stop])
    assert (answer.stop_reason, answer.stop_sequence) == ("stop_sequence", stop)
    assert answer.content[0].type == "text"
    assert stop not in answer.content[0].text


def test_a_prefilled_answer_is_continued(messages: anthropic.resources.Messages) -> None:
    whole = messages.create(**ASK, extra_body=COLD).content[0]
    assert whole.type == "text"
    beginning = " ".join(whole.text.split()[:4])
    begun = [*ASK["messages"], {"role": "assistant", "content": beginning}]
    rest = messages.create(**{**ASK, "messages": begun}, extra_body=COLD).content[0]
    assert rest.type == "text"
    assert (beginning + rest.text).startswith(whole.text)
