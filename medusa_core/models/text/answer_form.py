"""Convert a conversation with tools to a model's form: messages, functions, grammar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from medusa_core.chats.tool_calls.call_reader import CallForm
from medusa_core.messages import (
    DESCRIBED_JSON,
    THINK_TAGS,
    ChatMessage,
    GenerateSettings,
    ModelLoaded,
    Role,
    ToolCallFormat,
)
from medusa_core.models.text.answer_grammar import (
    AnswerRules,
    ReasoningState,
    ToolChoice,
    answer_grammar,
)
from medusa_core.models.text.grammar_limits import MAX_GRAMMAR_CHARS
from medusa_core.models.text.schema_check import check_json_schema
from medusa_core.models.text.tool_calls.quoted_results import (
    repeats_calls,
    with_quoted_results,
)
from medusa_core.models.text.tool_calls.tool_prompt import with_described_tools
from medusa_core.tools.call_loop import MOST_ROUNDS
from medusa_core.tools.results import (
    MOST_RESULT_BYTES,
    ResultRoom,
    cut_results,
    cut_text,
    most_tokens,
)

_FILLED = 5 / 8  # of the context by a prompt with results, whose tokens are estimated
_MIN_MARKER_CHARS = 3  # some vocabularies have single letters as special tokens


class ChatForm(NamedTuple):
    """A conversation of the chat in the model's form.

    Attributes:
        messages: The conversation; it describes the functions if the chat template can't.
        tools: Functions for the chat template.
        grammar: Grammar of the answer; empty for none.
        calls: How the model writes calls; None if it is offered no tools.
    """

    messages: tuple[ChatMessage, ...]
    tools: tuple[str, ...] = ()
    grammar: str = ""
    calls: CallForm | None = None


def chat_form(
    facts: ModelLoaded,
    settings: GenerateSettings,
    messages: tuple[ChatMessage, ...],
    tools: tuple[str, ...],
    num_rounds: int = 1,
    *,
    quotes_results: bool = False,
) -> ChatForm:
    """Convert a conversation of the chat to the model's form.

    A model that only repeated its calls gets their results quoted, and no tools; as does one that
    has had its last round of calls. Of long results the model gets the beginning: none takes more
    than about a quarter of the context, nor do all together more than it leaves.

    Args:
        facts: Event of the loaded model.
        settings: Generation settings, with the schema of the answer.
        messages: The conversation with its system prompt.
        tools: Functions that the model may call, as in `Generate.tools`.
        num_rounds: Number of the answer's rounds since the user asked, this one included.
        quotes_results: Whether to quote results in any case, for a model that writes its calls
            without the template's markers.

    Raises:
        GrammarError: The schema is invalid.
    """
    room = _result_room(messages, tools, facts.context_tokens)
    if tools and (num_rounds > MOST_ROUNDS or repeats_calls(messages)):
        messages, tools = with_quoted_results(messages, room, may_call=False), ()
    elif tools and quotes_results:
        messages = with_quoted_results(messages, room, may_call=True)
    messages = _with_short_results(messages, room)
    if facts.is_remote and not tools:
        return ChatForm(messages)  # the other machine enforces the schema
    tool_format = tool_call_format(facts) if tools else None
    markers = call_markers(facts, tool_format)
    form: CallForm | None = None
    described, offered = messages, tools
    if tool_format is not None:
        form = CallForm(tool_format, tools, tuple(markers.items()))
        described, offered = prompt_messages(messages, tools, tool_format)
    if facts.is_remote:
        return ChatForm(described, offered, "", form)
    rules = AnswerRules(
        tool_format=tool_format,
        tools=tools,
        choice=ToolChoice(),
        schema=settings.json_schema,
        reasoning_state=reasoning_state(facts, settings),
        reasoning=facts.reasoning,
        marker_ids={name: token_id for token_id, name in markers.items()},
    )
    if settings.json_schema:
        check_json_schema(settings.json_schema)
    grammar = answer_grammar(rules)
    # Without a grammar calls are as the model writes them, and checked when they run. What is
    # continued may have been written without tools, and violate it.
    is_continued = bool(messages) and messages[-1].role is Role.ASSISTANT
    if not settings.json_schema and (is_continued or len(grammar) > MAX_GRAMMAR_CHARS):
        grammar = ""
    return ChatForm(described, offered, grammar, form)


def _result_room(
    messages: tuple[ChatMessage, ...], tools: tuple[str, ...], context_tokens: int
) -> ResultRoom:
    """Return the room of results in a prompt, which leaves some for the answer.

    Args:
        context_tokens: Length of the context; 0 if unknown.
    """
    if not context_tokens:
        return ResultRoom(MOST_RESULT_BYTES, MOST_RESULT_BYTES * len(messages))
    last = max((n for n, one in enumerate(messages) if one.role is Role.USER), default=0)
    kept = (one for n, one in enumerate(messages) if n >= last or one.role is Role.SYSTEM)
    texts = [
        text
        for one in kept
        if one.role is not Role.TOOL
        for text in (one.text, *(call.arguments for call in one.tool_calls))
    ]
    used = sum(map(most_tokens, (*texts, *tools)))
    return ResultRoom(context_tokens, int(context_tokens * _FILLED) - used)


def _with_short_results(
    messages: tuple[ChatMessage, ...], room: ResultRoom
) -> tuple[ChatMessage, ...]:
    """Cut the results of tools that are too long for a prompt.

    A result is cut alike in each prompt while all fit, so that prompts keep their common prefix.
    Those of earlier answers go with the oldest messages when the context is full.
    """
    last = max((n for n, one in enumerate(messages) if one.role is Role.USER), default=0)
    places = [n for n, one in enumerate(messages) if one.role is Role.TOOL]
    short = {n: cut_text(messages[n].text, room.each_bytes) for n in places if n < last}
    of_answer = [n for n in places if n >= last]
    short |= zip(of_answer, cut_results([messages[n].text for n in of_answer], room), strict=True)
    return tuple(one.with_text(short[n]) if n in short else one for n, one in enumerate(messages))


def prompt_messages(
    messages: tuple[ChatMessage, ...],
    tools: tuple[str, ...],
    tool_format: ToolCallFormat,
    is_parallel: bool = True,
) -> tuple[tuple[ChatMessage, ...], tuple[str, ...]]:
    """Return the messages and the functions for the chat template.

    If the template can't describe functions, a system message does.

    Args:
        tools: Functions that may be called.
        tool_format: Format of tool calls.
        is_parallel: Whether one answer may have several calls.
    """
    if not tools or tool_format.is_described:
        return messages, tools
    return with_described_tools(messages, tools, tool_format, is_parallel), ()


def tool_call_format(facts: ModelLoaded | None) -> ToolCallFormat:
    """Return the format of a model's calls, without the token that ends an answer."""
    if facts is None:
        return DESCRIBED_JSON
    ends = {name for token_id, name in facts.special_tokens if token_id in facts.end_ids}
    return facts.tool_calls.without_end(frozenset(ends))


def reasoning_state(
    facts: ModelLoaded, settings: GenerateSettings, *, is_chat: bool = True
) -> ReasoningState:
    """Return whether an answer begins with reasoning.

    Args:
        is_chat: Whether the chat template writes the prompt.
    """
    if is_chat and facts.thinking.opens(settings.thinks):
        return ReasoningState.BEGUN
    return ReasoningState.POSSIBLE if _may_think(facts, settings) else ReasoningState.NONE


def _may_think(facts: ModelLoaded, settings: GenerateSettings) -> bool:
    """Return whether an answer may begin with reasoning whose start tag isn't in the prompt."""
    # A vocabulary with <think> tokens isn't enough: models without reasoning share it.
    start = facts.reasoning.start
    is_shown = bool(start) and (start != THINK_TAGS.start or start in facts.chat_template)
    return is_shown and not (settings.thinks is False and facts.thinking.can_switch)


def call_markers(facts: ModelLoaded, tool_format: ToolCallFormat | None) -> Mapping[int, str]:
    """Return the special tokens that occur in the markers of calls."""
    texts = () if tool_format is None else tool_format.texts
    return {
        token_id: name
        for token_id, name in facts.special_tokens
        if len(name) >= _MIN_MARKER_CHARS and any(name in text for text in texts)
    }
