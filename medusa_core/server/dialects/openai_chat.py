"""`/v1/chat/completions`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from pydantic import Field, model_validator
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from medusa_core.chats.conversation import new_id
from medusa_core.models.text.tool_calls.events import CallDelta, CallStarted
from medusa_core.server.api_error import ApiError
from medusa_core.server.chat import (
    AnswerEnd,
    AnswerPart,
    ChatRequest,
    ScoredToken,
    TextDelta,
    ToolMode,
)
from medusa_core.server.choices import ChoiceParts, merged
from medusa_core.server.constraints import ConstraintRecord, read_constraint
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
    ConversationRecord,
    FormatRecord,
    ToolFields,
    chat_messages,
)
from medusa_core.server.limits import MOST_CHOICES
from medusa_core.server.records import Flag, MaxTokens, Record, Whole, refusal
from medusa_core.server.replies import (
    EventStream,
    JsonReply,
    first_of,
    read_record,
    server_event,
    while_connected,
)
from medusa_core.server.sampling import SamplingRecord, StopStrings

_MOST_LOGPROBS = 20
_DONE = "data: [DONE]\n\n"


class StreamOptions(Record):
    """OpenAI's `stream_options`."""

    include_usage: Flag = False


class ChatBody(SamplingRecord, ConstraintRecord, ConversationRecord, ToolFields):
    """A request of chat completions.

    Attributes:
        n_predict: llama-server's name of `max_tokens`.
        add_generation_prompt: vLLM's field: the answer is a message of its own.
        continue_final_message: vLLM's field: the answer continues the last message.
        functions: OpenAI's form of tools before November 2023; refused, as is `function_call`.
    """

    max_completion_tokens: MaxTokens | None = None
    max_tokens: MaxTokens | None = None
    n_predict: MaxTokens | None = None
    stop: StopStrings = ()
    n: Whole = Field(default=1, ge=1, le=MOST_CHOICES)
    logprobs: Flag = False
    top_logprobs: Whole = Field(default=0, ge=0, le=_MOST_LOGPROBS)
    stream_options: StreamOptions = StreamOptions()
    response_format: FormatRecord | None = None
    add_generation_prompt: Flag = False
    continue_final_message: Flag = False
    functions: Any = None
    function_call: Any = None

    @model_validator(mode="after")
    def _check(self) -> ChatBody:
        for name in ("functions", "function_call"):
            if getattr(self, name) is not None:
                text = "is OpenAI's form of 2023. Send `tools` and `tool_choice` instead"
                raise refusal(text, name)
        if self.top_logprobs and not self.logprobs:
            raise refusal("must be true where `top_logprobs` is given", "logprobs")
        if self.add_generation_prompt and self.continue_final_message:
            text = "and `add_generation_prompt` can't both be true"
            raise refusal(text, "continue_final_message")
        return self


class ParsedChat(NamedTuple):
    """A request of this API.

    Attributes:
        requests: One for each of the `n` answers.
        streams: Whether the answers are streamed.
        has_usage: Whether a last chunk has the token counts.
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
        chat = parse_chat(await read_record(http, context.limits, ChatBody))
        parts = merged([context.answer(http, request) for request in chat.requests])
        head = _Head(chat, context)
        if not chat.streams:
            return JsonReply(await while_connected(http, _whole(head, parts)))
        first, rest = await first_of(http, parts)
        return EventStream(_chunks(head, first, rest), context.limits)

    async def input_tokens(http: Request) -> Response:
        chat = parse_chat(await read_record(http, context.limits, ChatBody))
        num_tokens = await while_connected(http, context.input_tokens(chat.requests[0]))
        return JsonReply(input_tokens_json(num_tokens))

    return [
        Route("/v1/chat/completions", completions, methods=["POST"]),
        Route("/v1/chat/completions/input_tokens", input_tokens, methods=["POST"]),
    ]


def parse_chat(body: ChatBody) -> ParsedChat:
    """Return the requests for answers that a request of this API makes.

    Raises:
        ApiError: A constraint, a tool or a message can't be served.
    """
    stated = (body.max_completion_tokens, body.max_tokens, body.n_predict)
    max_tokens = next((count for count in stated if count is not None), 0)
    settings, open_settings = body.settings(max_tokens, body.stop)
    offered = body.read_tools()
    tools, choice = body.choose_tools(offered.functions)
    response_format = body.response_format
    schema = "" if response_format is None else response_format.schema_text("response_format")
    constraint = read_constraint(body, schema)
    request = ChatRequest(
        model=body.model,
        messages=chat_messages(body.messages),
        settings=settings,
        open_settings=open_settings,
        tools=() if choice.mode is ToolMode.NONE else tools,
        tool_choice=choice,
        schema=constraint.schema,
        grammar=constraint.grammar,
        num_logprobs=body.top_logprobs if body.logprobs else -1,
        warning=offered.warning,
    )
    has_usage = body.stream and body.stream_options.include_usage
    return ParsedChat(seeded(request, body.n), body.stream, has_usage)


def seeded(request: ChatRequest, count: int) -> tuple[ChatRequest, ...]:
    """The same request several times, each with a seed of its own."""
    settings = request.settings
    return tuple(
        replace(request, settings=replace(settings, seed=settings.seed + place))
        for place in range(count)
    )


class _Head:
    """What all replies to one request have in common."""

    def __init__(self, chat: ParsedChat, context: ServerContext) -> None:
        self.chat = chat
        self.is_scored = chat.requests[0].num_logprobs >= 0
        self._context = context
        self._id, self._created = f"chatcmpl-{new_id()}", created_now()

    def as_json(self, kind: str) -> dict[str, Any]:
        """The fields at the beginning of an object."""
        loaded = self._context.models.loaded
        model = self.chat.requests[0].model if loaded is None else loaded.model_id
        return {
            "id": self._id,
            "object": kind,
            "created": self._created,
            "model": model,
            "system_fingerprint": FINGERPRINT,
        }


async def _whole(head: _Head, parts: ChoiceParts) -> Mapping[str, Any]:
    """The answers in one object."""
    choices = [_Choice() for _ in head.chat.requests]
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
    if head.chat.has_usage:
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
        is_last = len(ends) == len(head.chat.requests)
        deltas.append({"delta": {}, "finish_reason": finish_reason(part)})
        extra = answer_figures(ends[min(ends)]) if is_last else {}
    else:
        deltas.append(_delta(part, head.is_scored))
        extra = {}
    chunk = head.as_json("chat.completion.chunk")
    nothing = {"usage": None} if head.chat.has_usage else {}
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
