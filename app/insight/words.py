"""Tokens, origins and numbers in words."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from html import escape
from types import MappingProxyType

from PySide6.QtCore import QCoreApplication

from app.i18n.numbers import Number
from app.theme.legend import (
    Legend,
    marks_of,
)
from medusa_core.messages import GIVEN, TARGET, TokenSource

_SIGNS = {" ": "␣", "\n": "⏎", "\t": "⇥", "\r": "␍"}
_MOST_CHARS = 24
_CODE_POINT = re.compile(r"‹U\+([0-9A-F]{4,6})›")


NO_SPECIALS: Mapping[int, str] = MappingProxyType({})


def is_text(text: bytes) -> bool:
    """Whether a token has text of its own; special tokens and parts of characters don't."""
    try:
        return bool(text.decode())
    except UnicodeDecodeError:
        return False


def show_token(
    text: bytes,
    token_id: int,
    specials: Mapping[int, str] = NO_SPECIALS,
    most_chars: int = _MOST_CHARS,
) -> str:
    """Return a token's text with visible white space; invalid UTF-8 in hexadecimal.

    Args:
        text: Its bytes; empty for a special token.
        token_id: Id of the token.
        specials: Names of tokens without a text; empty for those that end an answer.
        most_chars: Maximum length; longer texts are truncated.
    """
    name = specials.get(token_id)
    if name == "":
        return QCoreApplication.translate("Insight", "‹end›")
    if name:
        return f"‹{_readable(name, most_chars)}›"
    if not text:
        return QCoreApplication.translate("Insight", "‹special {0}›").format(token_id)
    try:
        return _readable(text.decode(), most_chars)
    except UnicodeDecodeError:
        return "‹" + text.hex(" ").upper() + "›"


def as_typed(shown: str) -> str:
    """Convert a displayed token back to text, such as ␣ to a space."""
    for char, sign in _SIGNS.items():
        shown = shown.replace(sign, char)
    return _CODE_POINT.sub(lambda found: _char(found[0], int(found[1], 16)), shown)


def as_spoken(shown: str) -> str:
    """Return a token for screen readers, with white space in words."""
    words = as_typed(shown)
    if words.strip():
        return " ".join(words.split())
    if "\n" in words:
        return QCoreApplication.translate("Insight", "new line")
    return QCoreApplication.translate("Insight", "space")


def _readable(text: str, most_chars: int) -> str:
    shown = "".join(_SIGNS.get(char) or _shown(char) for char in text)
    return shown if len(shown) <= most_chars else shown[: most_chars - 1] + "…"


def _shown(char: str) -> str:
    # A sign that is in the text itself must not be taken for what it stands for.
    is_plain = char.isprintable() and char not in _SIGNS.values()
    return char if is_plain else f"‹U+{ord(char):04X}›"


def _char(written: str, code: int) -> str:
    is_char = code <= sys.maxunicode and not 0xD800 <= code < 0xE000  # surrogates are none
    return chr(code) if is_char else written


def origin(source: TokenSource, legend: Legend) -> str:
    """Return the name of a token's source."""
    if source == TARGET:
        return QCoreApplication.translate("Insight", "the model itself")
    if source == GIVEN:
        return QCoreApplication.translate("Insight", "given")
    marks = marks_of(source)
    joint = QCoreApplication.translate("Insight", " and ")
    names = joint.join(map(legend.name, marks))
    # A head's number says how far it looked.
    names_depth = any(legend.info(mark.source).is_numbered for mark in marks)
    return (
        names
        if names_depth
        else QCoreApplication.translate("Insight", "{0}, {1} ahead").format(names, source.head)
    )


def as_tip(text: str) -> str:
    """Escape a text for a tooltip, which would take tokens like `<b>` as markup."""
    return f"<span>{escape(text)}</span>"


def percent(probability: float | None) -> str:
    """Format a probability; a dash if unknown."""
    if probability is None:
        return "—"
    if 0 < probability < 0.001:
        return "< 0.1 %"
    return f"{Number(probability * 100):.1f} %"


def micro(seconds: float) -> str:
    """Format a short time; below a millisecond in microseconds."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{Number(seconds * 1e3):.2f} ms" if seconds < 1 else f"{Number(seconds):.2f} s"
