"""Completions and models of a started server, by the official client."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import openai

MODEL = "llama-pebble"
PROMPT = "Once upon a time"


def test_a_completion_continues_a_text(client: openai.OpenAI) -> None:
    options = {"model": MODEL, "prompt": PROMPT, "temperature": 0, "max_tokens": 20}
    whole = client.completions.create(**options)
    streamed = "".join(
        chunk.choices[0].text for chunk in client.completions.create(**options, stream=True)
    )
    assert whole.choices[0].text == streamed
    assert whole.choices[0].finish_reason == "length"
    assert whole.usage.completion_tokens == 20


def test_without_max_tokens_a_completion_has_sixteen_tokens(client: openai.OpenAI) -> None:
    reply = client.completions.create(model=MODEL, prompt=PROMPT, temperature=0)
    assert reply.usage.completion_tokens <= 16


def test_the_loaded_model_is_listed_under_its_name(client: openai.OpenAI) -> None:
    listed = client.models.list().data
    assert MODEL in [model.id for model in listed]
    assert client.models.retrieve(MODEL).id == MODEL
