"""Reads an answer aloud through the screen reader, a sentence at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from PySide6.QtCore import QObject
from PySide6.QtGui import QAccessible

from app.chat.estimates import rendered_text
from app.widgets.announce import announce

_FENCES = ("```", "~~~")


# An end mark with white space behind it, or the end of a line.
SENTENCE_END = re.compile(r"(?<=[.!?…:;])[\"'”’)\]]*\s+|\n+")


class SentenceStream:
    """Splits growing text into complete sentences."""

    def __init__(self) -> None:
        self._open = ""

    def feed(self, text: str) -> tuple[str, ...]:
        """Add text; return the sentences that it completes."""
        text, start, whole = self._open + text, 0, []
        for end in SENTENCE_END.finditer(text):
            whole.append(text[start : end.end()].strip())
            start = end.end()
        self._open = text[start:]
        return tuple(filter(None, whole))

    def finish(self) -> str:
        """Return the incomplete rest; may be empty."""
        rest, self._open = self._open.strip(), ""
        return rest


class Announcer:
    """Announces an answer to screen readers in whole sentences.

    Args:
        speaker: Widget that sends the announcements.
    """

    def __init__(self, speaker: QObject) -> None:
        self._speaker = speaker
        self._sentences = SentenceStream()
        self._is_code = False
        self._is_quiet = False

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Skip text that was shown before."""
        self._is_quiet = True
        yield
        self._is_quiet = False

    def feed(self, text: str) -> None:
        """Announce the sentences that this text completes."""
        if QAccessible.isActive():
            for sentence in self._sentences.feed(text):
                self._announce(sentence)

    def finish(self, ending: str = "") -> None:
        """Announce the rest of the answer and how it ended.

        Args:
            ending: Text about the stop reason; empty for a complete answer.
        """
        self._announce(self._sentences.finish())
        if not self._is_quiet:
            announce(self._speaker, ending)

    def _announce(self, sentence: str) -> None:
        words = self._words(sentence)
        if not self._is_quiet:
            announce(self._speaker, words)

    def _words(self, sentence: str) -> str:
        """Return a sentence without Markdown markup; code stays verbatim."""
        if sentence.startswith(_FENCES):
            self._is_code = not self._is_code
            return ""
        words = sentence if self._is_code else rendered_text(sentence)
        return words if any(map(str.isalnum, words)) or self._is_code else ""
