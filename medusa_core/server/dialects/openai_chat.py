"""`/v1/chat/completions`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from medusa_core.chats.conversation import new_id
from medusa_core.models.text.tool_calls.events import CallDelta, CallStarted
from medusa_core.server.api_error import ApiError, bad_request
from medusa_core.server.chat import (
    AnswerEnd,
    AnswerPart,
    ChatRequest,
    ScoredToken,
    TextDelta,
    ToolMode,
)
from medusa_core.server.choices import ChoiceParts, merged
from medusa_core.server.constraints import read_constraint
from medusa_core.server.context import ServerContext
from medusa_core.server.dialect import DialectSpec
from medusa_core.server.dialects.openai_forms import (
    FINGERPRINT,
    answer_figures,
    chat_logprobs,
    created_now,
    finish_reason,
    input_tokens_json,
    openai_error,
    usage,
)
from medusa_core.server.dialects.openai_messages import (
    read_messages,
    read_schema,
    read_tool_choice,
    read_tools,
    refuse_legacy_functions,
)
from medusa_core.server.fields import Fields
from medusa_core.server.limits import Limits
from medusa_core.server.records import read_record
from medusa_core.server.replies import (
    EventStream,
    JsonReply,
    first_of,
    read_fields,
    server_event,
    while_connected,
)
from medusa_core.server.sampling import read_max_tokens, read_settings, read_stops

_MOST_LOGPROBS = 20
_DONE = "data: [DONE]\n\n"


class ContinuationFields(BaseModel):
    """Fields by which vLLM's clients say that the last message is to be continued.

    Attributes:
        add_generation_prompt: The answer is a message of its own.
        continue_final_message: The answer continues the last message.
    """

    model_config = ConfigDict(extra="ignore", strict=True)

    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None


class ChatWish(NamedTuple):
    """A request of this API.

    Attributes:
        requests: One for each answer that is wanted.
        streams: The answer is wanted as it comes.
        has_usage: A last chunk counts the tokens.
    """

    requests: tuple[ChatRequest, ...]
    streams: bool
    has_usage: bool


@dataclass(slots=True)
class _Choice:
    """One answer as it grows.

    Attributes:
        text: What is said.
        thought: What is thought before it.
        calls: Functions that are called, as JSON objects.
        tokens: With probabilities, where these are asked for.
        end: Its end.
    """

    text: str = ""
    thought: str = ""
    calls: list[dict[str, Any]] = field(default_factory=list)
    tokens: list[ScoredToken] = field(default_factory=list)
    end: AnswerEnd | None = None

    def add(self, part: AnswerPart) -> None:
        """Take a part."""
        if isinstance(part, TextDelta) and part.is_thought:
            self.thought += part.text
        elif isinstance(part, TextDelta):
            self.text += part.text
            self.tokens += part.tokens
        elif isinstance(part, CallStarted):
            self.calls.append(_call_json(part))
        elif isinstance(part, CallDelta):
            self.calls[part.place]["function"]["arguments"] += part.text
        else:
            self.end = part


def _routes(context: ServerContext) -> list[Route]:
    async def completions(http: Request) -> Response:
        wish = read_chat(await read_fields(http, context.limits), context.limits)
        parts = merged([context.answer(http, request) for request in wish.requests])
        head = _Head(wish, context)
        if not wish.streams:
            return JsonReply(await while_connected(http, _whole(head, parts)))
        first, rest = await first_of(http, parts)
        return EventStream(_chunks(head, first, rest), context.limits)

    async def input_tokens(http: Request) -> Response:
        wish = read_chat(await read_fields(http, context.limits), context.limits)
        num_tokens = await while_connected(http, context.input_tokens(wish.requests[0]))
        return JsonReply(input_tokens_json(num_tokens))

    return [
        Route("/v1/chat/completions", completions, methods=["POST"]),
        Route("/v1/chat/completions/input_tokens", input_tokens, methods=["POST"]),
    ]


def read_chat(fields: Fields, limits: Limits) -> ChatWish:
    """What a request of this API wants.

    Raises:
        ApiError: It can't be read.
    """
    refuse_legacy_functions(fields)
    max_tokens = read_max_tokens(fields, limits, "max_completion_tokens", "max_tokens", "n_predict")
    settings, open_settings = read_settings(
        fields, limits, max_tokens, read_stops(fields, limits, "stop")
    )
    _check_continuation(fields)
    offered = read_tools(fields)
    tools, choice = read_tool_choice(fields, offered.functions)
    constraint = read_constraint(fields, read_schema(fields))
    request = ChatRequest(
        model=fields.text("model"),
        messages=read_messages(fields, limits),
        settings=settings,
        open_settings=open_settings,
        tools=() if choice.mode is ToolMode.NONE else tools,
        tool_choice=choice,
        schema=constraint.schema,
        grammar=constraint.grammar,
        num_logprobs=_num_logprobs(fields),
        warning=offered.warning,
    )
    streams = fields.flag("stream")
    options = fields.record("stream_options") or Fields({})
    return ChatWish(
        seeded(request, fields.whole("n", 1, limits.most_choices) or 1),
        streams,
        streams and options.flag("include_usage"),
    )


def _check_continuation(fields: Fields) -> None:
    """Refuse a message that is both to be continued and to be followed by another one.

    Raises:
        ApiError: The request wants both.
    """
    record = read_record(ContinuationFields, fields)
    if record.add_generation_prompt and record.continue_final_message:
        raise bad_request(
            "`add_generation_prompt` and `continue_final_message` can't both be true.",
            "continue_final_message",
        )


def seeded(request: ChatRequest, count: int) -> tuple[ChatRequest, ...]:
    """The same request several times, each with a seed of its own."""
    settings = request.settings
    return tuple(
        replace(request, settings=replace(settings, seed=settings.seed + place))
        for place in range(count)
    )


def _num_logprobs(fields: Fields) -> int:
    wanted = fields.flag("logprobs")
    count = fields.whole("top_logprobs", 0, _MOST_LOGPROBS)
    if count and not wanted:
        raise fields.invalid("logprobs", "true where `top_logprobs` is given")
    return (count or 0) if wanted else -1


class _Head:
    """What all replies to one request have in common."""

    def __init__(self, wish: ChatWish, context: ServerContext) -> None:
        self.wish = wish
        self.is_scored = wish.requests[0].num_logprobs >= 0
        self._context = context
        self._id, self._created = f"chatcmpl-{new_id()}", created_now()

    def as_json(self, kind: str) -> dict[str, Any]:
        """The fields at the beginning of an object."""
        loaded = self._context.models.loaded
        model = self.wish.requests[0].model if loaded is None else loaded.model_id
        return {
            "id": self._id,
            "object": kind,
            "created": self._created,
            "model": model,
            "system_fingerprint": FINGERPRINT,
        }


async def _whole(head: _Head, parts: ChoiceParts) -> Mapping[str, Any]:
    """The answers in one object."""
    choices = [_Choice() for _ in head.wish.requests]
    async with aclosing(parts) as arriving:
        async for place, part in arriving:
            choices[place].add(part)
    ends = [choice.end for choice in choices if choice.end is not None]
    return {
        **head.as_json("chat.completion"),
        "choices": [
            _choice_json(place, choice, head.is_scored) for place, choice in enumerate(choices)
        ],
        "usage": usage(ends),
        **answer_figures(ends[0]),
    }


def _choice_json(place: int, choice: _Choice, is_scored: bool) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": choice.text, "refusal": None}
    if choice.thought:
        message["reasoning_content"] = choice.thought
    if choice.calls:
        message |= {"content": choice.text or None, "tool_calls": choice.calls}
    assert choice.end is not None  # the parts of an answer close with it
    return {
        "index": place,
        "message": message,
        "logprobs": chat_logprobs(choice.tokens) if is_scored else None,
        "finish_reason": finish_reason(choice.end),
    }


async def _chunks(
    head: _Head, first: tuple[int, AnswerPart], rest: ChoiceParts
) -> AsyncGenerator[str, None]:
    """The answers as events, each as it comes."""
    begun: set[int] = set()
    ends: dict[int, AnswerEnd] = {}
    try:
        async with aclosing(rest) as parts:
            for event in _events(head, first, begun, ends):
                yield event
            async for item in parts:
                for event in _events(head, item, begun, ends):
                    yield event
    except ApiError as error:
        yield server_event(openai_error(error))
        return
    last = [ends[place] for place in sorted(ends)]
    if head.wish.has_usage:
        counted = {"choices": [], "usage": usage(last), **answer_figures(last[0])}
        yield server_event({**head.as_json("chat.completion.chunk"), **counted})
    yield _DONE


def _events(
    head: _Head, item: tuple[int, AnswerPart], begun: set[int], ends: dict[int, AnswerEnd]
) -> list[str]:
    """The events that a part of an answer becomes."""
    place, part = item
    deltas: list[dict[str, Any]] = []
    if place not in begun:
        begun.add(place)
        deltas.append({"delta": {"role": "assistant", "content": ""}, "finish_reason": None})
    if isinstance(part, AnswerEnd):
        ends[place] = part
        is_last = len(ends) == len(head.wish.requests)
        deltas.append({"delta": {}, "finish_reason": finish_reason(part)})
        extra = answer_figures(ends[min(ends)]) if is_last else {}
    else:
        deltas.append(_delta(part, head.is_scored))
        extra = {}
    chunk = head.as_json("chat.completion.chunk")
    nothing = {"usage": None} if head.wish.has_usage else {}
    return [
        server_event(
            {
                **chunk,
                "choices": [{"index": place, "logprobs": None, **delta}],
                **nothing,
                **(extra if delta is deltas[-1] else {}),
            }
        )
        for delta in deltas
    ]


def _delta(part: TextDelta | CallStarted | CallDelta, is_scored: bool) -> dict[str, Any]:
    delta: dict[str, Any]
    if isinstance(part, CallStarted):
        delta = {"tool_calls": [{"index": part.place, **_call_json(part)}]}
    elif isinstance(part, CallDelta):
        delta = {"tool_calls": [{"index": part.place, "function": {"arguments": part.text}}]}
    else:
        delta = {"reasoning_content" if part.is_thought else "content": part.text}
    found: dict[str, Any] = {"delta": delta, "finish_reason": None}
    if is_scored and isinstance(part, TextDelta) and not part.is_thought:
        found["logprobs"] = chat_logprobs(part.tokens)
    return found


def _call_json(call: CallStarted) -> dict[str, Any]:
    return {
        "id": call.call_id,
        "type": "function",
        "function": {"name": call.name, "arguments": ""},
    }


SPEC = DialectSpec("openai_chat", ("/v1/chat/",), _routes, openai_error)
