"""Convert a request to the model's form: messages, tools, grammar, and the format of its calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from medusa_core.messages import (
    ChatMessage,
    GenerateSettings,
    ModelLoaded,
    ToolCallFormat,
)
from medusa_core.models.text.answer_form import (
    call_markers,
    prompt_messages,
    reasoning_state,
    tool_call_format,
)
from medusa_core.models.text.answer_grammar import (
    AnswerRules,
    ToolMode,
    answer_grammar,
)
from medusa_core.models.text.grammar_limits import MAX_GRAMMAR_CHARS
from medusa_core.models.text.template_messages import without_tools
from medusa_core.server.api_error import ApiError, bad_request
from medusa_core.server.chat import ChatRequest
from medusa_core.server.limits import Limits

_MAX_TOKEN_CHARS = 16  # average of a text; prose has 4


class AnswerForm(NamedTuple):
    """A request in the model's form.

    Attributes:
        messages: The conversation; it describes the functions if the chat template can't.
        tools: Functions for the chat template.
        grammar: Grammar of the answer; empty for none.
        markers: Special tokens of the call format: names by ids.
        tool_format: Format of tool calls; None for no calls.
        constraint: Field of the request that the grammar enforces, for errors.
    """

    messages: tuple[ChatMessage, ...]
    tools: tuple[str, ...]
    grammar: str
    markers: Mapping[int, str]
    tool_format: ToolCallFormat | None
    constraint: str = ""

    def as_message(self, answer: ChatMessage) -> ChatMessage:
        """Return an answer in the form in which `messages` has it when the client sends it back."""
        is_described = self.tool_format is None or self.tool_format.is_described
        return answer if is_described else without_tools((answer,))[0]


def answer_form(request: ChatRequest, facts: ModelLoaded, settings: GenerateSettings) -> AnswerForm:
    """Convert a request to the model's form.

    Args:
        facts: Event of the loaded model.
        settings: Generation settings.

    Raises:
        ApiError: The schemas are too large together, or can't be combined.
    """
    tool_format = tool_call_format(facts) if has_tools(request) else None
    if request.grammar and tool_format is not None:
        raise bad_request("A grammar and `tools` can't be combined: send one of them.", "grammar")
    markers = call_markers(facts, tool_format)
    rules = AnswerRules(
        tool_format=tool_format,
        tools=request.tools,
        choice=request.tool_choice,
        schema=request.schema,
        reasoning_state=reasoning_state(facts, settings, is_chat=not request.prompt_ids),
        reasoning=facts.reasoning,
        grammar=request.grammar,
        marker_ids={name: token_id for token_id, name in markers.items()},
    )
    messages, tools = request.messages, request.tools if tool_format is not None else ()
    if tool_format is not None:
        messages, tools = prompt_messages(
            messages, tools, tool_format, request.tool_choice.is_parallel
        )
    constraint = _constraint(request, tool_format)
    grammar = answer_grammar(rules)
    if len(grammar) > MAX_GRAMMAR_CHARS:
        raise bad_request(
            f"The schemas of the request have {len(grammar):,} characters together; "
            f"{MAX_GRAMMAR_CHARS:,} are the most. Send fewer functions.",
            constraint,
        )
    return AnswerForm(messages, tools, grammar, markers, tool_format, constraint)


def _constraint(request: ChatRequest, tool_format: ToolCallFormat | None) -> str:
    """Return the name of the constraint in the request; empty for none."""
    if tool_format is not None:
        return "tools"
    if request.grammar:
        return "grammar"
    return "response_format" if request.schema else ""


def check_text_length(
    messages: Sequence[ChatMessage], tools: Sequence[str], facts: ModelLoaded, limits: Limits
) -> None:
    """Refuse a conversation that surely doesn't fit, since tokenizing it would block all answers.

    Args:
        tools: Functions for the chat template.
        facts: Event of the loaded model.
        limits: Limits of the server.

    Raises:
        ApiError: The conversation is far longer than the context.
    """
    most = max(limits.text_chars, facts.context_tokens * _MAX_TOKEN_CHARS)
    calls = (call.arguments for message in messages for call in message.tool_calls)
    num_chars = sum(map(len, (*(message.text for message in messages), *calls, *tools)))
    if num_chars > most:
        raise ApiError(
            400,
            f"The conversation has {num_chars:,} characters; {most:,} are the most for this model. "
            "Send less of it.",
            "messages",
            "context_length_exceeded",
            num_tokens=num_chars // _MAX_TOKEN_CHARS,  # at least
            context_tokens=facts.context_tokens,
        )


def has_tools(request: ChatRequest) -> bool:
    """Return whether the answer may call functions."""
    is_allowed = request.tool_choice.mode is not ToolMode.NONE
    return bool(request.tools) and is_allowed and not request.prompt_ids
