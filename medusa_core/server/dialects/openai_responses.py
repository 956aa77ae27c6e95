"""`/v1/responses`: OpenAI's Responses API, without state."""

from __future__ import annotations

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
    Finish,
    TextDelta,
)
from medusa_core.server.context import ServerContext
from medusa_core.server.dialect import DialectSpec
from medusa_core.server.dialects.openai_forms import (
    answer_figures,
    chat_logprobs,
    created_now,
    input_tokens_json,
    openai_error,
)
from medusa_core.server.dialects.openai_response_requests import (
    ResponseBody,
    ResponseRequest,
    parse_response_request,
)
from medusa_core.server.replies import (
    JsonReply,
    read_record,
    server_event,
    while_connected,
)
from medusa_core.server.reply import Reply, respond

_Json = dict[str, Any]
_WHOLE, _CUT = "completed", "incomplete"

# Fields of the request that a response repeats, with their defaults.
_REPEATED: _Json = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "reasoning": {"effort": None, "summary": None},
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
    "truncation": "disabled",
    "user": None,
}


def _routes(context: ServerContext) -> list[Route]:
    """Return the routes of responses."""

    async def responses(http: Request) -> Response:
        """Answer a request."""
        request = parse_response_request(await read_record(http, context.limits, ResponseBody))
        reply = _ResponseReply(request, context)
        return await respond(http, context, (request.chat,), reply, streams=request.streams)

    async def input_tokens(http: Request) -> Response:
        """Count the prompt tokens of a request."""
        request = parse_response_request(await read_record(http, context.limits, ResponseBody))
        num_tokens = await while_connected(http, context.input_tokens(request.chat))
        return JsonReply(input_tokens_json(num_tokens))

    return [
        Route("/v1/responses", responses, methods=["POST"]),
        Route("/v1/responses/input_tokens", input_tokens, methods=["POST"]),
    ]


class _ResponseReply(Reply):
    """A response item by item."""

    def __init__(self, request: ResponseRequest, context: ServerContext) -> None:
        self._request, self._context = request, context
        self._id, self._created = f"resp_{new_id()}", created_now()
        self._items: list[_Json] = []
        self._is_open = False
        self._end: AnswerEnd | None = None
        self._num_events = 0

    async def begin(self) -> Iterable[_Json]:
        """Return the events before the first part."""
        return tuple(
            {"type": name, "response": self._json("in_progress")}
            for name in ("response.created", "response.in_progress")
        )

    def events(self, index: int, part: AnswerPart) -> Iterator[_Json]:
        """Return the events for a part; a change of kind begins a new item."""
        if isinstance(part, TextDelta) and part.is_reasoning:
            yield from self._reasoning(part.text)
        elif isinstance(part, TextDelta):
            yield from self._text(part)
        elif isinstance(part, CallStarted):
            yield from self._close()
            call = {"call_id": part.call_id, "name": part.name, "arguments": ""}
            yield self._open("function_call", "fc", call)
        elif isinstance(part, CallDelta):
            self._items[-1]["arguments"] += part.text
            yield self._of_item("response.function_call_arguments.delta", delta=part.text)
        else:
            self._end = part
            if not self._items:  # clients look for a message
                yield from self._open_text()
            status = _status(part)
            yield from self._close(status)
            yield {"type": f"response.{status}", "response": self.whole()}

    def whole(self) -> _Json:
        """Return the complete response."""
        assert self._end is not None  # the last part of an answer
        end, status = self._end, _status(self._end)
        settings = end.done.settings
        return {
            **self._json(status),
            "incomplete_details": {"reason": "max_output_tokens"} if status == _CUT else None,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "usage": _usage(end),
            **answer_figures(end),
        }

    def failure(self, error: ApiError) -> _Json:
        """Return the event of a failed response."""
        failure = {"code": error.code or "server_error", "message": error.message}
        return {"type": "response.failed", "response": {**self._json("failed"), "error": failure}}

    def encode(self, event: Mapping[str, Any]) -> str:
        """Return an event as text of the stream, numbered."""
        numbered = {**event, "sequence_number": self._num_events}
        self._num_events += 1
        return server_event(numbered, str(event["type"]))

    def _json(self, status: str) -> _Json:
        """Return the response object with repeated fields of the request."""
        request = self._request
        repeated = {name: request.sent.get(name, default) for name, default in _REPEATED.items()}
        if request.chat.warning:
            given = repeated["metadata"]
            repeated["metadata"] = {
                **(given if isinstance(given, dict) else {}),
                "medusa_warning": request.chat.warning,
            }
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "model": self._context.models.loaded_id or request.chat.model,
            "output": list(self._items),
            "previous_response_id": None,
            "store": False,
            "usage": None,
            **repeated,
        }

    def _text(self, part: TextDelta) -> Iterator[_Json]:
        """Append text to the current message."""
        if not part.text and not part.tokens:
            return
        if not self._is_open or self._items[-1]["type"] != "message":
            yield from self._close()
            yield from self._open_text()
        scores = self._scores(part)
        content = self._items[-1]["content"][0]
        content["text"] += part.text
        content["logprobs"] += scores
        yield self._of_content("response.output_text.delta", delta=part.text, logprobs=scores)

    def _open_text(self) -> Iterator[_Json]:
        """Begin a message with one text part."""
        yield self._open("message", "msg", {"role": "assistant", "content": []})
        content: _Json = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        yield from self._add_content(content)

    def _reasoning(self, text: str) -> Iterator[_Json]:
        """Append text to the current reasoning item."""
        if not text:
            return
        if not self._is_open or self._items[-1]["type"] != "reasoning":
            yield from self._close()
            yield self._open("reasoning", "rs", {"summary": [], "content": []})
            yield from self._add_content({"type": "reasoning_text", "text": ""})
        self._items[-1]["content"][0]["text"] += text
        yield self._of_content("response.reasoning_text.delta", delta=text)

    def _scores(self, part: TextDelta) -> list[Any]:
        """Return the log probabilities of a part, if requested."""
        if self._request.chat.num_logprobs < 0:
            return []
        return list(chat_logprobs(part.tokens)["content"])

    def _open(self, kind: str, prefix: str, more: _Json) -> _Json:
        """Begin an output item, and return the event that announces it.

        Args:
            kind: Type of the item, such as `message`.
            prefix: Prefix of its id.
            more: Further fields.
        """
        item = {"id": f"{prefix}_{new_id()}", "type": kind, "status": "in_progress", **more}
        self._items.append(item)
        self._is_open = True
        # A copy: the item grows before the event is encoded.
        shown = {**item, "content": []} if "content" in item else dict(item)
        return {
            "type": "response.output_item.added",
            "output_index": len(self._items) - 1,
            "item": shown,
        }

    def _add_content(self, content: _Json) -> Iterator[_Json]:
        """Begin a content part of the current item."""
        self._items[-1]["content"].append(content)
        yield self._of_content("response.content_part.added", part=dict(content))

    def _close(self, status: str = _WHOLE) -> Iterator[_Json]:
        """Complete the item in progress."""
        if not self._is_open:
            return
        self._is_open = False
        item = self._items[-1]
        item["status"] = status
        if item["type"] == "function_call":
            yield self._of_item(
                "response.function_call_arguments.done",
                name=item["name"],
                arguments=item["arguments"],
            )
        else:
            content = item["content"][0]
            name = "output_text" if item["type"] == "message" else "reasoning_text"
            scores = {"logprobs": content["logprobs"]} if name == "output_text" else {}
            yield self._of_content(f"response.{name}.done", text=content["text"], **scores)
            yield self._of_content("response.content_part.done", part=content)
        yield {
            "type": "response.output_item.done",
            "output_index": len(self._items) - 1,
            "item": item,
        }

    def _of_item(self, kind: str, **more: Any) -> _Json:
        """Return an event about the current item."""
        place = len(self._items) - 1
        return {"type": kind, "item_id": self._items[-1]["id"], "output_index": place, **more}

    def _of_content(self, kind: str, **more: Any) -> _Json:
        """Return an event about the current content part."""
        return self._of_item(kind, content_index=0, **more)


def _status(end: AnswerEnd) -> str:
    """Return the status of a response and of its last item."""
    return _CUT if end.finish is Finish.LENGTH else _WHOLE


def _usage(end: AnswerEnd) -> _Json:
    """Return the token counts."""
    num_read, num_written = end.num_prompt_tokens, end.num_answer_tokens
    return {
        "input_tokens": num_read,
        "input_tokens_details": {"cached_tokens": end.num_cached_tokens, "cache_write_tokens": 0},
        "output_tokens": num_written,
        "output_tokens_details": {"reasoning_tokens": end.num_reasoning_tokens},
        "total_tokens": num_read + num_written,
    }


SPEC = DialectSpec("openai_responses", ("/v1/responses",), _routes, openai_error)
