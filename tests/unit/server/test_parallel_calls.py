"""Several calls of functions in one answer, in the forms of all APIs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from medusa_core.chats.tool_calls.events import CallDelta, CallStarted
from medusa_core.messages import ChatMessage, GenerateSettings, Role
from medusa_core.server.chat import AnswerEnd, AnswerPart, ChatRequest, Finish, TextDelta
from medusa_core.server.context import ServerContext
from medusa_core.server.dialects import anthropic_messages, openai_chat, openai_responses
from medusa_core.server.dialects.openai_response_requests import ResponseRequest
from medusa_core.server.reply import Reply
from tests.support.server.answer_steps import done

CALLS = (("a1", "weather", '{"city": "Ulm"}'), ("b2", "clock", "{}"))
PARTS: Sequence[AnswerPart] = (
    TextDelta("Let me look."),
    CallStarted(0, "a1", "weather"),
    CallDelta(0, '{"city": '),
    CallDelta(0, '"Ulm"}'),
    CallStarted(1, "b2", "clock"),
    CallDelta(1, "{}"),
    AnswerEnd(Finish.TOOL_CALLS, "", 1, 0, 1, 0, 0, 0, done("")),
)
CONTEXT = cast(ServerContext, SimpleNamespace(models=SimpleNamespace(loaded_id="m")))
CHAT = ChatRequest(model="m", messages=(ChatMessage(Role.USER, "Hi"),), settings=GenerateSettings())


def events(reply: Reply) -> list[dict[str, Any]]:
    """The events of the answer as a client reads them, which are objects of their own."""
    return [
        json.loads(json.dumps(event, default=str))
        for part in PARTS
        for event in reply.events(0, part)
    ]


def test_chat_completions_number_the_calls() -> None:
    reply = openai_chat._ChatReply((CHAT,), CONTEXT, has_usage=False)
    choices = [event["choices"][0] for event in events(reply)]
    assert choices[-1]["finish_reason"] == "tool_calls"
    found: dict[int, list[str]] = {}
    for choice in choices:
        for call in choice["delta"].get("tool_calls", ()):
            if "id" in call:
                found[call["index"]] = [call["id"], call["function"]["name"], ""]
            found[call["index"]][2] += call["function"]["arguments"]
    assert [tuple(found[number]) for number in (0, 1)] == list(CALLS)
    message = reply.choice(reply.answers[0])["message"]
    assert message["content"] == "Let me look."
    whole = [(one["id"], *one["function"].values()) for one in message["tool_calls"]]
    assert whole == list(CALLS)


def test_messages_have_a_block_for_each_call() -> None:
    reply = anthropic_messages._MessageReply(CHAT, CONTEXT)
    seen = events(reply)
    started = [one for one in seen if one["type"] == "content_block_start"]
    assert [one["index"] for one in started] == [0, 1, 2]
    assert [one["content_block"]["type"] for one in started] == ["text", "tool_use", "tool_use"]
    assert all(one["content_block"]["input"] == {} for one in started[1:])
    stopped = [one["index"] for one in seen if one["type"] == "content_block_stop"]
    assert stopped == [0, 1, 2]
    _, *blocks = reply.whole()["content"]
    assert [(one["id"], one["name"], json.dumps(one["input"])) for one in blocks] == list(CALLS)
    assert reply.whole()["stop_reason"] == "tool_use"


def test_responses_have_an_item_for_each_call() -> None:
    reply = openai_responses._ResponseReply(ResponseRequest(CHAT, True, {}), CONTEXT)
    seen = events(reply)
    added = [one for one in seen if one["type"] == "response.output_item.added"]
    assert [(one["output_index"], one["item"]["type"]) for one in added] == [
        (0, "message"),
        (1, "function_call"),
        (2, "function_call"),
    ]
    ended = [one for one in seen if one["type"] == "response.function_call_arguments.done"]
    assert [(one["output_index"], one["arguments"]) for one in ended] == [
        (1, CALLS[0][2]),
        (2, CALLS[1][2]),
    ]
    _, *items = reply.whole()["output"]
    assert [(one["call_id"], one["name"], one["arguments"]) for one in items] == list(CALLS)
