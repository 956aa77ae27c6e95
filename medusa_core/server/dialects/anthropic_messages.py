"""`/v1/messages` and `/v1/messages/count_tokens`: Anthropic's API."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from medusa_core.chats.conversation import new_id
from medusa_core.chats.tool_calls.events import CallDelta, CallStarted
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
from medusa_core.server.replies import (
    JsonReply,
    read_record,
    server_event,
    while_connected,
)
from medusa_core.server.reply import Reply, respond

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
_Event = dict[str, Any]


def _routes(context: ServerContext) -> list[Route]:
    """Return the routes of Anthropic's API."""

    async def messages(http: Request) -> Response:
        """Answer a request."""
        body = await read_record(http, context.limits, MessagesBody)
        chat = parse_messages(body)
        reply = _MessageReply(chat, context)
        return await respond(http, context, (chat,), reply, streams=body.stream)

    async def count_tokens(http: Request) -> Response:
        """Count the tokens of a conversation."""
        chat = parse_messages(await read_record(http, context.limits, CountBody))
        num_tokens = await while_connected(http, context.input_tokens(chat))
        return JsonReply({"input_tokens": num_tokens})

    return [
        Route("/v1/messages", messages, methods=["POST"]),
        Route("/v1/messages/count_tokens", count_tokens, methods=["POST"]),
    ]


class _MessageReply(Reply):
    """An answer block by block."""

    def __init__(self, chat: ChatRequest, context: ServerContext) -> None:
        self._chat, self._context = chat, context
        self._id = f"msg_{new_id()}"
        self._blocks: list[_Block] = []
        self._arguments = ""  # of the tool call in progress
        self._is_open = False
        self._end: AnswerEnd | None = None

    async def begin(self) -> Iterable[_Event]:
        """Return the events before the first part, with the prompt's tokens."""
        num_tokens = await self._context.input_tokens(self._chat)
        usage = {"input_tokens": num_tokens, "output_tokens": 0}
        message = self._json([], {"stop_reason": None, "stop_sequence": None}, usage)
        return {"type": "message_start", "message": message}, {"type": "ping"}

    def events(self, index: int, part: AnswerPart) -> Iterator[_Event]:
        """Return the events for a part; a change of kind begins a new block."""
        if isinstance(part, TextDelta):
            yield from self._text("thinking" if part.is_reasoning else "text", part.text)
        elif isinstance(part, CallStarted):
            yield from self._close()
            call = {"type": "tool_use", "id": part.call_id, "name": part.name, "input": {}}
            yield self._open(call)
        elif isinstance(part, CallDelta):
            self._arguments += part.text
            yield self._delta({"type": "input_json_delta", "partial_json": part.text})
        else:
            self._end = part
            yield from self._close()
            yield {"type": "message_delta", "delta": _ending(part), "usage": _usage(part)}
            yield {"type": "message_stop"}

    def whole(self) -> _Event:
        """Return the complete message."""
        assert self._end is not None  # the last part of an answer
        return self._json(self._blocks, _ending(self._end), _usage(self._end))

    def failure(self, error: ApiError) -> Mapping[str, Any]:
        """Return the error event."""
        return anthropic_error(error)

    def encode(self, event: Mapping[str, Any]) -> str:
        """Return an event as text of the stream."""
        return server_event(event, event["type"])

    def _json(
        self, blocks: list[_Block], ending: Mapping[str, Any], usage: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the message object."""
        return {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self._context.models.loaded_id or self._chat.model,
            "content": blocks,
            **ending,
            "usage": usage,
        }

    def _text(self, kind: str, text: str) -> Iterator[_Event]:
        """Append text or thinking to the current block of its kind."""
        if not text:
            return
        if not self._is_open or self._blocks[-1]["type"] != kind:
            yield from self._close()
            block = {"type": kind, kind: ""}
            yield self._open(block if kind == "text" else {**block, "signature": ""})
        self._blocks[-1][kind] += text
        delta, key = _DELTAS[kind]
        yield self._delta({"type": delta, key: text})

    def _open(self, block: _Block) -> _Event:
        """Begin a block."""
        self._blocks.append(block)
        self._is_open, self._arguments = True, ""
        # A copy: the block grows before the event is encoded.
        return self._of_block("start", content_block=dict(block))

    def _delta(self, delta: Mapping[str, Any]) -> _Event:
        """Return the event of new content in the current block."""
        return self._of_block("delta", delta=delta)

    def _close(self) -> Iterator[_Event]:
        """Complete the current block, if one is open."""
        if not self._is_open:
            return
        self._is_open = False
        block = self._blocks[-1]
        if block["type"] == "tool_use":
            block["input"] = _object(self._arguments)
        yield self._of_block("stop")

    def _of_block(self, kind: str, **fields: Any) -> _Event:
        """Return an event about the current block."""
        return {"type": f"content_block_{kind}", "index": len(self._blocks) - 1, **fields}


def _ending(end: AnswerEnd) -> dict[str, Any]:
    """Return stop reason and stop sequence."""
    return {"stop_reason": _STOPS[end.finish], "stop_sequence": end.stop or None}


def _usage(end: AnswerEnd) -> dict[str, Any]:
    """Return the token counts; cached tokens count apart."""
    return {
        "input_tokens": end.num_prompt_tokens - end.num_cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": end.num_cached_tokens,
        "output_tokens": end.num_answer_tokens,
    }


def _object(arguments: str) -> Any:
    """Parse a call's arguments; none if the answer was cut within them."""
    try:
        found = json.loads(arguments or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def anthropic_error(error: ApiError) -> Mapping[str, Any]:
    """Return an error in Anthropic's form."""
    kind = _ERRORS.get(error.status, "invalid_request_error" if error.status < 500 else "api_error")
    message = error.message
    if error.context_tokens:  # Anthropic's own words, which its clients look for
        message = (
            f"prompt is too long: {error.num_tokens} tokens > {error.context_tokens} maximum. "
            f"{message}"
        )
    return {"type": "error", "error": {"type": kind, "message": message}}


SPEC = DialectSpec("anthropic_messages", ("/v1/messages",), _routes, anthropic_error)
