"""Streams an answer to the screen."""

from __future__ import annotations

from medusa_core.chats.answer_text import NO_TOKEN, AnswerText
from medusa_core.cli.terminal.screen import REASONING_STYLE, Screen, escaped
from medusa_core.cli.terminal.word_wrap import WordWrap


class AnswerWriter:
    """Writes an answer: accepted tokens are coloured by source, reasoning is dim.

    Files and pipes get the answer without its reasoning.
    """

    def __init__(self, screen: Screen, content: AnswerText) -> None:
        """Initialize.

        Args:
            screen: Output.
            content: The answer.
        """
        self._screen = screen
        self._content = content
        self._num_shown = 0
        self._was_reasoning = False
        self._last = ""
        columns = screen.columns
        self._wrap = WordWrap(columns) if columns else None

    def show(self) -> None:
        """Write the text that was added since the last call."""
        content = self._content
        for span in content.spans:
            at = max(self._num_shown, span.start)
            while at < span.end:
                token = content.owner(at)
                is_known = token != NO_TOKEN
                end = min(span.end, content.end(token)) if is_known else span.end
                style = self._screen.source_style(content.source(token)) if is_known else ""
                self._show(content.slice(at, end), span.is_reasoning, style)
                at = self._num_shown = end
        self._screen.flush()

    def finish(self) -> None:
        """Write the remaining text, and end the line."""
        self.show()
        has_only_calls = bool(self._content.calls) and not self._last
        if not self._last.endswith("\n") and not has_only_calls:
            self._screen.write("\n")
        self._screen.flush()

    def _show(self, text: str, is_reasoning: bool, style: str) -> None:
        """Write text of one token; reasoning only on terminals."""
        if is_reasoning and not self._screen.is_terminal:
            return
        if self._was_reasoning and not is_reasoning:
            self._write_wrapped("\n\n", "")
        self._was_reasoning = is_reasoning
        self._last = text
        self._write_wrapped(text, REASONING_STYLE if is_reasoning else style)

    def _write_wrapped(self, text: str, style: str) -> None:
        """Write text with word wrap."""
        if self._wrap is None:
            self._screen.write(text, style)
            return
        for piece in self._wrap.wrapped(escaped(text), style):
            if piece.is_cursor_move:
                self._screen.move_cursor(piece.text)
            else:
                self._screen.write(piece.text, piece.style)
