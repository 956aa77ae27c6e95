"""Calls of functions and schemas on real models: in their own form, and as plain JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import MISSING
from tests.support.server.served import Served, ServedProcess
from tests.support.server.tool_requests import PERSON, QUESTION, asked, check_arguments
from tests.tools import real_models

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module", params=["smollm2", "qwen2.5-coder"])
def real(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    path = real_models.find(request.param)
    if path is None:
        pytest.skip(MISSING + request.param)
    process = ServedProcess(tmp_path_factory.mktemp("real"), "--model", str(path), threads=2)
    yield process
    process.close()


def message_of(answer: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = answer["choices"][0]["message"]
    return found


def test_a_call_and_its_result_form_a_conversation(real: Served) -> None:
    options: dict[str, Any] = {"parallel_tool_calls": False, "max_tokens": 100}
    first = asked(real, QUESTION, tool_choice="required", **options)
    (call,) = message_of(first)["tool_calls"]
    check_arguments(call["function"]["arguments"])
    result = {"role": "tool", "tool_call_id": call["id"], "content": "Sunny, 31 degrees."}
    second = asked(real, QUESTION, message_of(first), result, **options)
    read = first["usage"]["prompt_tokens"] + first["usage"]["completion_tokens"]
    assert second["timings"]["cache_n"] >= read - 2
    for again in message_of(second).get("tool_calls", ()):
        check_arguments(again["function"]["arguments"])


def test_calls_are_the_same_with_and_without_drafts(real: Served) -> None:
    options = {"temperature": 0.8, "seed": 5, "max_tokens": 100}
    texts = [
        [call["function"] for call in message_of(answer).get("tool_calls", ())]
        or message_of(answer)["content"]
        for answer in (
            asked(real, QUESTION, **options),
            asked(real, QUESTION, **options, medusa={"drafts": False}),
        )
    ]
    assert texts[0] == texts[1]


def test_answers_match_their_schema(real: Served) -> None:
    schema = {"type": "json_schema", "json_schema": {"schema": PERSON}}
    for question in ("Who is Ann?", "Invent a person.", "Tell me a story."):
        answer = real.chat(question, response_format=schema, max_tokens=60)
        person = json.loads(message_of(answer)["content"])
        assert set(person) == {"name", "old"}
