"""One answer on the screen, while it is written."""

from __future__ import annotations

from codecs import getincrementaldecoder

from medusa_core.messages import StepDone, TokenSource
from medusa_core.server.thought_splitter import ThoughtSplitter
from medusa_core.terminal.screen import Screen, harmless
from medusa_core.terminal.word_wrap import WordWrap


class AnswerWriter:
    """Streams an answer: accepted tokens are coloured by their source, thoughts are dim.

    Who isn't a person gets the answer alone, without thoughts.
    """

    def __init__(self, screen: Screen, begins_inside: bool) -> None:
        """Begin.

        Args:
            screen: Where to.
            begins_inside: The prompt ended with the mark of a thought.
        """
        self._screen = screen
        self._splitter = ThoughtSplitter(begins_inside)
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._waiting: list[tuple[bytes, TokenSource]] = []
        self._num_shown = 0
        self._was_thinking = False
        self._last = ""
        columns = screen.columns
        self._wrap = WordWrap(columns) if columns else None

    def add(self, step: StepDone) -> None:
        """Write what has become visible."""
        self._waiting.extend(zip(step.pieces, step.sources, strict=True))
        while self._waiting and self._num_shown < step.num_visible_bytes:
            piece, source = self._waiting.pop(0)
            room = step.num_visible_bytes - self._num_shown
            if len(piece) > room:
                self._waiting.insert(0, (piece[room:], source))
            self._write(piece[:room], source)
        self._screen.flush()

    def finish(self) -> None:
        """Write what was held back, and end the line."""
        for text, is_thought in self._splitter.finish():
            self._show(text, is_thought, "")
        if not self._last.endswith("\n"):
            self._screen.write("\n")
        self._screen.flush()

    def _write(self, piece: bytes, source: TokenSource) -> None:
        self._num_shown += len(piece)
        style = self._screen.source_style(source)
        for text, is_thought in self._splitter.push(self._decoder.decode(piece)):
            self._show(text, is_thought, style)

    def _show(self, text: str, is_thought: bool, style: str) -> None:
        if is_thought and not self._screen.is_terminal:
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
