"""Requests for answers and the parts of answers, independent of the API."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from medusa_core.chats.tool_calls.events import CallDelta, CallStarted
from medusa_core.messages import (
    ChatMessage,
    GenerateSettings,
    GenerationDone,
    TokenLogprob,
    ToolCall,
)
from medusa_core.models.text.answer_grammar import ToolChoice


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request for one answer.

    Attributes:
        model: Id of the model; empty for the loaded one.
        messages: The conversation; an assistant's message at the end is continued.
        settings: Generation settings.
        open_settings: Names of the settings that the request leaves to the model's `Advice`.
        tools: Functions, each a JSON object of `name`, `description` and `parameters`, as text.
        tool_choice: Which functions may be called.
        schema: JSON schema that the answer must match, as text; empty for free text.
        grammar: Lark grammar that the answer must match; empty for none.
        num_logprobs: Number of alternatives to each token; -1 for no log probabilities.
        prompt_ids: Token ids of a prompt to continue, instead of messages.
        warning: Parts of the request that are not followed, for people; empty for none.
    """

    model: str
    messages: tuple[ChatMessage, ...]
    settings: GenerateSettings
    open_settings: frozenset[str] = frozenset()
    tools: tuple[str, ...] = ()
    tool_choice: ToolChoice = ToolChoice()  # noqa: RUF009 - frozen
    schema: str = ""
    grammar: str = ""
    num_logprobs: int = -1
    prompt_ids: tuple[int, ...] = ()
    warning: str = ""


class ScoredToken(NamedTuple):
    """A token of an answer with its log probability.

    Attributes:
        alternatives: The most likely tokens at its position, best first.
    """

    chosen: TokenLogprob
    alternatives: tuple[TokenLogprob, ...]


class TextDelta(NamedTuple):
    """New text of an answer.

    Attributes:
        is_reasoning: Whether it belongs to the reasoning.
        tokens: Tokens of the text with their log probabilities, if requested.
    """

    text: str
    is_reasoning: bool = False
    tokens: tuple[ScoredToken, ...] = ()


class Finish(str, Enum):
    """Why an answer ended."""

    STOP = "stop"
    STOP_STRING = "stop_string"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"


class AnswerEnd(NamedTuple):
    """The last part of an answer.

    Attributes:
        finish: Why it ended.
        stop: The stop string that ended it; empty for others.
        num_prompt_tokens: Tokens of the rendered prompt.
        num_cached_tokens: Prompt tokens that were cached.
        num_answer_tokens: Decoded tokens.
        num_reasoning_tokens: Decoded tokens of the reasoning.
        num_drafted: Draft tokens that were verified.
        num_drafts_accepted: Draft tokens that were accepted.
        done: The engine's event.
    """

    finish: Finish
    stop: str
    num_prompt_tokens: int
    num_cached_tokens: int
    num_answer_tokens: int
    num_reasoning_tokens: int
    num_drafted: int
    num_drafts_accepted: int
    done: GenerationDone


AnswerDelta = TextDelta | CallStarted | CallDelta
AnswerPart = AnswerDelta | AnswerEnd


@dataclass(slots=True)
class Answer:
    """An answer so far.

    Attributes:
        text: The text, without reasoning.
        reasoning: The reasoning before it.
        calls: Tool calls.
        tokens: Tokens of the text with their probabilities, if requested.
        num_parts: Number of the parts so far.
        end: The last part; None before it.
    """

    text: str = ""
    reasoning: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    tokens: list[ScoredToken] = field(default_factory=list)
    num_parts: int = 0
    end: AnswerEnd | None = None

    def add(self, part: AnswerPart) -> None:
        """Add the next part."""
        self.num_parts += 1
        if isinstance(part, CallStarted):
            self.calls.append(ToolCall(part.call_id, part.name, ""))
        elif isinstance(part, CallDelta):
            call = self.calls[part.place]
            self.calls[part.place] = call._replace(arguments=call.arguments + part.text)
        elif isinstance(part, AnswerEnd):
            self.end = part
        elif part.is_reasoning:
            self.reasoning += part.text
        else:
            self.text += part.text
            self.tokens += part.tokens
