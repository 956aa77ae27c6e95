"""`/v1/messages` and `/v1/messages/count_tokens`: Anthropic's API."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from typing import Any

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
    Finish,
    TextDelta,
)
from medusa_core.server.context import ServerContext
from medusa_core.server.dialect import DialectSpec
from medusa_core.server.dialects.anthropic_requests import CountBody, MessagesBody, parse_messages
from medusa_core.server.growing_reply import whole_reply
from medusa_core.server.replies import (
    EventStream,
    JsonReply,
    first_of,
    read_record,
    server_event,
    while_connected,
)

_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}
_STOPS = {
    Finish.STOP: "end_turn",
    Finish.STOP_STRING: "stop_sequence",
    Finish.LENGTH: "max_tokens",
    Finish.TOOL_CALLS: "tool_use",
}
_DELTAS = {"text": ("text_delta", "text"), "thinking": ("thinking_delta", "thinking")}
_Block = dict[str, Any]


def _routes(context: ServerContext) -> list[Route]:
    async def messages(http: Request) -> Response:
        body = await read_record(http, context.limits, MessagesBody)
        chat = parse_messages(body)
        parts = context.answer(http, chat)
        message = _Message(chat, context)
        if not body.stream:
            return JsonReply(await while_connected(http, whole_reply(message, parts)))
        first, rest = await first_of(http, parts)
        return EventStream(_stream(message, first, rest), context.limits)

    async def count_tokens(http: Request) -> Response:
        chat = parse_messages(await read_record(http, context.limits, CountBody))
        num_tokens = await while_connected(http, context.input_tokens(chat))
        return JsonReply({"input_tokens": num_tokens})

    return [
        Route("/v1/messages", messages, methods=["POST"]),
        Route("/v1/messages/count_tokens", count_tokens, methods=["POST"]),
    ]


class _Message:
    """An answer as it grows, block by block."""

    def __init__(self, chat: ChatRequest, context: ServerContext) -> None:
        self._chat, self._context = chat, context
        self._id = f"msg_{new_id()}"
        self._blocks: list[_Block] = []
        self._arguments = ""  # of the call under way
        self._is_open = False

    def events(self, part: AnswerPart) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Take a part: names and contents of the events that it becomes."""
        if isinstance(part, TextDelta):
            yield from self._text("thinking" if part.is_thought else "text", part.text)
        elif isinstance(part, CallStarted):
            yield from self._close()
            call = {"type": "tool_use", "id": part.call_id, "name": part.name, "input": {}}
            yield self._open(call)
        elif isinstance(part, CallDelta):
            self._arguments += part.text
            yield self._delta({"type": "input_json_delta", "partial_json": part.text})
        else:
            yield from self._close()
            yield "message_delta", {"delta": _ending(part), "usage": _usage(part)}
            yield "message_stop", {}

    async def head(self) -> dict[str, Any]:
        """The message before its first block.

        Raises:
            ApiError: The engine doesn't say how much it reads.
        """
        num_read = await self._context.input_tokens(self._chat)
        usage = {"input_tokens": num_read, "output_tokens": 0}
        return self._json([], {"stop_reason": None, "stop_sequence": None}, usage)

    def whole(self, end: AnswerEnd) -> dict[str, Any]:
        """The message, once it is complete."""
        return self._json(self._blocks, _ending(end), _usage(end))

    def _json(
        self, blocks: list[_Block], ending: Mapping[str, Any], usage: Mapping[str, Any]
    ) -> dict[str, Any]:
        loaded = self._context.models.loaded
        return {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self._chat.model if loaded is None else loaded.model_id,
            "content": blocks,
            **ending,
            "usage": usage,
        }

    def _text(self, kind: str, text: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        if not text:
            return
        if not self._is_open or self._blocks[-1]["type"] != kind:
            yield from self._close()
            block = {"type": kind, kind: ""}
            yield self._open(block if kind == "text" else {**block, "signature": ""})
        self._blocks[-1][kind] += text
        delta, key = _DELTAS[kind]
        yield self._delta({"type": delta, key: text})

    def _open(self, block: _Block) -> tuple[str, Mapping[str, Any]]:
        self._blocks.append(block)
        self._is_open, self._arguments = True, ""
        place = len(self._blocks) - 1
        return "content_block_start", {"index": place, "content_block": dict(block)}

    def _delta(self, delta: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        return "content_block_delta", {"index": len(self._blocks) - 1, "delta": delta}

    def _close(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        if not self._is_open:
            return
        self._is_open = False
        block = self._blocks[-1]
        if block["type"] == "tool_use":
            block["input"] = _object(self._arguments)
        yield "content_block_stop", {"index": len(self._blocks) - 1}


async def _stream(
    message: _Message, first: AnswerPart, rest: AsyncGenerator[AnswerPart, None]
) -> AsyncGenerator[str, None]:
    """The answer as events."""
    try:
        async with aclosing(rest) as parts:
            yield _event("message_start", {"message": await message.head()})
            yield _event("ping", {})
            for name, content in message.events(first):
                yield _event(name, content)
            async for part in parts:
                for name, content in message.events(part):
                    yield _event(name, content)
    except ApiError as error:
        yield server_event(anthropic_error(error), "error")


def _event(name: str, content: Mapping[str, Any]) -> str:
    return server_event({"type": name, **content}, name)


def _ending(end: AnswerEnd) -> dict[str, Any]:
    return {"stop_reason": _STOPS[end.finish], "stop_sequence": end.stop or None}


def _usage(end: AnswerEnd) -> dict[str, Any]:
    """Tokens; what was cached counts apart."""
    return {
        "input_tokens": end.num_prompt_tokens - end.num_cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": end.num_cached_tokens,
        "output_tokens": end.num_answer_tokens,
    }


def _object(arguments: str) -> Any:
    """A call's arguments; none where an answer was cut in the middle of them."""
    try:
        found = json.loads(arguments or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def anthropic_error(error: ApiError) -> Mapping[str, Any]:
    """An error in Anthropic's form."""
    kind = _ERRORS.get(error.status, "invalid_request_error" if error.status < 500 else "api_error")
    message = error.message
    if error.context_tokens:  # Anthropic's own words, which its clients look for
        message = (
            f"prompt is too long: {error.num_tokens} tokens > {error.context_tokens} maximum. "
            f"{message}"
        )
    return {"type": "error", "error": {"type": kind, "message": message}}


SPEC = DialectSpec("anthropic_messages", ("/v1/messages",), _routes, anthropic_error)
