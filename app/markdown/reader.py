"""Incremental reader of a growing text: Markdown within its limits, then plain text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from app.markdown.bounds import Bounds
from app.markdown.model import CodeBlock, MarkdownBlock
from app.markdown.parser import Frozen, MarkdownParser
from app.markdown.plain import last_piece, plain_blocks, word_end

_NOTHING = Frozen(0, 0, "")


class Text(Protocol):
    """Text that may grow, such as a `str`."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: slice, /) -> str: ...


class BlockSink(Protocol):
    """Receiver of the blocks of a growing text."""

    def show_tail(self, blocks: Sequence[MarkdownBlock]) -> None:
        """Replace the blocks after the frozen ones."""

    def freeze(self, num_blocks: int) -> None:
        """Freeze further blocks, which won't change any more."""


class Reader:
    """Converts a growing text to blocks.

    Blocks that later text can't change are frozen; only the end of the text is read again.
    Where plain text begins depends only on the text, not on its timing: it is decided at line
    ends at a certain distance, and in lines that are too long.

    Args:
        sink: Empty receiver of the blocks.
        text: The text, which may grow.
        parser: Parser of Markdown.
        bounds: Limits of formatting.

    Attributes:
        text: The text so far; a growing `str` is assigned again.
        plain_start: Start of plain text; None while all is formatted.
    """

    def __init__(
        self,
        sink: BlockSink,
        text: Text = "",
        parser: MarkdownParser | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        self.text = text
        self.plain_start: int | None = None
        self._sink = sink
        self._parser = parser or MarkdownParser()
        self._bounds = bounds or Bounds()
        self._is_complete = False
        self._forget()

    def _forget(self) -> None:
        self.plain_start = None
        self._read_end = 0
        self._checked_end = 0
        self._line_end = 0
        self._frozen = _NOTHING

    @property
    def is_behind(self) -> bool:
        """Whether there is unread text."""
        return self._read_end < len(self.text)

    def complete(self) -> None:
        """Mark the text as complete, which closes an open code block at its end."""
        self._is_complete = True

    def restart(self, start: int = 0) -> None:
        """Read the text again from a position; the sink must be empty."""
        self._forget()
        self._read_end = self._checked_end = self._line_end = start
        self._frozen = replace(_NOTHING, end=start)

    def read_on(self) -> None:
        """Read the unread text up to the limit of an iteration."""
        end = min(len(self.text), self._read_end + self._bounds.turn)
        if self.plain_start is None:
            end = self._read_markdown(end)
        else:
            self._read_plain(end)
        self._read_end = end

    def _read_markdown(self, end: int) -> int:
        """Read up to a position, or to the start of plain text; returns which position."""
        while (check := self._next_check(end)) is not None:
            if (plain_start := self._judge(check)) is not None:
                self._become_plain(plain_start)
                return plain_start
            self._checked_end = check
        line_end = self._end_of_complete_lines(end)
        # What a check has frozen in this turn is enough for it.
        if line_end > self._line_end and self._checked_end <= self._read_end:
            self._freeze_complete(line_end)
        blocks = self._parse(end)
        is_closed = self._is_complete and end == len(self.text)
        self._sink.show_tail(_closed(blocks) if is_closed else blocks)
        return end

    def _next_check(self, end: int) -> int | None:
        """Return the next position to check: a line end, or the end of a line that is too long."""
        first = self._checked_end + self._bounds.check - 1
        line_length = self.text[first:end].find("\n") + 1
        if line_length:
            return first + line_length
        return end if end - self._line_start(end) > self._bounds.line else None

    def _line_start(self, position: int) -> int:
        checked_end = self._checked_end
        return checked_end + self.text[checked_end:position].rfind("\n") + 1

    def _judge(self, check: int) -> int | None:
        """Return the start of plain text, by the text up to a position; None for no plain text."""
        bounds = self._bounds
        line_start = self._line_start(check - 1)
        is_line = self.text[check - 1 : check] == "\n"
        if check - is_line - line_start > bounds.line:
            line = self.text[line_start : line_start + bounds.line]
            return line_start + word_end(line, 0, bounds.line)
        open_blocks = self._freeze_complete(check)
        is_code = len(open_blocks) == 1 and isinstance(open_blocks[0], CodeBlock)
        start = self._frozen.end
        most_chars, most_lines = (
            (bounds.code, bounds.code_lines) if is_code else (bounds.block, bounds.lines)
        )
        num_lines = self.text[start:check].count("\n")
        is_long = check - start > most_chars or num_lines > most_lines
        return check if is_long or check > bounds.formatted else None

    def _freeze_complete(self, end: int) -> tuple[MarkdownBlock, ...]:
        """Freeze the blocks that later text can't change, by complete lines only.

        Returns:
            Blocks that may change.
        """
        self._line_end = end
        start = self._frozen.end
        parsed = self._parser.parse(self.text[start:end], start, self._frozen.prefix)
        frozen = parsed.frozen
        if frozen.end == start:
            return parsed.blocks
        self._sink.show_tail(parsed.blocks[: frozen.num_blocks])
        self._sink.freeze(frozen.num_blocks)
        self._frozen = frozen
        return parsed.blocks[frozen.num_blocks :]

    def _parse(self, end: int) -> tuple[MarkdownBlock, ...]:
        start = self._frozen.end
        return self._parser.parse(self.text[start:end], start, self._frozen.prefix).blocks

    def _become_plain(self, start: int) -> None:
        blocks = _closed(self._parse(start))
        self._sink.show_tail(blocks)
        self._sink.freeze(len(blocks))
        self._frozen = replace(_NOTHING, end=start)
        self.plain_start = start

    def _read_plain(self, end: int) -> None:
        start = self._frozen.end
        text = self.text[start:end]
        blocks = plain_blocks(text, start)
        self._sink.show_tail(blocks)
        if len(blocks) > 1:
            self._sink.freeze(len(blocks) - 1)
            self._frozen = replace(_NOTHING, end=start + last_piece(text))

    def _end_of_complete_lines(self, end: int) -> int:
        """Return the position after the last line end; a final carriage return may be half of one.

        Lines of frozen blocks don't count.
        """
        start = self._frozen.end
        tail = self.text[start:end]
        return start + max(tail.rfind("\n"), tail.rfind("\r", 0, max(0, len(tail) - 1))) + 1


def _closed(blocks: tuple[MarkdownBlock, ...]) -> tuple[MarkdownBlock, ...]:
    """Mark the last block as closed."""
    if blocks and isinstance(last := blocks[-1], CodeBlock):
        return (*blocks[:-1], replace(last, is_open=False))
    return blocks
