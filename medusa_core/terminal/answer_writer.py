"""Streams an answer to the screen."""

from __future__ import annotations

from medusa_core.chats.reasoning import Part, ReasoningParser, VisiblePiece, VisiblePieces
from medusa_core.messages import ReasoningFormat, StepDone
from medusa_core.terminal.screen import REASONING_STYLE, Screen, escaped
from medusa_core.terminal.word_wrap import WordWrap


class AnswerWriter:
    """Writes an answer: accepted tokens are coloured by source, reasoning is dim.

    Files and pipes get the answer without its reasoning.
    """

    def __init__(self, screen: Screen, tags: ReasoningFormat) -> None:
        """Initialize.

        Args:
            screen: Output.
            tags: The model's reasoning format.
        """
        self._screen = screen
        self._tags = tags
        self._reasoning = ReasoningParser(tags, begins_inside=False)
        self._pieces = VisiblePieces(tags)
        self._was_reasoning = False
        self._last = ""
        columns = screen.columns
        self._wrap = WordWrap(columns) if columns else None

    def begin(self, begins_inside: bool) -> None:
        """Start the answer; `begins_inside` if it starts with reasoning."""
        self._reasoning = ReasoningParser(self._tags, begins_inside)

    def add(self, step: StepDone) -> None:
        """Write the text that a step completes."""
        for piece in self._pieces.add(step):
            self._write(piece)
        self._screen.flush()

    def finish(self) -> None:
        """Write the remaining text, and end the line."""
        for piece in self._pieces.finish():
            self._write(piece)
        for text, part in self._reasoning.finish():
            self._show(text, part, "")
        if not self._last.endswith("\n"):
            self._screen.write("\n")
        self._screen.flush()

    def _write(self, piece: VisiblePiece) -> None:
        """Split a piece into reasoning and answer, and show both."""
        style = self._screen.source_style(piece.source)
        parts = self._reasoning.push(piece.text, piece.token_id, is_reasoning=piece.is_reasoning)
        for text, part in parts:
            self._show(text, part, style)

    def _show(self, text: str, part: Part, style: str) -> None:
        """Show a part; tags are hidden, reasoning only on terminals."""
        is_reasoning = part is Part.REASONING
        if part is Part.TAG or (is_reasoning and not self._screen.is_terminal):
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
