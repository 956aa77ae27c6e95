"""Prompts of later rounds begin with the tokens of the earlier ones, calls included."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from medusa_core.engine.transcript import Transcript, transcribe
from medusa_core.loading.target import Target
from medusa_core.messages import ChatMessage, Role, ToolCall
from medusa_core.models.text.template import ChatTemplate
from tests.support.models.tool_call_templates import TEMPLATES

CLOCK = json.dumps({"name": "clock", "parameters": {"type": "object", "properties": {}}})
CALL = ToolCall("call12345", "clock", '{"zone": "Bern"}')
ASK = ChatMessage(Role.USER, "What time is it?")
WRITTEN = {
    "hermes": 'Wait.\n<tool_call>\n{"name":  "clock", "arguments": {"zone":"Bern"}}\n</tool_call>',
    "function_tag": 'Wait.<function=clock>{"zone":"Bern"}</function>',
}
RESULT = ChatMessage(Role.TOOL, "12:00", tool_name="clock", call_id="call12345")


def speaking(tiny: Target, name: str) -> Target:
    return replace(tiny, template=ChatTemplate(TEMPLATES[name], {}))


def byte_ids(target: Target, text: str) -> tuple[int, ...]:
    """Tokens of a text, a byte each, as a tokenizer would not write it."""
    ids = {target.tokenizer.bytes_of(token_id): token_id for token_id in range(256 + 20)}
    return tuple(ids[bytes([byte])] for byte in text.encode())


def rendered(target: Target, *messages: ChatMessage) -> Transcript:
    return transcribe(messages, None, target, tools=(CLOCK,))


@pytest.mark.parametrize("name", list(WRITTEN))
def test_the_prompt_of_a_round_begins_with_the_tokens_of_the_round_before(
    tiny: Target, name: str
) -> None:
    target = speaking(tiny, name)
    token_ids = byte_ids(target, WRITTEN[name])
    asked = rendered(target, ASK)
    called = ChatMessage(Role.ASSISTANT, "Wait.", token_ids, (CALL,))
    later = rendered(target, ASK, called, RESULT)
    begun = [*asked.prompt_ids, *token_ids]
    assert later.prompt_ids[: len(begun)] == begun
    assert later.answers == ((len(asked.prompt_ids), len(begun)),)
    assert "12:00" in later.prompt
    # Also later, when the answer has another round and a question follows.
    said = ChatMessage(Role.ASSISTANT, "Noon.", byte_ids(target, "Noon."))
    last = rendered(target, ASK, called, RESULT, said, ChatMessage(Role.USER, "Thanks"))
    begun = [*later.prompt_ids, *said.token_ids]
    assert last.prompt_ids[: len(begun)] == begun


def test_reasoning_between_rounds_keeps_its_tokens_if_the_template_shows_it(tiny: Target) -> None:
    target = speaking(tiny, "hermes")
    token_ids = byte_ids(target, f"<think>\nHm.\n</think>\n\n{WRITTEN['hermes']}")
    called = ChatMessage(Role.ASSISTANT, "<think>Hm.</think>Wait.", token_ids, (CALL,))
    begun = [*rendered(target, ASK).prompt_ids, *token_ids]
    assert rendered(target, ASK, called, RESULT).prompt_ids[: len(begun)] == begun


@pytest.mark.parametrize(
    "other",
    [
        ChatMessage(Role.ASSISTANT, "Wait.", (), (CALL,)),
        ChatMessage(Role.ASSISTANT, "Wait.", (), (CALL._replace(arguments='{"zone": "Rome"}'),)),
        ChatMessage(Role.ASSISTANT, "Stop.", (), (CALL,)),
    ],
)
def test_tokens_that_do_not_write_the_calls_are_not_used(tiny: Target, other: ChatMessage) -> None:
    target = speaking(tiny, "hermes")
    token_ids = byte_ids(target, WRITTEN["hermes"])
    plain = rendered(target, ASK, other, RESULT)
    is_written = other.text == "Wait." and other.tool_calls == (CALL,)
    given = rendered(target, ASK, other._replace(token_ids=token_ids), RESULT)
    assert (given.prompt_ids != plain.prompt_ids) == is_written
    foreign = rendered(target, ASK, other._replace(token_ids=(10**9,)), RESULT)
    assert foreign.prompt_ids == plain.prompt_ids
    assert other.tool_calls[0].arguments in plain.prompt.replace('\\"', '"')
