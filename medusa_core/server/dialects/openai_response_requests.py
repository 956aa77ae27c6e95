"""Requests of OpenAI's Responses API: items instead of messages, and no state."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field, Tag, model_validator

from medusa_core.messages import ChatMessage, Overflow, Role, ToolCall
from medusa_core.models.text.answer_grammar import ToolMode
from medusa_core.server.api_error import bad_request
from medusa_core.server.chat import ChatRequest
from medusa_core.server.dialects.openai_messages import (
    MOST_MESSAGES,
    Content,
    FormatRecord,
    IgnoredPart,
    ToolFields,
    content_text,
)
from medusa_core.server.offered_tools import MOST_TOOLS, Tool, read_tools
from medusa_core.server.records import (
    Flag,
    MaxTokens,
    Record,
    Whole,
    by_type,
    refusal,
    without_nulls,
)
from medusa_core.server.sampling import SamplingRecord

_MOST_LOGPROBS = 20
_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
}
_STATEFUL = ("previous_response_id", "conversation", "prompt")
_WITH_LOGPROBS = "message.output_text.logprobs"
_ITEM_TAGS = {
    "message": "(message)",
    "function_call": "(call)",
    "function_call_output": "(output)",
    "reasoning": "(ignored)",  # earlier reasoning isn't read again
}


class MessageItem(Record):
    """A message."""

    role: Literal["system", "developer", "user", "assistant"]
    content: Content


class CallItem(Record):
    """A function call of an earlier answer."""

    call_id: str = ""
    name: str = ""
    arguments: str = "{}"


class OutputItem(Record):
    """The result of a function call."""

    call_id: str = ""
    output: Content = ()


Item = Annotated[
    Annotated[MessageItem, Tag("(message)")]
    | Annotated[CallItem, Tag("(call)")]
    | Annotated[OutputItem, Tag("(output)")]
    | Annotated[IgnoredPart, Tag("(ignored)")],
    by_type(
        _ITEM_TAGS.get, 'must be "message", "function_call" or "function_call_output"', "message"
    ),
]


class TextFormat(Record):
    """The field `text`, which has the format of the answer."""

    format: FormatRecord | None = None


class Reasoning(Record):
    """The field `reasoning`, whose effort can switch reasoning off."""

    effort: str = ""


def _items(value: Any) -> Any:
    """Normalize an input given as a string to a list of items."""
    if isinstance(value, str):
        return ({"role": "user", "content": value},)
    if not isinstance(value, list):
        raise refusal("must be a string or a list of items")
    return value


class ResponseBody(SamplingRecord, ToolFields):
    """A request of the Responses API.

    Attributes:
        sent: The object as it was sent, parts of which the response repeats.
    """

    input: Annotated[tuple[Item, ...], BeforeValidator(_items), Field(max_length=MOST_MESSAGES)]
    instructions: str = ""
    tools: tuple[Tool, ...] = Field(default=(), max_length=MOST_TOOLS)
    max_output_tokens: MaxTokens = 0
    reasoning: Reasoning = Reasoning()
    text: TextFormat = TextFormat()
    truncation: Literal["disabled", "auto"] = "disabled"
    top_logprobs: Whole = Field(default=0, ge=0, le=_MOST_LOGPROBS)
    include: tuple[str, ...] = Field(default=(), max_length=16)
    background: Flag = False
    previous_response_id: Any = None
    conversation: Any = None
    prompt: Any = None
    sent: dict[str, Any]

    @model_validator(mode="before")
    @classmethod
    def _keep(cls, value: Any) -> Any:
        """Keep the fields as sent, which the response repeats."""
        return {**value, "sent": without_nulls(value)}

    @model_validator(mode="after")
    def _check_stateless(self) -> ResponseBody:
        """Refuse fields that need stored responses."""
        for name in _STATEFUL:
            if getattr(self, name) is not None:
                text = "isn't known: responses aren't kept here. Send the whole conversation"
                raise refusal(f"{text} as `input`", name)
        if self.background:
            raise refusal("must be false: responses aren't kept here", "background")
        return self


class ResponseRequest(NamedTuple):
    """A request of this API.

    Attributes:
        chat: The request for an answer.
        streams: Whether the answer is streamed.
        sent: The object as it was sent, parts of which the response repeats.
    """

    chat: ChatRequest
    streams: bool
    sent: dict[str, Any]


def parse_response_request(body: ResponseBody) -> ResponseRequest:
    """Return the request for an answer that a request of this API makes.

    Raises:
        ApiError: A schema, a tool or an item can't be served.
    """
    settings, open_settings = body.settings(body.max_output_tokens)
    if settings.thinks is None and body.reasoning.effort in ("none", "minimal"):
        settings = replace(settings, thinks=False)
    # Messages are left out only if the client asks for it.
    overflow = Overflow.ROLLING if body.truncation == "auto" else Overflow.STOP
    offered = read_tools(body.tools)
    tools, choice = body.choose_tools(offered.functions)
    has_logprobs = body.top_logprobs or _WITH_LOGPROBS in body.include
    chat = ChatRequest(
        model=body.model,
        messages=_messages(body),
        settings=replace(settings, overflow=overflow),
        open_settings=open_settings,
        tools=() if choice.mode is ToolMode.NONE else tools,
        tool_choice=choice,
        schema="" if body.text.format is None else body.text.format.schema_text("text.format"),
        num_logprobs=body.top_logprobs if has_logprobs else -1,
        warning=offered.warning,
    )
    return ResponseRequest(chat, body.stream, body.sent)


def _messages(body: ResponseBody) -> tuple[ChatMessage, ...]:
    """Return instructions and input as messages; a call belongs to the answer before it."""
    messages: list[ChatMessage] = []
    names: dict[str, str] = {}  # of functions, by the ids of their calls
    for item in body.input:
        if isinstance(item, MessageItem):
            messages.append(ChatMessage(_ROLES[item.role], content_text(item.content)))
        elif isinstance(item, CallItem):
            call = ToolCall(item.call_id, item.name, item.arguments)
            names[call.call_id] = call.name
            if not messages or messages[-1].role is not Role.ASSISTANT:
                messages.append(ChatMessage(Role.ASSISTANT, ""))
            last = messages[-1]
            messages[-1] = last._replace(tool_calls=(*last.tool_calls, call))
        elif isinstance(item, OutputItem):
            name = names.get(item.call_id, "")
            text = content_text(item.output)
            messages.append(ChatMessage(Role.TOOL, text, tool_name=name, call_id=item.call_id))
    if all(message.role is Role.ASSISTANT for message in messages):
        raise bad_request("`input` must have a user's message.", "input")
    before = (ChatMessage(Role.SYSTEM, body.instructions),) if body.instructions else ()
    return (*before, *messages)
