"""Terminal output: styles, cursor moves, escaped control characters."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from typing import TextIO

from medusa_core.messages import SourceInfo, TokenSource

_RESET = "\x1b[0m"
_DIM = "\x1b[2m"
REASONING_STYLE = _DIM
_RED = "\x1b[31m"
# Underlined as well as coloured, for people who cannot see the colours.
_SOURCE_STYLES = ("\x1b[4;36m", "\x1b[4;33m", "\x1b[4;35m", "\x1b[4;32m", "\x1b[4;34m")
# C0 except tab and line feed, DEL and C1: they move the cursor, for example.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_REPLACEMENT = "\ufffd"


def takes_colour(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Return whether a stream is a terminal without `NO_COLOR` and `TERM=dumb`."""
    is_wanted = not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
    return is_wanted and stream.isatty()


def escaped(text: str) -> str:
    """Return a text with replacement characters in place of control characters."""
    return _CONTROLS.sub(_REPLACEMENT, text)


class Screen:
    """Output to a terminal, a file or a pipe.

    Attributes:
        is_terminal: Whether the output is a terminal; files and pipes get the plain answer.
    """

    def __init__(self, out: TextIO, err: TextIO, environ: Mapping[str, str]) -> None:
        """Initialize.

        Args:
            out: Gets answers and the output of commands.
            err: Gets errors and progress.
            environ: Environment variables.
        """
        self._out, self._err = out, err
        self._has_colour = takes_colour(out, environ)
        self._sources: dict[str, str] = {}
        self.is_terminal = out.isatty()
        self._has_cursor = self.is_terminal and environ.get("TERM") != "dumb"
        self._shows_progress = err.isatty()
        self._last_progress = ""

    def use_sources(self, sources: Sequence[SourceInfo]) -> None:
        """Assign a colour to each source of a model."""
        styles = _SOURCE_STYLES
        self._sources = {one.name: styles[place % len(styles)] for place, one in enumerate(sources)}

    def source_style(self, source: TokenSource) -> str:
        """Return the style of a token; empty for tokens without a draft."""
        proposer = next(iter(source.proposers), "")
        return self._sources.get(proposer, _SOURCE_STYLES[0]) if proposer else ""

    def write(self, text: str, style: str = "") -> None:
        """Write a piece of an answer, escaped on terminals."""
        shown = escaped(text) if self.is_terminal else text
        self._out.write(self.styled(shown, style) if text.strip() else shown)

    def move_cursor(self, sequence: str) -> None:
        """Write a control sequence unescaped."""
        self._out.write(sequence)

    @property
    def columns(self) -> int:
        """Columns of the terminal; 0 without a cursor."""
        return shutil.get_terminal_size().columns if self._has_cursor else 0

    def flush(self) -> None:
        """Flush the output."""
        self._out.flush()

    def print(self, text: str = "") -> None:
        """Write a line."""
        self._out.write(f"{text}\n")
        self._out.flush()

    def print_dim(self, text: str) -> None:
        """Write a dim line."""
        self.print(self.styled(text, _DIM))

    def print_error(self, message: str, hint: str = "") -> None:
        """Write an error and its hint."""
        style = _RED if self._has_colour else ""
        self._err.write(f"{self.styled('error:', style)} {escaped(message)}\n")
        if hint:
            self._err.write(f"  {escaped(hint)}\n")
        self._err.flush()

    def progress(self, text: str) -> None:
        """Replace the progress line; an empty text removes it."""
        text = text[: shutil.get_terminal_size().columns - 1]  # a longer one would scroll
        if self._shows_progress and text != self._last_progress:
            self._last_progress = text
            self._err.write(f"\r\x1b[K{text}")
            self._err.flush()

    def styled(self, text: str, style: str) -> str:
        """Return a text in a style; unchanged without colours."""
        return f"{style}{text}{_RESET}" if style and self._has_colour else text
