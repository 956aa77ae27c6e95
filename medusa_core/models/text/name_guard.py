"""Keep names of special tokens in messages and tools from being encoded as these tokens.

A guard character is inserted into each name before the template is rendered, and the prompt is
split there when it is encoded. So it doesn't matter where the template writes a text, or whether it
strips it or dumps it as JSON; and names that the template itself writes stay special tokens.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from medusa_core.chats.answer_text import find_spans
from medusa_core.messages import ChatMessage, ReasoningFormat, Role, ToolCall
from medusa_core.models.text.tokenizer import Tokenizer

_NOTHING = "(?!)"
_FIRST, _LAST = 0xE0A9, 0xF8FF  # private use: no text means anything by them


class NameGuard:
    """Guards the names of special tokens in one conversation.

    Attributes:
        is_needed: Whether there are such names, or reasoning tags in answers.
    """

    def __init__(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[str],
        tokenizer: Tokenizer,
        reasoning: ReasoningFormat,
    ) -> None:
        """Look for names.

        Args:
            tools: Functions that may be called.
            tokenizer: Tokenizer whose special tokens are guarded.
            reasoning: How the model's answers set it apart.
        """
        self._parts = tokenizer.literal_parts
        self._reasoning = reasoning._replace(tokens=())
        self._tag = re.compile("|".join(map(re.escape, reasoning.tags)) or _NOTHING)
        texts = [*tools, *(text for message in messages for text in _texts(message))]
        # JSON may write a name with escapes, which the template reads.
        self.is_needed = any("\\" in text or len(self._parts(text)) > 1 for text in texts) or any(
            self._has_tags(message) for message in messages
        )
        whole = "".join(texts).lower() if self.is_needed else ""
        codes = (
            code
            for code in range(_FIRST, _LAST)
            if chr(code) not in whole and f"u{code:04x}" not in whole
        )
        code = next(codes)
        self._mark = chr(code)
        self._written = re.compile(rf"{self._mark}|\\+u{code:04x}", re.IGNORECASE)

    def message(self, message: ChatMessage) -> ChatMessage:
        """Return a message with guards in its texts."""
        if not self.is_needed:
            return message
        return message.with_text(self._guarded(message.text))._replace(
            tool_calls=tuple(map(self._call, message.tool_calls)),
            tool_name=self._guarded(message.tool_name),
            call_id=self._guarded(message.call_id),
        )

    def message_with_reasoning(self, message: ChatMessage) -> ChatMessage:
        """Return a guarded message for templates that detect reasoning by its tags.

        The tags around an answer's reasoning stay unguarded. Further tags belong to its text and
        are guarded; otherwise such templates would drop all text before them.
        """
        guarded = self.message(message)
        if not self._has_tags(message):
            return guarded
        parts, end = [], 0
        for span in find_spans((), message.text, self._reasoning):
            parts.append(message.text[end : span.start])
            text, end = message.text[span.start : span.end], span.end
            parts.append(text if span.is_reasoning else self._guarded(self._without_tags(text)))
        parts.append(message.text[end:])
        return guarded.with_text("".join(parts))

    def tool(self, tool: str) -> str:
        """Return a function's description with guards in its texts."""
        return self._json(tool) if self.is_needed else tool

    def without(self, prompt: str) -> str:
        """Remove the guards from a rendered prompt."""
        return self._written.sub("", prompt) if self.is_needed else prompt

    def encode(
        self,
        text: str,
        encode: Callable[[str], list[int]],
        encode_within: Callable[[str], list[int]],
    ) -> list[int]:
        """Encode a part of a rendered prompt.

        Args:
            text: The part, with guards.
            encode: Encodes text at the beginning of the part.
            encode_within: Encodes text after a guard, as the continuation of other text.

        Returns:
            Token ids.
        """
        if not self.is_needed:
            return encode(text)
        first, *others = self._written.split(text)
        return [*encode(first), *(token_id for part in others for token_id in encode_within(part))]

    def _has_tags(self, message: ChatMessage) -> bool:
        """Whether an answer contains reasoning tags."""
        return message.role is Role.ASSISTANT and self._tag.search(message.text) is not None

    def _without_tags(self, text: str) -> str:
        """Guard reasoning tags, so that the template doesn't detect them."""
        return self._tag.sub(lambda tag: f"{tag[0][0]}{self._mark}{tag[0][1:]}", text)

    def _guarded(self, text: str) -> str:
        """Insert a guard into each name of a special token."""
        return self._mark.join(self._parts(text))

    def _call(self, call: ToolCall) -> ToolCall:
        """Guard the names in a tool call."""
        return ToolCall(
            self._guarded(call.call_id), self._guarded(call.name), self._json(call.arguments)
        )

    def _json(self, text: str) -> str:
        """Guard the strings within a JSON text; text that isn't JSON is guarded as a whole."""
        try:
            return json.dumps(self._value(json.loads(text)), ensure_ascii=False)
        except (ValueError, RecursionError):
            return self._guarded(text)

    def _value(self, value: Any) -> Any:
        """Guard all strings of a JSON value."""
        if isinstance(value, str):
            return self._guarded(value)
        if isinstance(value, list):
            return list(map(self._value, value))
        if isinstance(value, dict):
            return {self._guarded(key): self._value(item) for key, item in value.items()}
        return value


def _texts(message: ChatMessage) -> list[str]:
    """Return all texts of a message, in which names of special tokens could occur."""
    calls = (text for call in message.tool_calls for text in call)
    return [message.text, message.tool_name, message.call_id, *calls]
