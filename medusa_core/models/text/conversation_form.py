"""Rewrite conversations for chat templates that refuse them or omit parts of them.

Templates are written for one system message at the start, then alternating user and assistant.
Anything else they may render, refuse, move to the top or omit. A form rewrites a message near its
place and moves nothing to the top, so that the prompt of a longer conversation begins with the
tokens of the shorter one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from medusa_core.messages import ChatMessage, Role, ToolCall
from medusa_core.models.text.template_messages import without_tools

_ID_CHARS = 9  # of a call's id, where the template demands it (Mistral)


class Systems(IntEnum):
    """System messages that keep their role; others become text of a user's message."""

    ANYWHERE = 0
    FIRST = 1
    NOWHERE = 2


class Calls(IntEnum):
    """Ways to pass an answer with tool calls to the template, in order of increasing change."""

    KEPT = 0
    SPLIT = 1  # text and each call in answers of their own, each call followed by its result
    TEXT = 2


class ConversationForm(NamedTuple):
    """A way to rewrite a conversation.

    Attributes:
        systems: Which system messages keep their role.
        merges: Whether consecutive messages of one role are joined, and a user's comes first.
        calls: How answers with calls are passed.
        calls_with_text: How answers with calls and text are passed.
        parallel_calls: How answers with several calls are passed.
        calls_before_question: How answers with calls are passed if no answer follows the results.
        has_text_arguments: Whether arguments are passed as JSON text instead of objects.
        has_short_ids: Whether call ids are shortened to nine letters and digits.
    """

    systems: Systems = Systems.ANYWHERE
    merges: bool = False
    calls: Calls = Calls.KEPT
    calls_with_text: Calls = Calls.KEPT
    parallel_calls: Calls = Calls.KEPT
    calls_before_question: Calls = Calls.KEPT
    has_text_arguments: bool = False
    has_short_ids: bool = False

    def apply(self, messages: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
        """Rewrite a conversation; all texts are kept, in their order."""
        rewritten: Iterable[ChatMessage] = self._rewrite_calls(messages)
        if self.systems is not Systems.ANYWHERE:
            rewritten = _fold_systems(rewritten, keeps_first=self.systems is Systems.FIRST)
        return tuple(_merge(rewritten) if self.merges else rewritten)

    def alternatives(self) -> Iterator[ConversationForm]:
        """Yield this form, then forms that change more, in order of increasing change."""
        for calls in Calls:
            for systems in Systems:
                for merges in (False, True):
                    if systems >= self.systems and merges >= self.merges:
                        yield self._replace(
                            systems=systems,
                            merges=merges,
                            calls=max(calls, self.calls),
                            calls_with_text=max(calls, self.calls_with_text),
                            parallel_calls=max(calls, self.parallel_calls),
                            calls_before_question=max(calls, self.calls_before_question),
                        )

    def _rewrite_calls(self, messages: Sequence[ChatMessage]) -> Iterator[ChatMessage]:
        """Rewrite each answer with tool calls together with the results after it."""
        index = 0
        while index < len(messages):
            message = messages[index]
            start = index = index + 1
            if message.role is not Role.TOOL and not message.tool_calls:
                yield message
                continue
            while index < len(messages) and messages[index].role is Role.TOOL:
                index += 1
            way = self._call_handling(message, messages[index : index + 1])
            round_ = (message, *messages[start:index])
            if way is Calls.TEXT:
                yield from without_tools(round_)
            else:
                yield from map(self._rewrite_ids, _split(*round_) if way is Calls.SPLIT else round_)

    def _call_handling(self, message: ChatMessage, following: Sequence[ChatMessage]) -> Calls:
        """Return the strongest rewriting that a feature of the answer requires."""
        ways = [self.calls]
        if message.text:
            ways.append(self.calls_with_text)
        if len(message.tool_calls) > 1:
            ways.append(self.parallel_calls)
        if any(one.role is not Role.ASSISTANT for one in following):
            ways.append(self.calls_before_question)
        return max(ways)

    def _rewrite_ids(self, message: ChatMessage) -> ChatMessage:
        """Rewrite the call ids and arguments of a message."""
        calls = tuple(map(self._rewrite_call, message.tool_calls))
        return message._replace(tool_calls=calls, call_id=self._call_id(message.call_id))

    def _rewrite_call(self, call: ToolCall) -> ToolCall:
        """Rewrite id and arguments of a call."""
        # Arguments are parsed for the template: a text in JSON becomes a text.
        arguments = json.dumps(call.arguments) if self.has_text_arguments else call.arguments
        return ToolCall(self._call_id(call.call_id), call.name, arguments)

    def _call_id(self, call_id: str) -> str:
        """Shorten a call id to nine letters or digits where the template demands it (Mistral)."""
        if not self.has_short_ids or (len(call_id) == _ID_CHARS and call_id.isalnum()):
            return call_id
        return hashlib.sha256(call_id.encode()).hexdigest()[:_ID_CHARS] if call_id else ""


def _joined(*texts: str) -> str:
    """Join texts with blank lines."""
    return "\n\n".join(text for text in texts if text)


def _fold_systems(messages: Iterable[ChatMessage], *, keeps_first: bool) -> Iterator[ChatMessage]:
    """Prepend system messages to the next user's message, or make them users' messages.

    Args:
        keeps_first: Join those at the start of the conversation into one system message instead.
    """
    texts: list[str] = []
    may_keep = keeps_first
    for message in messages:
        if message.role is Role.SYSTEM:
            texts.append(message.text)
            continue
        if may_keep and texts:
            yield ChatMessage(Role.SYSTEM, _joined(*texts))
        elif message.role is Role.USER:
            message = message.with_text(_joined(*texts, message.text))
        elif any(texts):
            yield ChatMessage(Role.USER, _joined(*texts))
        texts, may_keep = [], False
        yield message
    if texts:
        yield ChatMessage(Role.SYSTEM if may_keep else Role.USER, _joined(*texts))


def _merge(messages: Iterable[ChatMessage]) -> Iterator[ChatMessage]:
    """Join consecutive messages of one role; insert an empty user's message before a first answer.

    A joined answer loses its `token_ids`, which are those of a single answer.
    """
    last: ChatMessage | None = None
    for message in messages:
        if last is not None and last.role is message.role and _can_join(last):
            content = _joined(last.text, message.text)
            last = ChatMessage(last.role, content, tool_calls=message.tool_calls)
            continue
        if last is not None:
            yield last
        if message.role is Role.ASSISTANT and (last is None or last.role is Role.SYSTEM):
            yield ChatMessage(Role.USER, "")
        last = message
    if last is not None:
        yield last


def _can_join(message: ChatMessage) -> bool:
    """Whether a message may be merged with its neighbour: tool calls and results stay separate."""
    return message.role is not Role.TOOL and not message.tool_calls


def _split(answer: ChatMessage, *results: ChatMessage) -> Iterator[ChatMessage]:
    """Yield an answer's text, then each call followed by its result."""
    left = list(results)
    if answer.text:
        yield answer._replace(tool_calls=())
    for call in answer.tool_calls:
        yield ChatMessage(Role.ASSISTANT, "", tool_calls=(call,))
        own = next((one for one in left if one.call_id == call.call_id), None)
        if own is not None:
            left.remove(own)
            yield own
    yield from left
