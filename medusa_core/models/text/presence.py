"""Check that a rendered prompt contains every message of a conversation, in order."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from medusa_core.chats.answer_text import find_spans
from medusa_core.chats.reasoning import answer_text
from medusa_core.messages import THINK_TAGS, ChatMessage, ReasoningFormat, Role

_TAIL_CHARS = 40
# Reasoning ends with a tag: whatever a template drops of an answer does.
_TAG_END = re.compile(r"[>\]]")
_UNICODE_ESCAPES = re.compile(r"(?:\\+u[0-9a-fA-F]{4})+")
_IGNORED = re.compile(r"""\\+[nrtbf]?|[\s"'<>&/]+""")


def first_missing(
    messages: Sequence[ChatMessage], prompt: str, reasoning: ReasoningFormat = THINK_TAGS
) -> int | None:
    """Find the first message whose text isn't in the prompt after the text of the previous ones.

    Reasoning in answers may be missing, because templates drop it on purpose.

    Args:
        prompt: The rendered prompt.
        reasoning: Format of the reasoning in answers.

    Returns:
        The index of the message; None if all texts are there, in the order of the messages.
    """
    finder = _Finder(prompt)
    for index, message in enumerate(messages):
        is_answer = message.role is Role.ASSISTANT
        content = _without_reasoning(message.text, reasoning) if is_answer else message.text
        texts = [content, *(text for call in message.tool_calls for text in _call_texts(*call[1:]))]
        if not finder.find(texts) and not (is_answer and finder.find([_tail(content), *texts[1:]])):
            return index
    return None


class _Finder:
    """Finds texts in a prompt, from a position that only moves forward.

    The earliest match is taken, so the position never passes the true one. White space and escapes
    are normalized only if a text isn't found verbatim, once for the rest of the prompt; so the
    whole check takes time linear in the prompt's length.
    """

    def __init__(self, prompt: str) -> None:
        self._rest = prompt
        self._position = 0
        self._is_normal = False

    def find(self, texts: Iterable[str]) -> bool:
        """Move past texts, which may come in any order; return False if one isn't found."""
        stripped = [text.strip() for text in texts]
        if not self._is_normal:
            if self._move(stripped):
                return True
            self._rest, self._position = _normalized(self._rest[self._position :]), 0
            self._is_normal = True
        return self._move([_normalized(text) for text in stripped])

    def _move(self, texts: Iterable[str]) -> bool:
        """Find each text after the current position; move past the last one if all are there."""
        end = self._position
        for text in texts:
            at = self._rest.find(text, self._position)
            if at < 0:
                return False
            end = max(end, at + len(text))
        self._position = end
        return True


def _normalized(text: str) -> str:
    """Remove white space and the escapes of JSON and HTML from a text."""
    text = html.unescape(html.unescape(text)) if "&" in text else text
    return _IGNORED.sub("", _UNICODE_ESCAPES.sub(_unescaped, text))


def _unescaped(match: re.Match[str]) -> str:
    """Decode the Unicode escapes of a match; surrogate pairs make one character."""
    codes = re.findall("[0-9a-fA-F]{4}", match[0])
    return bytes.fromhex("".join(codes)).decode("utf-16-be", "replace")


def _call_texts(name: str, arguments: str) -> Iterator[str]:
    """Yield the texts of a call that must be in the prompt: name, argument keys and values."""
    yield name
    try:
        yield from _leaves(json.loads(arguments or "{}"))
    except (ValueError, RecursionError):
        yield arguments


def _leaves(value: Any) -> Iterator[str]:
    """Yield the keys and values of nested JSON as they occur in text."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, str):
        yield value
    elif value is not None and not isinstance(value, bool):  # which Python writes in another way
        yield json.dumps(value)


def _without_reasoning(content: str, reasoning: ReasoningFormat) -> str:
    """Return an answer without reasoning and without reasoning tags."""
    if not any(tag in content for tag in reasoning.tags):
        return content
    tags = reasoning._replace(tokens=())
    return answer_text(content, find_spans((), content, tags))


def _tail(content: str) -> str:
    """Return the end of an answer, after reasoning in an unknown format."""
    return _TAG_END.split(content)[-1][-_TAIL_CHARS:]
