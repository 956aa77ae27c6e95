"""Command lines that users type or paste."""

from __future__ import annotations

import os
import shlex


def split_command(text: str, *, has_escapes: bool = os.name != "nt") -> tuple[str, ...]:
    r"""Split a command line into the program and its arguments.

    Args:
        text: The command line; quotation marks keep spaces together.
        has_escapes: Whether `\` is an escape character; on Windows it separates folders.

    Raises:
        ValueError: A quotation mark isn't closed.
    """
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    if not has_escapes:
        lexer.escape = ""
    return tuple(lexer)
