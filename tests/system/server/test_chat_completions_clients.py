"""`/v1/chat/completions` of a started server, by the official client."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import openai

MODEL = "llama-pebble"
QUESTION = [{"role": "user", "content": "Write a short story about a cat."}]
HELLO = [{"role": "user", "content": "Hello there"}]


def test_the_official_client_gets_an_answer(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model=MODEL, messages=HELLO, temperature=0)
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_a_streamed_answer_equals_the_whole_one(client: openai.OpenAI) -> None:
    options = {"model": MODEL, "messages": QUESTION, "temperature": 0, "max_tokens": 60}
    whole = client.chat.completions.create(**options)
    chunks = list(client.chat.completions.create(**options, stream=True))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert text == whole.choices[0].message.content
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in chunks][-1] == "length"
    assert len({chunk.id for chunk in chunks}) == 1


def test_the_usage_chunk_is_sent_only_on_request(client: openai.OpenAI) -> None:
    options = {"model": MODEL, "messages": HELLO, "max_tokens": 5, "stream": True}
    plain = list(client.chat.completions.create(**options))
    counted = list(
        client.chat.completions.create(**options, stream_options={"include_usage": True})
    )
    assert all(chunk.choices for chunk in plain)
    assert counted[-1].choices == []
    assert counted[-1].usage.completion_tokens == 5
    assert all(chunk.usage is None for chunk in counted[:-1])


def test_one_seed_gives_one_text_and_another_seed_another(client: openai.OpenAI) -> None:
    def answer(seed: int) -> str:
        reply = client.chat.completions.create(
            model=MODEL, messages=QUESTION, temperature=1.2, seed=seed, max_tokens=30
        )
        return reply.choices[0].message.content

    assert answer(5) == answer(5)
    assert len({answer(seed) for seed in range(4)}) > 1


def test_several_answers_have_their_indices(client: openai.OpenAI) -> None:
    options = {"model": MODEL, "messages": QUESTION, "n": 3, "seed": 2, "max_tokens": 20}
    whole = client.chat.completions.create(**options, temperature=1.0)
    texts = [choice.message.content for choice in whole.choices]
    assert [choice.index for choice in whole.choices] == [0, 1, 2]
    assert len(set(texts)) == 3
    streamed = ["", "", ""]
    for chunk in client.chat.completions.create(**options, temperature=1.0, stream=True):
        streamed[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
    assert streamed == texts
