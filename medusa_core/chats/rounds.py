"""Rounds of an answer: text of the model, then its tool calls and their results.

A prompt has answers, and an answer is a list of rounds. Each round is one generation (a `Generate`
with a request id of its own) that ends the answer or calls tools, whose results the next round
reads. In the history a round is one message whose parent is the prompt or the round before, so
each has its own steps, figures, spans and trace; two answers that differ in a later round share
the earlier ones.

The text of a round is what the model wrote. Spans of it are reasoning or answer; what lies between
spans, tags and calls in the model's format, isn't shown. A call is stored with its state before it
is run, so that a killed program neither loses it nor runs it twice.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from enum import Enum

from medusa_core.chats.answer_text import AnswerText
from medusa_core.messages import (
    ChatMessage,
    Content,
    GenerationDone,
    Role,
    StopReason,
    ToolCall,
    content_text,
)


class CallState(str, Enum):
    """State of a tool call."""

    REQUESTED = "requested"  # by the model; nothing has run
    APPROVED = "approved"
    DENIED = "denied"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    INTERRUPTED = "interrupted"  # the program ended while it ran, maybe after it took effect

    @property
    def is_open(self) -> bool:
        """Whether the call waits for its approval or its result."""
        return self in (CallState.REQUESTED, CallState.APPROVED, CallState.RUNNING)


class Approval(str, Enum):
    """How a call was approved."""

    NONE = ""
    ONCE = "once"
    CONVERSATION = "conversation"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """Result of a tool call.

    Attributes:
        content: What the model reads.
        is_error: Whether the call failed; the content says why.
        duration_s: Seconds that the tool took.
    """

    content: Content = ()
    is_error: bool = False
    duration_s: float = 0.0

    @property
    def text(self) -> str:
        """The text of the content."""
        return content_text(self.content)


@dataclass(frozen=True, slots=True)
class RoundCall:
    """A tool call of a round, with its approval and result.

    Attributes:
        call: The call; its arguments are those that run, if the user has edited them.
        state: State of the call.
        approval: How it was approved.
        result: Its result; None before the call has ended.
    """

    call: ToolCall
    state: CallState = CallState.REQUESTED
    approval: Approval = Approval.NONE
    result: ToolResult | None = None

    @property
    def message(self) -> ChatMessage:
        """The result as the model reads it; a call without one gets a note."""
        content: str | Content = _NOTES.get(self.state, "")
        if self.result is not None:
            content = self.result.content
        name, call_id = self.call.name, self.call.call_id
        return ChatMessage(Role.TOOL, content, tool_name=name, call_id=call_id)

    @property
    def not_run(self) -> RoundCall:
        """The call in a copy, which never runs by itself: it is interrupted or requested again."""
        if self.state is CallState.RUNNING:
            return replace(self, state=CallState.INTERRUPTED)
        if self.state in (CallState.REQUESTED, CallState.APPROVED):
            return replace(self, state=CallState.REQUESTED, approval=Approval.NONE)
        return self


_NOTES = {
    CallState.REQUESTED: "The call was not run.",
    CallState.APPROVED: "The call was not run.",
    CallState.DENIED: "The user denied this call.",
    CallState.RUNNING: "The call has no result.",
    CallState.INTERRUPTED: "The call was interrupted; its result is unknown.",
}


def is_same_call(call: ToolCall, other: ToolCall) -> bool:
    """Return whether two calls have the same function and equal arguments."""
    if call.name != other.name:
        return False
    try:
        return bool(json.loads(call.arguments or "{}") == json.loads(other.arguments or "{}"))
    except (ValueError, RecursionError):
        return call.arguments == other.arguments


@dataclass(slots=True)
class Round:
    """One generation of an answer, complete or not.

    Attributes:
        id: Id of the round, of its request, and of its message in the history.
        content: Its steps and text.
        calls: Tool calls at its end.
        done: Final event; None before the end, or if the generation failed.
        is_cut: Whether it was cut: the program ended, or the engine failed.
        created_s: Unix time of its creation in seconds.
    """

    id: str
    content: AnswerText = field(default_factory=AnswerText)
    calls: tuple[RoundCall, ...] = ()
    done: GenerationDone | None = None
    is_cut: bool = False
    created_s: float = 0.0

    @property
    def token_ids(self) -> tuple[int, ...]:
        """Tokens of the round; those of its steps if it was cut."""
        if self.done is not None:
            return self.done.token_ids
        return self.content.visible_tokens if self.is_cut else ()

    @property
    def ends_with_calls(self) -> bool:
        """Whether the model ended it with calls; those of a round that was cut don't run."""
        reasons = (StopReason.EOS, StopReason.STOP_STRING)
        return bool(self.calls) and self.done is not None and self.done.stop_reason in reasons

    @property
    def message(self) -> ChatMessage:
        """The text with its reasoning, to be continued."""
        return ChatMessage(Role.ASSISTANT, self.content.text, self.token_ids)

    def messages(self, *, keeps_reasoning: bool) -> tuple[ChatMessage, ...]:
        """Return the round as messages: the model's, then a result of each call.

        Args:
            keeps_reasoning: Whether to keep the reasoning, for later rounds of the same answer.
        """
        content = self.content
        text, has_reasoning = content.answer, content.reasoning_end > 0
        # The token ids include the reasoning, so they are passed on only with it or without any.
        if self.calls:
            keeps_ids = keeps_reasoning or not has_reasoning
            if keeps_reasoning and has_reasoning:
                text = f"{content.reasoning.start}{content.thought}{content.reasoning.end}{text}"
        else:
            text = content.text if keeps_reasoning else text
            keeps_ids = text == content.text
        calls = tuple(call.call for call in self.calls)
        ids = self.token_ids if keeps_ids else ()
        answer = ChatMessage(Role.ASSISTANT, text, ids, calls)
        return (answer, *(call.message for call in self.calls))

    def end(self, done: GenerationDone | None = None) -> None:
        """Complete the round.

        Args:
            done: Its final event; None if it was cut or failed.
        """
        self.done = done
        self.content.finish(None if done is None else done.text)
        self.calls = self.calls or tuple(map(RoundCall, self.content.calls))
        self.is_cut = done is None and bool(self.content.text)
