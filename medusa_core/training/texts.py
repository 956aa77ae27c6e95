"""Texts to count phrases in: plain text files, or JSON rows in common formats.

A row is a conversation (`messages`, `conversations`), of which the answers are used, or has a
text: `text`, `content`, `response`, `output`, `completion` or `answer`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from medusa_core.errors import TrainingError
from medusa_core.i18n import tr
from medusa_core.training.data_files import files_of, rows_of, text_of

_OF_ROWS = (".jsonl", ".json")
_SUFFIXES = (".txt", ".md", *_OF_ROWS)
_NAMES = ("text", "content", "response", "output", "completion", "answer")
_ANSWERERS = ("assistant", "gpt", "model", "bot")
_PART_CHARS = 4000  # characters per part of a plain text file: some parts are held out


def read_texts(paths: Sequence[Path]) -> Iterator[str]:
    """Yield the texts of files and folders.

    Raises:
        TrainingError: A file can't be read; the message names the line.
    """
    for path in paths:
        for file in files_of(path, _SUFFIXES):
            text = text_of(file)
            if file.suffix in _OF_ROWS:
                for where, row in rows_of(text, file.name):
                    yield from _texts_in(row, where)
            else:
                yield from _parts(text)


def _parts(text: str) -> Iterator[str]:
    """Split a long text, at line ends if possible."""
    begin = 0
    while begin < len(text):
        end = begin + _PART_CHARS
        if end < len(text):
            end = text.rfind("\n", begin, end) + 1 or end
        yield text[begin:end]
        begin = end


def _texts_in(row: Any, position: str) -> Iterator[str]:
    """Yield the texts of a JSON row: a string, the answers of a conversation, or a text field."""
    if isinstance(row, str):
        yield row
        return
    messages = row.get("messages", row.get("conversations")) if isinstance(row, dict) else None
    if isinstance(messages, list):
        yield from _answers_in(messages)
        return
    named = (row.get(name) for name in _NAMES) if isinstance(row, dict) else ()
    text = next((one for one in named if isinstance(one, str)), None)
    if text is None:
        raise TrainingError(
            tr("{0} holds no text.", position),
            tr("A row has messages, conversations or {0}.", ", ".join(_NAMES)),
        )
    yield text


def _answers_in(messages: Sequence[Any]) -> Iterator[str]:
    """Yield the assistant's messages."""
    for message in messages:
        if not isinstance(message, dict):
            continue
        if str(message.get("role", message.get("from"))) in _ANSWERERS:
            content = message.get("content", message.get("value"))
            if isinstance(content, str):
                yield content
