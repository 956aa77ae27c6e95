"""Emphasis in Markdown next to scripts that are written without spaces.

CommonMark lets `**` begin or end emphasis by the spaces and punctuation around it. Chinese and
Japanese have no spaces there, so that `**「中文」**后面` would keep its asterisks. Here,
punctuation of these scripts counts as a letter, and their characters outside the asterisks count as
spaces, as the CJK-friendly amendments of CommonMark propose.
"""

from __future__ import annotations

import unicodedata

from markdown_it.common.utils import isMdAsciiPunct, isPunctChar, isWhiteSpace
from markdown_it.rules_inline.state_inline import Scanned

# Thai, Lao and Tibetan; Myanmar; Khmer.
_UNSPACED = (range(0x0E00, 0x1000), range(0x1000, 0x10A0), range(0x1780, 0x1800))
# Hangul letters that aren't wide, as they join others.
_NARROW_HANGUL = (range(0x1160, 0x1200), range(0xD7B0, 0xD800))
_SELECTORS = (range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))


def scan_delimiters(src: str, start: int, end: int) -> Scanned:
    """Determine whether a run of `*` or `~` may begin or end emphasis.

    Args:
        src: The inline text.
        start: Position of the run's first character.
        end: Index after the text's last character.

    Returns:
        The result of markdown-it's `scanDelims` for delimiters that are allowed inside words.
    """
    stop = start
    while stop < end and src[stop] == src[start]:
        stop += 1
    # The ends of a text count as spaces.
    previous = _visible_before(src, start)
    following = src[stop] if stop < end else " "
    can_open = _is_flanking(following, previous)
    can_close = _is_flanking(previous, following)
    return Scanned(can_open, can_close, stop - start)


def _visible_before(src: str, position: int) -> str:
    """Return the character before a position, skipping a variation selector."""
    position -= 1
    if position > 0 and any(ord(src[position]) in selectors for selectors in _SELECTORS):
        position -= 1
    return src[position] if position >= 0 else " "


def _is_flanking(inner: str, outer: str) -> bool:
    """Return whether delimiters between two characters can enclose the inner one."""
    if isWhiteSpace(ord(inner)):
        return False
    if not _is_punctuation(inner) or is_unspaced(inner):
        return True
    return isWhiteSpace(ord(outer)) or _is_punctuation(outer) or is_unspaced(outer)


def _is_punctuation(char: str) -> bool:
    """Whether a character is punctuation or a symbol in CommonMark's sense."""
    return isMdAsciiPunct(ord(char)) or isPunctChar(char)


def is_unspaced(char: str) -> bool:
    """Return whether a character is of a script without spaces, or Hangul."""
    code = ord(char)
    if code < 0x0E00:
        return False
    if any(code in letters for letters in (*_UNSPACED, *_NARROW_HANGUL)):
        return True
    is_wide = unicodedata.east_asian_width(char) in ("W", "F", "H")
    return is_wide and not _is_emoji(code)


def _is_emoji(code: int) -> bool:
    """Whether a code point is in the blocks of emojis and pictographs."""
    return 0x2300 <= code < 0x2E80 or 0x1F000 <= code < 0x1FC00
