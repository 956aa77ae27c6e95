"""Which token each character of an answer belongs to."""

from __future__ import annotations

import codecs
from bisect import bisect_right

from app.theme.legend import (
    Mark,
    mark_of,
)
from medusa_core.messages import TokenSource

NO_TOKEN = -1


class TokenMap:
    """Tokens of an answer by the characters that they complete."""

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._sources: list[TokenSource] = []
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._num_chars = 0

    def __len__(self) -> int:
        return len(self._sources)

    def add(self, piece: bytes, source: TokenSource) -> None:
        """Add the next token with the bytes that it completes."""
        self._num_chars += len(self._decoder.decode(piece))
        self._ends.append(self._num_chars)
        self._sources.append(source)

    def source(self, token: int) -> TokenSource:
        """Where a token came from."""
        return self._sources[token]

    def forget_after(self, num_chars: int) -> None:
        """Give up the characters from a position on: they are no longer what the tokens said."""
        self._ends = [min(end, num_chars) for end in self._ends]
        self._num_chars = num_chars

    def owner(self, char: int) -> int:
        """Index of the token that completes a character; `NO_TOKEN` if there is none."""
        token = bisect_right(self._ends, char)
        return token if token < len(self._ends) else NO_TOKEN

    def owner_and_mark(self, char: int) -> tuple[int, Mark | None]:
        """Index and mark of the token that completes a character."""
        token = self.owner(char)
        return (NO_TOKEN, None) if token == NO_TOKEN else (token, mark_of(self._sources[token]))

    def end(self, token: int) -> int:
        """Position after the last character that a token completes."""
        return self._ends[token]
