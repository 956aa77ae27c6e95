"""`/v1/chat/completions`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from pydantic import Field, model_validator
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from medusa_core.chats.tool_calls.events import CallDelta, CallStarted
from medusa_core.models.text.answer_grammar import ToolMode
from medusa_core.server.chat import Answer, AnswerEnd, AnswerPart, ChatRequest
from medusa_core.server.constraints import ConstraintRecord, read_constraint
from medusa_core.server.context import ServerContext
from medusa_core.server.dialect import DialectSpec
from medusa_core.server.dialects.openai_forms import (
    OpenAiReply,
    chat_logprobs,
    finish_reason,
    input_tokens_json,
    openai_error,
)
from medusa_core.server.dialects.openai_messages import (
    ConversationRecord,
    FormatRecord,
    ToolFields,
    chat_messages,
)
from medusa_core.server.limits import MOST_CHOICES
from medusa_core.server.records import Flag, MaxTokens, Record, Whole, refusal
from medusa_core.server.replies import JsonReply, read_record, while_connected
from medusa_core.server.reply import respond
from medusa_core.server.sampling import SamplingRecord, StopStrings

_MOST_LOGPROBS = 20


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
        """Refuse contradictory and outdated fields."""
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


def _routes(context: ServerContext) -> list[Route]:
    """Return the routes of chat completions."""

    async def completions(http: Request) -> Response:
        """Answer a request."""
        chat = parse_chat(await read_record(http, context.limits, ChatBody))
        reply = _ChatReply(chat.requests, context, has_usage=chat.has_usage)
        return await respond(http, context, chat.requests, reply, streams=chat.streams)

    async def input_tokens(http: Request) -> Response:
        """Count the prompt tokens of a request."""
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
    """Return copies of a request, each with its own seed."""
    settings = request.settings
    return tuple(
        replace(request, settings=replace(settings, seed=settings.seed + index))
        for index in range(count)
    )


class _ChatReply(OpenAiReply):
    """Answers in the form of chat completions."""

    id_prefix = "chatcmpl-"
    kind, chunk_kind = "chat.completion", "chat.completion.chunk"

    def deltas(self, index: int, part: AnswerPart) -> list[dict[str, Any]]:
        """Return the chunks for a part; the first one has the role."""
        # A first delta without text, as OpenAI's servers send it.
        role = {"delta": {"role": "assistant", "content": ""}}
        return [*([role] if not self.answers[index].num_parts else []), self._delta(part)]

    def choice(self, answer: Answer) -> dict[str, Any]:
        """Return the choice for a complete answer."""
        message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": None}
        if answer.reasoning:
            message["reasoning_content"] = answer.reasoning
        if answer.calls:
            calls = [_call_json(*call) for call in answer.calls]
            message |= {"content": answer.text or None, "tool_calls": calls}
        logprobs = chat_logprobs(answer.tokens) if self.is_scored else None
        return {"message": message, "logprobs": logprobs}

    def _delta(self, part: AnswerPart) -> dict[str, Any]:
        """Return the chunk for a part."""
        if isinstance(part, CallStarted):
            call = {"index": part.place, **_call_json(part.call_id, part.name)}
            return {"delta": {"tool_calls": [call]}}
        if isinstance(part, CallDelta):
            call = {"index": part.place, "function": {"arguments": part.text}}
            return {"delta": {"tool_calls": [call]}}
        if isinstance(part, AnswerEnd):
            return {"delta": {}, "finish_reason": finish_reason(part)}
        if part.is_reasoning:
            return {"delta": {"reasoning_content": part.text}}
        logprobs = chat_logprobs(part.tokens) if self.is_scored else None
        return {"delta": {"content": part.text}, "logprobs": logprobs}


def _call_json(call_id: str, name: str, arguments: str = "") -> dict[str, Any]:
    """Return a tool call in OpenAI's form."""
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


SPEC = DialectSpec("openai_chat", ("/v1/chat/",), _routes, openai_error)
