"""One answer on the screen, while it is written."""

from __future__ import annotations

from medusa_core.chats.reasoning import Part, ReasoningParser, VisiblePiece, VisiblePieces
from medusa_core.messages import ReasoningFormat, StepDone
from medusa_core.terminal.screen import Screen, harmless
from medusa_core.terminal.word_wrap import WordWrap


class AnswerWriter:
    """Streams an answer: accepted tokens are coloured by their source, thoughts are dim.

    Who isn't a person gets the answer alone, without thoughts.
    """

    def __init__(self, screen: Screen, tags: ReasoningFormat) -> None:
        """Begin.

        Args:
            screen: Where to.
            tags: How the model sets thoughts apart.
        """
        self._screen = screen
        self._tags = tags
        self._reasoning = ReasoningParser(tags, begins_inside=False)
        self._pieces = VisiblePieces(tags)
        self._was_thinking = False
        self._last = ""
        columns = screen.columns
        self._wrap = WordWrap(columns) if columns else None

    def begin(self, begins_inside: bool) -> None:
        """Say whether the answer begins within a thought, before anything of it comes."""
        self._reasoning = ReasoningParser(self._tags, begins_inside)

    def add(self, step: StepDone) -> None:
        """Write what has become visible."""
        for piece in self._pieces.add(step):
            self._write(piece)
        self._screen.flush()

    def finish(self) -> None:
        """Write what was held back, and end the line."""
        for piece in self._pieces.finish():
            self._write(piece)
        for text, part in self._reasoning.finish():
            self._show(text, part, "")
        if not self._last.endswith("\n"):
            self._screen.write("\n")
        self._screen.flush()

    def _write(self, piece: VisiblePiece) -> None:
        style = self._screen.source_style(piece.source)
        parts = self._reasoning.push(piece.text, piece.token_id, is_reasoning=piece.is_reasoning)
        for text, part in parts:
            self._show(text, part, style)

    def _show(self, text: str, part: Part, style: str) -> None:
        is_thought = part is Part.REASONING
        if part is Part.TAG or (is_thought and not self._screen.is_terminal):
            return
        if self._was_thinking and not is_thought:
            self._put("\n\n", "")
        self._was_thinking = is_thought
        self._last = text
        self._put(text, self._screen.thought_style() if is_thought else style)

    def _put(self, text: str, style: str) -> None:
        if self._wrap is None:
            self._screen.write(text, style)
            return
        for one in self._wrap.wrapped(harmless(text), style):
            if one.moves:
                self._screen.move(one.text)
            else:
                self._screen.write(one.text, one.style)
