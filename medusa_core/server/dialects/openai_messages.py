"""Messages, tools and formats of OpenAI's API, as typed records and in the engine's form."""

from __future__ import annotations

import json
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, Tag, model_validator

from medusa_core.messages import ChatMessage, Role, ToolCall
from medusa_core.models.text.answer_grammar import ToolChoice, ToolMode
from medusa_core.server.api_error import bad_request
from medusa_core.server.json_schema import ANY_OBJECT, schema_text
from medusa_core.server.offered_tools import MOST_TOOLS, OfferedTools, Tool, read_tools
from medusa_core.server.records import Flag, Record, by_type, refusal

MOST_MESSAGES = 4096
MOST_PARTS = 1024
ONLY_TEXT = "must be a text part: the models here read no images, audio or files"
_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
}
_PART_TAGS = {
    **dict.fromkeys(("text", "input_text", "output_text"), "(text)"),
    "refusal": "(refusal)",
    # Earlier reasoning isn't read again.
    **dict.fromkeys(("thinking", "redacted_thinking", "reasoning", "reasoning_text"), "(ignored)"),
}


class TextPart(Record):
    """A part of a message with text."""

    text: str


class RefusalPart(Record):
    """A part of an answer in which the model refused."""

    text: str = Field(default="", validation_alias="refusal")


class IgnoredPart(Record):
    """A part that the model doesn't read."""

    text: ClassVar[str] = ""


def as_parts(value: Any) -> Any:
    """Wrap a message's content that is a string into a list of one text part."""
    if isinstance(value, str):
        return ({"type": "text", "text": value},)
    if not isinstance(value, list):
        raise refusal("must be a string or a list of parts")
    return value


Part = Annotated[
    Annotated[TextPart, Tag("(text)")]
    | Annotated[RefusalPart, Tag("(refusal)")]
    | Annotated[IgnoredPart, Tag("(ignored)")],
    by_type(_PART_TAGS.get, ONLY_TEXT),
]
Content = Annotated[tuple[Part, ...], BeforeValidator(as_parts), Field(max_length=MOST_PARTS)]


def content_text(content: Content) -> str:
    """Return the text of a message's parts."""
    return "".join(part.text for part in content)


def _arguments(value: Any) -> Any:
    """Normalize the arguments of a call to JSON text."""
    # Some clients send an object instead of its text, or nothing for no arguments.
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value or "{}"


class CalledFunction(Record):
    """The function of a tool call."""

    name: str = ""
    arguments: Annotated[str, BeforeValidator(_arguments)] = "{}"


class CallRecord(Record):
    """A tool call in an earlier answer."""

    id: str = ""
    function: CalledFunction


class MessageRecord(Record):
    """A message of chat completions."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Content = ()
    tool_calls: tuple[CallRecord, ...] = Field(default=(), max_length=MOST_TOOLS)
    name: str = ""
    tool_call_id: str = ""

    @model_validator(mode="after")
    def _needs_content(self) -> MessageRecord:
        """Require `content`, except in answers."""
        if self.role != "assistant" and "content" not in self.model_fields_set:
            raise refusal("is missing", "content")
        return self


class Named(Record):
    """A tool that a `tool_choice` names."""

    name: str = ""


class ToolRecord(Record):
    """A tool of chat completions; custom ones, whose calls are no JSON, are left out."""

    type: Literal["function", "custom"] = "function"
    function: Tool | None = None
    custom: Named = Named()

    @model_validator(mode="after")
    def _needs_function(self) -> ToolRecord:
        """Require `function` for tools of type function."""
        if self.type == "function" and self.function is None:
            raise refusal("is missing", "function")
        return self

    @property
    def tool(self) -> Tool:
        """Return the tool in the form of responses."""
        return self.function or Tool(type=self.type, name=self.custom.name)


class ToolName(Named):
    """A function name: nested in chat completions, flat in responses."""

    function: Named = Named()

    @property
    def function_name(self) -> str:
        """Function name of either form."""
        return self.function.name or self.name


class AllowedTools(Record):
    """The functions that may be called, and whether one must be."""

    mode: Literal["auto", "none", "required"] = "auto"
    tools: tuple[ToolName, ...] = Field(default=(), max_length=MOST_TOOLS)


class ToolChoiceRecord(AllowedTools, ToolName):
    """A `tool_choice`: a mode, a function, or allowed functions.

    Attributes:
        type: `mode` stands for a choice that was sent as a string.
        allowed_tools: Chat completions nest the fields of `AllowedTools`.
    """

    type: str = "function"
    allowed_tools: AllowedTools | None = None


def _choice_object(value: Any) -> Any:
    """Normalize a mode given as a string to an object."""
    if value in ("auto", "none", "required"):
        return {"type": "mode", "mode": value}
    if not isinstance(value, dict):
        raise refusal('must be "auto", "none", "required" or a function')
    return value


class ToolFields(Record):
    """Fields of a request that say which functions may be called."""

    tool_choice: Annotated[ToolChoiceRecord, BeforeValidator(_choice_object)] = ToolChoiceRecord(
        type="mode"
    )
    parallel_tool_calls: Flag = True

    def choose_tools(self, tools: tuple[str, ...]) -> tuple[tuple[str, ...], ToolChoice]:
        """Return the functions that may be called, and how.

        Args:
            tools: Functions of the request, in the form of `ChatRequest.tools`.

        Raises:
            ApiError: The choice names none of them.
        """
        choice, is_parallel = self.tool_choice, self.parallel_tool_calls
        names = [json.loads(tool)["name"] for tool in tools]
        if choice.type not in ("mode", "allowed_tools"):
            if choice.function_name not in names:
                raise bad_request(
                    "`tool_choice.name` must be the name of one of the tools.", "tool_choice.name"
                )
            return tools, ToolChoice(ToolMode.REQUIRED, choice.function_name, is_parallel)
        allowed = choice.allowed_tools or choice
        if choice.type == "allowed_tools":
            allowed_names = {tool.function_name for tool in allowed.tools}
            tools = tuple(
                tool for tool, name in zip(tools, names, strict=True) if name in allowed_names
            )
        if allowed.mode == "required" and not tools:
            raise bad_request(
                "`tool_choice` must be left out where there are no tools.", "tool_choice"
            )
        return tools, ToolChoice(ToolMode(allowed.mode), is_parallel=is_parallel)


class NestedSchema(Record):
    """The `json_schema` of a format."""

    schema_: dict[str, Any] = Field(alias="schema")


class FormatRecord(Record):
    """A `response_format`: text, JSON or a schema.

    Attributes:
        schema_: JSON schema, as in responses, Anthropic's API and llama-server's `json_object`.
        json_schema: Holds the JSON schema in chat completions.
    """

    type: Literal["text", "json_object", "json_schema"]
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")
    json_schema: NestedSchema | None = None

    @model_validator(mode="after")
    def _needs_schema(self) -> FormatRecord:
        """Require a schema for the type json_schema."""
        if self.type == "json_schema" and self.schema_ is None and self.json_schema is None:
            raise refusal("is missing", "schema")
        return self

    def schema_text(self, field: str) -> str:
        """Return the JSON schema that the answer must match; empty for free text.

        Args:
            field: Path of the format in the request.

        Raises:
            ApiError: The schema is out of bounds, or has keywords that can't be enforced.
        """
        if self.type == "text":
            return ""
        if self.json_schema is not None and self.type == "json_schema":
            return schema_text(self.json_schema.schema_, f"{field}.json_schema.schema")
        return ANY_OBJECT if self.schema_ is None else schema_text(self.schema_, f"{field}.schema")


def chat_messages(records: tuple[MessageRecord, ...]) -> tuple[ChatMessage, ...]:
    """Return the messages of chat completions in the engine's form.

    Raises:
        ApiError: There is no message to answer.
    """
    messages: list[ChatMessage] = []
    names: dict[str, str] = {}  # of functions, by the ids of their calls
    for record in records:
        calls = tuple(
            ToolCall(call.id, call.function.name, call.function.arguments)
            for call in record.tool_calls
        )
        role, content = _ROLES[record.role], content_text(record.content)
        if role is Role.ASSISTANT:
            names |= {call.call_id: call.name for call in calls}
            messages.append(ChatMessage(role, content, tool_calls=calls))
        elif role is Role.TOOL:
            call_id = record.tool_call_id
            name = record.name or names.get(call_id, "")
            messages.append(ChatMessage(role, content, tool_name=name, call_id=call_id))
        else:
            messages.append(ChatMessage(role, content))
    if all(message.role is Role.ASSISTANT for message in messages):
        raise bad_request("`messages` must be a list with a user's message.", "messages")
    return tuple(messages)


class ConversationRecord(Record):
    """Messages and tools of a request in the form of chat completions."""

    messages: tuple[MessageRecord, ...] = Field(default=(), max_length=MOST_MESSAGES)
    tools: tuple[ToolRecord, ...] = Field(default=(), max_length=MOST_TOOLS)

    def read_tools(self) -> OfferedTools:
        """Return the functions of the request; see `offered_tools.read_tools`."""
        return read_tools((record.tool for record in self.tools), "function.")
