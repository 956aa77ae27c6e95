"""Requests of Anthropic's API: messages of content blocks, tools, thinking."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, Tag, model_validator

from medusa_core.messages import ChatMessage, Role, ToolCall
from medusa_core.models.text.answer_grammar import ToolChoice, ToolMode
from medusa_core.server.api_error import bad_request
from medusa_core.server.chat import ChatRequest
from medusa_core.server.dialects.anthropic_blocks import (
    AnswerContent,
    ToolResultBlock,
    ToolUseBlock,
    UserContent,
    blocks_text,
)
from medusa_core.server.dialects.openai_messages import (
    MOST_MESSAGES,
    Content,
    FormatRecord,
    TextPart,
    content_text,
)
from medusa_core.server.offered_tools import MOST_TOOLS, Tool, read_tools
from medusa_core.server.records import Flag, MaxTokens, Record, by_type, refusal
from medusa_core.server.sampling import SamplingRecord, StopStrings

_MODES = {
    "auto": ToolMode.AUTO,
    "any": ToolMode.REQUIRED,
    "tool": ToolMode.REQUIRED,
    "none": ToolMode.NONE,
}
_THINKS = {"enabled": True, "disabled": False, "adaptive": None}


class UserMessage(Record):
    """A user's message; results of tool calls come first."""

    role: Literal["user"]
    content: UserContent

    def chat_messages(self, names: dict[str, str]) -> Iterator[ChatMessage]:
        """Return the message in the engine's form.

        Args:
            names: Functions by the ids of their calls, to look up those of the results.
        """
        results = [block for block in self.content if isinstance(block, ToolResultBlock)]
        for block in results:
            yield ChatMessage(
                Role.TOOL,
                blocks_text(block.content),
                tool_name=names.get(block.tool_use_id, ""),
                call_id=block.tool_use_id,
            )
        text = "".join(
            block.text for block in self.content if not isinstance(block, ToolResultBlock)
        )
        if text or not results:
            yield ChatMessage(Role.USER, text)


class AnswerMessage(Record):
    """An earlier answer; its reasoning isn't read again."""

    role: Literal["assistant"]
    content: AnswerContent

    def chat_messages(self, names: dict[str, str]) -> Iterator[ChatMessage]:
        """Return the message in the engine's form.

        Args:
            names: Functions by the ids of their calls, to add those of the answer.
        """
        text = "".join(block.text for block in self.content if isinstance(block, TextPart))
        calls = tuple(
            ToolCall(block.id, block.name, json.dumps(block.input, ensure_ascii=False))
            for block in self.content
            if isinstance(block, ToolUseBlock)
        )
        names |= {call.call_id: call.name for call in calls}
        yield ChatMessage(Role.ASSISTANT, text, tool_calls=calls)


class SystemMessage(Record):
    """A system message; clients send them in the middle, too."""

    role: Literal["system", "developer"]
    content: Content

    def chat_messages(self, names: dict[str, str]) -> Iterator[ChatMessage]:
        """Return the message in the engine's form."""
        yield ChatMessage(Role.SYSTEM, content_text(self.content))


_ROLE_TAGS = {
    "user": "(user)",
    "assistant": "(answer)",
    "system": "(system)",
    "developer": "(system)",
}
Message = Annotated[
    Annotated[UserMessage, Tag("(user)")]
    | Annotated[AnswerMessage, Tag("(answer)")]
    | Annotated[SystemMessage, Tag("(system)")],
    by_type(_ROLE_TAGS.get, 'must be "user", "assistant" or "system"', field="role"),
]


class MessagesTool(Tool):
    """A tool; those of other types than `custom` are run by Anthropic's servers alone."""

    function_type: ClassVar[str] = "custom"
    schema_path: ClassVar[str] = "input_schema"

    type: str = "custom"
    parameters: dict[str, Any] | None = Field(default=None, validation_alias="input_schema")


class MessagesToolChoice(Record):
    """Which tools may be called."""

    type: Literal["auto", "any", "tool", "none"]
    name: str = ""
    disable_parallel_tool_use: Flag = False


class Thinking(Record):
    """Whether the model thinks before its answer."""

    type: Literal["enabled", "disabled", "adaptive"]


class OutputConfig(Record):
    """The format of the answer."""

    format: FormatRecord | None = None


class CountBody(SamplingRecord):
    """A request to count the tokens of a conversation."""

    messages: tuple[Message, ...] = Field(default=(), max_length=MOST_MESSAGES)
    system: Content = ()
    max_tokens: MaxTokens = 0
    stop_sequences: StopStrings = ()
    tools: tuple[MessagesTool, ...] = Field(default=(), max_length=MOST_TOOLS)
    tool_choice: MessagesToolChoice = MessagesToolChoice(type="auto")
    thinking: Thinking | None = None
    output_config: OutputConfig = OutputConfig()


class MessagesBody(CountBody):
    """A request for an answer."""

    @model_validator(mode="after")
    def _needs_max_tokens(self) -> MessagesBody:
        """Require `max_tokens`, as Anthropic does."""
        if not self.max_tokens:
            raise refusal("is missing", "max_tokens")
        return self


def parse_messages(body: CountBody) -> ChatRequest:
    """Return the request for an answer that a request of this API makes.

    Raises:
        ApiError: A schema, a tool or a message can't be served.
    """
    settings, open_settings = body.settings(body.max_tokens, body.stop_sequences)
    if body.thinking is not None:
        settings = replace(settings, thinks=_THINKS[body.thinking.type])
    offered = read_tools(body.tools)
    choice = _tool_choice(body.tool_choice, offered.functions)
    answer_format = body.output_config.format
    return ChatRequest(
        model=body.model,
        messages=_chat_messages(body),
        settings=settings,
        open_settings=open_settings,
        tools=() if choice.mode is ToolMode.NONE else offered.functions,
        tool_choice=choice,
        schema="" if answer_format is None else answer_format.schema_text("output_config.format"),
        warning=offered.warning,
    )


def _chat_messages(body: CountBody) -> tuple[ChatMessage, ...]:
    """Return all messages in the engine's form; one must be a user's."""
    names: dict[str, str] = {}  # of functions, by the ids of their calls
    messages = [turn for message in body.messages for turn in message.chat_messages(names)]
    if all(message.role is Role.ASSISTANT for message in messages):
        raise bad_request("`messages` must be a list with a user's message.", "messages")
    system = content_text(body.system)
    return (ChatMessage(Role.SYSTEM, system), *messages) if system else tuple(messages)


def _tool_choice(choice: MessagesToolChoice, tools: tuple[str, ...]) -> ToolChoice:
    """Return which functions may be called."""
    mode, is_named = _MODES[choice.type], choice.type == "tool"
    if mode is ToolMode.REQUIRED and not tools:
        raise bad_request("`tool_choice` must be left out where there are no tools.", "tool_choice")
    if is_named and choice.name not in {json.loads(tool)["name"] for tool in tools}:
        raise bad_request(
            "`tool_choice.name` must be the name of one of the tools.", "tool_choice.name"
        )
    is_parallel = not choice.disable_parallel_tool_use
    return ToolChoice(mode, choice.name if is_named else "", is_parallel)
