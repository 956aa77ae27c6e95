"""The prompts file of a batch: one JSON object per line."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from medusa_core.errors import PromptFileError
from medusa_core.i18n import tr
from medusa_core.messages import ChatMessage, Role
from medusa_core.system.jobs.batch.row import LineId

log = logging.getLogger(__name__)

_MAX_LINE_BYTES = 16 << 20
_FORM = tr('Each line must be {"prompt": "…"} or {"messages": […]}.')
_ROLES = {role.value: role for role in Role}


class BatchLine(NamedTuple):
    """One line.

    Attributes:
        line_id: Its `id`; without one, the number of the line.
        messages: The conversation; empty if the line is invalid.
        problem: Why the line is invalid; else empty.
    """

    line_id: LineId
    messages: tuple[ChatMessage, ...]
    problem: str = ""


def read_lines(path: Path) -> list[BatchLine]:
    """Read a file of prompts; invalid lines are returned with their problem.

    Ids are unique: a line with a repeated id is invalid, and gets another one.

    Raises:
        PromptFileError: The file can't be read, or none of its lines can be answered.
    """
    taken: set[str] = set()
    lines = []
    try:
        for number, raw in _raw_lines(path):
            line = _parse(raw, number)
            if str(line.line_id) in taken:
                problem = line.problem or f"The id {str(line.line_id)[:80]!r} came before."
                line = BatchLine(_free_id(number, taken), (), problem)
            taken.add(str(line.line_id))
            lines.append(line)
    except OSError as error:
        raise PromptFileError(
            tr("{0} can't be read: {1}.", path, error.strerror or error),
            "Name a file of prompts, one JSON object a line.",
        ) from error
    if not any(line.messages for line in lines):
        raise PromptFileError(tr("{0} holds no prompt that can be answered.", path), _FORM)
    return lines


def _raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield each line that isn't blank with its 1-based number."""
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            if raw.strip():
                yield number, raw


def _free_id(number: int, taken: set[str]) -> str:
    """An id for a line whose own id is taken."""
    name = f"line {number}"
    while name in taken:
        name += "'"
    return name


def _parse(raw: bytes, number: int) -> BatchLine:
    """Parse a line of JSON; a line that can't be answered is returned with its problem."""
    if len(raw) > _MAX_LINE_BYTES:
        return BatchLine(number, (), f"The line has more than {_MAX_LINE_BYTES >> 20} MiB.")
    try:
        body: Any = json.loads(raw)
        json.dumps(body, ensure_ascii=False).encode()  # fails for lone surrogates
    except (ValueError, RecursionError) as error:
        log.debug("line %d is no JSON: %s", number, error)
        return BatchLine(number, (), _FORM)
    if not isinstance(body, dict):
        return BatchLine(number, (), _FORM)
    line_id = body.get("id", number)
    if isinstance(line_id, bool) or not isinstance(line_id, str | int):
        return BatchLine(number, (), "Its id is neither a text nor a whole number.")
    try:
        return BatchLine(line_id, _messages(body))
    except ValueError as error:
        return BatchLine(line_id, (), str(error))


def _messages(body: dict[str, Any]) -> tuple[ChatMessage, ...]:
    """The conversation of a line: its `messages`, or its `prompt` as a user's message.

    Raises:
        ValueError: There is neither, or they are invalid; the text says why.
    """
    prompt, messages = body.get("prompt"), body.get("messages")
    if (prompt is None) == (messages is None):
        raise ValueError('The line needs either "prompt" or "messages".')
    if messages is None:
        if not isinstance(prompt, str) or not prompt.strip():
            raise ValueError("Its prompt is no text.")
        return (ChatMessage(Role.USER, prompt),)
    if not isinstance(messages, list) or not messages:
        raise ValueError("Its messages are no list.")
    return tuple(map(message_of, messages))


def message_of(body: Any) -> ChatMessage:
    """Parse a message of a chat API: `{"role": …, "content": …}`.

    Raises:
        ValueError: It is invalid; the text says why.
    """
    match body:
        case {"role": str(role), "content": str(content)} if role in _ROLES:
            return ChatMessage(_ROLES[role], content)
    raise ValueError(
        f"One of its messages has no text as content, or no role of {', '.join(_ROLES)}."
    )
