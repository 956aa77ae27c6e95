"""What a chat writes to, and what may be written to it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from typing import TextIO

from medusa_core.messages import SourceInfo, TokenSource

_RESET = "\x1b[0m"
_DIM = "\x1b[2m"
_RED = "\x1b[31m"
# Underlined as well as coloured: told apart without colours, too.
_SOURCE_STYLES = ("\x1b[4;36m", "\x1b[4;33m", "\x1b[4;35m", "\x1b[4;32m", "\x1b[4;34m")
# What moves the cursor, or more: C0 but tab and line feed, DEL and C1.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_PICTURE = "\ufffd"


def takes_colour(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether colours can be seen: a terminal, and nobody said no (`NO_COLOR`, `TERM=dumb`)."""
    is_wanted = not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
    return is_wanted and stream.isatty()


def harmless(text: str) -> str:
    """A text whose control characters are shown instead of obeyed: models write what they like."""
    return _CONTROLS.sub(_PICTURE, text)


class Screen:
    """A stream for people, with colours or without.

    Attributes:
        is_terminal: Somebody sees it; else it is a file or another program, which gets the plain
            answer alone.
    """

    def __init__(self, out: TextIO, err: TextIO, environ: Mapping[str, str]) -> None:
        """Write to streams.

        Args:
            out: For answers, and for what commands say.
            err: For errors and progress.
            environ: Of the process.
        """
        self._out, self._err = out, err
        self._has_colour = takes_colour(out, environ)
        self._sources: dict[str, str] = {}
        self.is_terminal = out.isatty()
        self._has_cursor = self.is_terminal and environ.get("TERM") != "dumb"
        self._shows_progress = err.isatty()
        self._last_progress = ""

    def use_sources(self, sources: Sequence[SourceInfo]) -> None:
        """Give every source of a model a colour."""
        styles = _SOURCE_STYLES
        self._sources = {one.name: styles[place % len(styles)] for place, one in enumerate(sources)}

    def source_style(self, source: TokenSource) -> str:
        """How a token is marked; empty for what the model chose itself."""
        proposer = next(iter(source.proposers), "")
        return self._sources.get(proposer, _SOURCE_STYLES[0]) if proposer else ""

    def write(self, text: str, style: str = "") -> None:
        """Write a piece of an answer; a file gets it as it is."""
        shown = harmless(text) if self.is_terminal else text
        self._out.write(self.styled(shown, style) if text.strip() else shown)

    def move(self, sequence: str) -> None:
        """Move the cursor, where there is one."""
        self._out.write(sequence)

    @property
    def columns(self) -> int:
        """How wide it is; 0 for what has no cursor."""
        return shutil.get_terminal_size().columns if self._has_cursor else 0

    def flush(self) -> None:
        """Show what was written."""
        self._out.flush()

    def say(self, text: str = "") -> None:
        """Write a line of the program's own."""
        self._out.write(f"{text}\n")
        self._out.flush()

    def remark(self, text: str) -> None:
        """Write a line that matters less."""
        self.say(self.dim(text))

    def complain(self, message: str, hint: str = "") -> None:
        """Write what went wrong, and what to do."""
        style = _RED if self._has_colour else ""
        self._err.write(f"{self.styled('error:', style)} {harmless(message)}\n")
        if hint:
            self._err.write(f"  {harmless(hint)}\n")
        self._err.flush()

    def progress(self, text: str) -> None:
        """Write over the last line of progress; an empty text removes it."""
        text = text[: shutil.get_terminal_size().columns - 1]  # a longer one would scroll
        if self._shows_progress and text != self._last_progress:
            self._last_progress = text
            self._err.write(f"\r\x1b[K{text}")
            self._err.flush()

    def dim(self, text: str) -> str:
        """A text that matters less."""
        return self.styled(text, _DIM)

    def thought_style(self) -> str:
        """How thoughts are written."""
        return _DIM

    def styled(self, text: str, style: str) -> str:
        """A text in a style, where there are colours."""
        return f"{style}{text}{_RESET}" if style and self._has_colour else text
