"""Read a large JSON file value by value, since it may not fit into memory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, TextIO

from medusa_core.chats.history.exchange.our_json import (
    FORMAT,
    VERSION,
)
from medusa_core.errors import ConversationFileError
from medusa_core.i18n import tr

_CHUNK = 1 << 18
_MOST_CHARS = 32 << 20  # of one conversation
_OURS = re.compile(
    rf'\s*\{{\s*"format"\s*:\s*"{FORMAT}"\s*,\s*"version"\s*:\s*(\d{{1,9}})\s*,'
    r'\s*"conversations"\s*:\s*\['
)
_SPACE = re.compile(r"[ \t\r\n]*")
_HINT = tr(
    "Choose a file of conversations: ours, ChatGPT's conversations.json, one of LM Studio, or "
    "messages in the form of OpenAI's API."
)


class JsonPieces:
    """The values of a JSON file.

    Attributes:
        is_ours: Whether this program wrote the file.
        is_list: Whether the file is a list of values, else a single one.
    """

    def __init__(self, file: TextIO) -> None:
        """Read the beginning of a file.

        Raises:
            ConversationFileError: A newer version wrote the file.
        """
        self._file = file
        self._text = ""
        self._at = 0
        self._is_read = False
        self._decoder = json.JSONDecoder()
        self._more()
        found = _OURS.match(self._text)
        self.is_ours = found is not None
        if found is not None and int(found[1]) > VERSION:
            raise ConversationFileError(
                tr(
                    "The file has version {0}; this program reads versions up to {1}.",
                    found[1],
                    VERSION,
                ),
                "Update Medusa Chat.",
            )
        self._at = found.end() if found else self._skip_space()
        self.is_list = self.is_ours or self._text[self._at : self._at + 1] == "["
        if self.is_list and not self.is_ours:
            self._at += 1

    def __iter__(self) -> Iterator[Any]:
        """Yield the values in order.

        Raises:
            ConversationFileError: The file is not valid JSON, or a value is too large.
        """
        if not self.is_list:
            yield self._value()
            return
        if self._next() == "]":
            return
        while True:
            yield self._value()
            match self._next():
                case ",":
                    self._at += 1
                case "]":
                    return
                case _:
                    raise self._no_json(tr("a comma is missing"))

    def _value(self) -> Any:
        """Parse the next value, reading until it is complete."""
        self._next()
        while True:
            try:
                value, self._at = self._decoder.raw_decode(self._text, self._at)
            except RecursionError as error:
                raise self._no_json(tr("it is nested too deeply")) from error
            except ValueError as error:
                if self._is_read:
                    raise self._no_json(str(error)) from error
            else:
                return value
            if len(self._text) - self._at > _MOST_CHARS:
                raise ConversationFileError(
                    "One conversation of the file is too large, or the file is damaged.", _HINT
                )
            self._more()

    def _next(self) -> str:
        """Return the next character after white space; empty at the end."""
        self._at = self._skip_space()
        while self._at == len(self._text) and not self._is_read:
            self._more()
            self._at = self._skip_space()
        return self._text[self._at : self._at + 1]

    def _skip_space(self) -> int:
        """Return the position after white space in the buffered text."""
        found = _SPACE.match(self._text, self._at)
        assert found is not None
        return found.end()

    def _more(self) -> None:
        """Double the buffered text, so that parsing a large value again stays linear."""
        waiting = self._text[self._at :]
        try:
            read = self._file.read(max(_CHUNK, len(waiting)))
        except ValueError as error:
            raise self._no_json(tr("it is no text")) from error
        self._is_read = not read
        self._text, self._at = waiting + read, 0

    def _no_json(self, reason: str) -> ConversationFileError:
        """Make the error for invalid or incomplete JSON."""
        return ConversationFileError(tr("The file is no complete JSON file: {0}.", reason), _HINT)
