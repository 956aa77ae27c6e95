"""What is asked of a model and what it answers, whichever API it came by."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from medusa_core.messages import ChatMessage, GenerateSettings, GenerationDone, TokenLogprob
from medusa_core.models.text.tool_calls.events import CallDelta, CallStarted


class ToolMode(str, Enum):
    """Whether the model may call functions."""

    AUTO = "auto"
    NONE = "none"
    REQUIRED = "required"


class ToolChoice(NamedTuple):
    """Which functions may be called.

    Attributes:
        mode: Whether.
        name: The only one that may be; empty for any.
        is_parallel: Several may be called in one answer.
    """

    mode: ToolMode = ToolMode.AUTO
    name: str = ""
    is_parallel: bool = True


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request for one answer.

    Attributes:
        model: Id of the model; empty for the loaded one.
        messages: The conversation; an assistant's message at the end is continued.
        settings: How to decode.
        open_settings: Names of those settings that the request leaves open: for them counts what
            the makers of the model advise.
        tools: Functions, each a JSON object of `name`, `description` and `parameters`, as text.
        tool_choice: Which of them may be called.
        schema: A JSON schema that the answer must match, as text; empty for free text.
        grammar: A Lark grammar that the answer must match; empty for none.
        num_logprobs: Alternatives to each token; −1 where no probability is asked for.
        prompt_ids: Tokens to go on behind, instead of messages.
        warning: What of the request isn't followed, for people; empty for nothing.
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
    """A token of an answer with its probability.

    Attributes:
        chosen: The token.
        alternatives: The most likely ones at its place, the best first.
    """

    chosen: TokenLogprob
    alternatives: tuple[TokenLogprob, ...]


class TextDelta(NamedTuple):
    """More of an answer's text.

    Attributes:
        text: What is new.
        is_thought: It belongs to the thoughts before the answer.
        tokens: Its tokens with their probabilities, where these are asked for.
    """

    text: str
    is_thought: bool = False
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
        num_prompt_tokens: Of the rendered conversation.
        num_cached_tokens: Of these, those that weren't computed again.
        num_answer_tokens: All that were decoded.
        num_thought_tokens: Of these, those of the thoughts.
        num_drafted: Draft nodes that were verified.
        num_drafts_accepted: Those that became text.
        done: What the engine says of it.
    """

    finish: Finish
    stop: str
    num_prompt_tokens: int
    num_cached_tokens: int
    num_answer_tokens: int
    num_thought_tokens: int
    num_drafted: int
    num_drafts_accepted: int
    done: GenerationDone


AnswerDelta = TextDelta | CallStarted | CallDelta
AnswerPart = AnswerDelta | AnswerEnd
