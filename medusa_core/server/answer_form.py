"""A request in the model's own form: prompt, tools and grammar, and how its answer is parsed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from medusa_core.messages import (
    DESCRIBED_JSON,
    THINK_TAGS,
    ChatMessage,
    GenerateSettings,
    ModelLoaded,
    ToolCallFormat,
)
from medusa_core.models.text.grammar_limits import MOST_CHARS
from medusa_core.models.text.tool_calls.tool_prompt import with_described_tools
from medusa_core.models.text.turns import without_tools
from medusa_core.server.answer_grammar import AnswerRules, Thoughts, answer_grammar
from medusa_core.server.api_error import ApiError, bad_request
from medusa_core.server.chat import ChatRequest, ToolMode
from medusa_core.server.limits import Limits

_LEAST_MARK_CHARS = 3  # some vocabularies have single letters as special tokens
_MOST_TOKEN_CHARS = 16  # on average; prose has 4


class AnswerForm(NamedTuple):
    """What the engine gets of a request, beside settings.

    Attributes:
        turns: The conversation; where the template knows no functions, it describes them.
        tools: Functions that the template is to describe.
        grammar: What the answer must match; empty for anything.
        marks: Names of tokens without text that calls are known by.
        tool_format: How calls are written; None where there are none.
        constraint: The field of the request that the grammar is made of, for errors.
    """

    turns: tuple[ChatMessage, ...]
    tools: tuple[str, ...]
    grammar: str
    marks: Mapping[int, str]
    tool_format: ToolCallFormat | None
    constraint: str = ""

    def as_turn(self, answer: ChatMessage) -> ChatMessage:
        """An answer as it stands in `turns` when its receiver sends it back."""
        is_described = self.tool_format is None or self.tool_format.is_described
        return answer if is_described else without_tools((answer,))[0]


def answer_form(request: ChatRequest, facts: ModelLoaded, settings: GenerateSettings) -> AnswerForm:
    """How an answer is asked for.

    Args:
        request: What is asked.
        facts: Of the model.
        settings: How it decodes.

    Raises:
        ApiError: Its schemas are too large together.
    """
    tool_format = tool_call_format(facts) if has_tools(request) else None
    if request.grammar and tool_format is not None:
        raise bad_request("A grammar and `tools` can't be combined: send one of them.", "grammar")
    marks = _marks(facts, tool_format)
    begins_inside = not request.prompt_ids and facts.thinking.opens(settings.thinks)
    may_think = _may_think(facts, settings)
    rules = AnswerRules(
        shape=tool_format,
        tools=request.tools,
        choice=request.tool_choice,
        schema=request.schema,
        thoughts=Thoughts.BEGUN
        if begins_inside
        else Thoughts.POSSIBLE
        if may_think
        else Thoughts.NONE,
        reasoning=facts.reasoning,
        grammar=request.grammar,
        mark_ids={name: token_id for token_id, name in marks.items()},
    )
    turns, tools = request.messages, request.tools if tool_format is not None else ()
    if tool_format is not None:
        turns, tools = read_turns(turns, tools, tool_format, request.tool_choice.is_parallel)
    constraint = _constraint(request, tool_format)
    grammar = answer_grammar(rules)
    if len(grammar) > MOST_CHARS:
        raise bad_request(
            f"The schemas of the request have {len(grammar):,} characters together; "
            f"{MOST_CHARS:,} are the most. Send fewer functions.",
            constraint,
        )
    return AnswerForm(turns, tools, grammar, marks, tool_format, constraint)


def _constraint(request: ChatRequest, tool_format: ToolCallFormat | None) -> str:
    if tool_format is not None:
        return "tools"
    if request.grammar:
        return "grammar"
    return "response_format" if request.schema else ""


def check_text_length(
    turns: Sequence[ChatMessage], tools: Sequence[str], facts: ModelLoaded, limits: Limits
) -> None:
    """Refuse a conversation that can't fit: no answer takes a step while its tokens are counted.

    Args:
        turns: The conversation.
        tools: Functions that the template describes.
        facts: Of the model.
        limits: What a request may cost.

    Raises:
        ApiError: It is far longer than the model's context.
    """
    most = max(limits.text_chars, facts.context_tokens * _MOST_TOKEN_CHARS)
    calls = (call.arguments for turn in turns for call in turn.tool_calls)
    num_chars = sum(map(len, (*(turn.content for turn in turns), *calls, *tools)))
    if num_chars > most:
        raise ApiError(
            400,
            f"The conversation has {num_chars:,} characters; {most:,} are the most for this model. "
            "Send less of it.",
            "messages",
            "context_length_exceeded",
            num_tokens=num_chars // _MOST_TOKEN_CHARS,  # at least
            context_tokens=facts.context_tokens,
        )


def read_turns(
    messages: tuple[ChatMessage, ...],
    tools: tuple[str, ...],
    tool_format: ToolCallFormat,
    is_parallel: bool = True,
) -> tuple[tuple[ChatMessage, ...], tuple[str, ...]]:
    """A conversation with functions, and those that the template is to describe.

    Args:
        messages: The turns.
        tools: Functions that may be called.
        tool_format: How calls are written.
        is_parallel: Several calls may come in one answer.
    """
    if not tools or tool_format.is_described:
        return messages, tools
    return with_described_tools(messages, tools, tool_format, is_parallel), ()


def tool_call_format(facts: ModelLoaded | None) -> ToolCallFormat:
    """How a model writes calls, up to the token that ends its answer."""
    if facts is None:
        return DESCRIBED_JSON
    ends = {name for token_id, name in facts.special_tokens if token_id in facts.end_ids}
    return facts.tool_calls.without_end(frozenset(ends))


def has_tools(request: ChatRequest) -> bool:
    """May the answer call functions?"""
    is_allowed = request.tool_choice.mode is not ToolMode.NONE
    return bool(request.tools) and is_allowed and not request.prompt_ids


def _may_think(facts: ModelLoaded, settings: GenerateSettings) -> bool:
    """Whether an answer may begin with reasoning that the prompt hasn't opened."""
    # A vocabulary with <think> tokens isn't enough: models without reasoning share it.
    start = facts.reasoning.start
    is_shown = bool(start) and (start != THINK_TAGS.start or start in facts.chat_template)
    return is_shown and not (settings.thinks is False and facts.thinking.can_switch)


def _marks(facts: ModelLoaded, tool_format: ToolCallFormat | None) -> Mapping[int, str]:
    texts = () if tool_format is None else tool_format.texts
    return {
        token_id: name
        for token_id, name in facts.special_tokens
        if len(name) >= _LEAST_MARK_CHARS and any(name in text for text in texts)
    }
