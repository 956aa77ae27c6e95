"""Cuts a stream of text into sentences, which a screen reader announces."""

from __future__ import annotations

import re

# An end mark with white space behind it, or the end of a line.
SENTENCE_END = re.compile(r"(?<=[.!?…:;])[\"'”’)\]]*\s+|\n+")


class SentenceStream:
    """Gives whole sentences while the text still grows."""

    def __init__(self) -> None:
        self._open = ""

    def feed(self, text: str) -> tuple[str, ...]:
        """Take more text; returns the sentences that it completed."""
        text, start, whole = self._open + text, 0, []
        for end in SENTENCE_END.finditer(text):
            whole.append(text[start : end.end()].strip())
            start = end.end()
        self._open = text[start:]
        return tuple(filter(None, whole))

    def finish(self) -> str:
        """The rest, which no end mark closed; may be empty."""
        rest, self._open = self._open.strip(), ""
        return rest
