"""Fold texts for search: without case, accents and width, each ideograph a word."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from itertools import accumulate

_WORD = re.compile(r"[^\W_]+")
_CHARS_BEFORE, _CHARS_AFTER = 60, 140

# Scripts that are written without spaces: any part of a text may be a word there.
_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x2E80, 0x303F),  # radicals, ideographic marks
    (0x3040, 0x30FF),  # kana
    (0x3100, 0x9FFF),  # bopomofo, ideographs
    (0xA960, 0xA97F),
    (0xAC00, 0xD7FF),  # Hangul: its particles stick to words
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
_SPACED = re.compile(
    " ([" + "".join(f"{chr(first)}-{chr(last)}" for first, last in _UNSPACED) + "]) "
)


class _Folds(dict[int, str]):
    """Folded form of each character, computed at its first use."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if any(first <= code <= last for first, last in _UNSPACED):
            folded = f" {unicodedata.normalize('NFKC', character).casefold()} "
        else:
            apart = unicodedata.normalize(
                "NFKD", unicodedata.normalize("NFKD", character).casefold()
            )
            folded = "".join(c for c in apart if unicodedata.category(c) != "Mn")
        self[code] = folded
        return folded


_FOLDS = _Folds()


def fold(text: str) -> str:
    """Fold a text for the index or a query."""
    if text.isascii():
        return text.lower()
    # Decomposed Hangul and kana are letters that belong together.
    return unicodedata.normalize("NFC", text).translate(_FOLDS)


def unfold(folded: str) -> str:
    """Make a folded text readable: join its ideographs again."""
    return _SPACED.sub(r"\1", folded)


def words_of(text: str) -> list[str]:
    """Split a query at spaces, and fold its parts."""
    return [folded for part in text.replace("\0", " ").split() if (folded := fold(part).strip())]


def as_query(parts: list[str]) -> str:
    """Return an FTS5 prefix query for all parts; empty if none is a word."""
    # In quotes, FTS5 tokenizes a part as it tokenized the text.
    phrases = (part.replace('"', '""') for part in parts if _WORD.search(part))
    return " AND ".join(f'"{phrase}" *' for phrase in phrases)


def snippet(text: str, parts: list[str]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Return a line of text around the first match, and the spans of the matches in it.

    Args:
        parts: Folded parts of the query.
    """
    text = unicodedata.normalize("NFC", text)
    found = _find(text, parts)
    at = found[0][0] if found else 0
    begin = max(0, at - _CHARS_BEFORE)
    if begin:
        space = text.find(" ", begin, at)
        begin = space + 1 if space >= 0 else begin
    end = min(len(text), at + _CHARS_AFTER)
    # Each white space becomes one space, so that offsets stay.
    shown = re.sub(r"\s", " ", text[begin:end])
    lead = "…" if begin else ""
    shift = len(lead) - begin
    spans = tuple((a + shift, min(b, end) + shift) for a, b in found if begin <= a < end)
    return lead + shown + ("…" if end < len(text) else ""), spans


def _find(text: str, parts: list[str]) -> list[tuple[int, int]]:
    """Find parts of a query in a text; returns spans in order, without overlaps."""
    folded = fold(text)
    offsets = _Offsets(text)
    spans: list[tuple[int, int]] = []
    for part in parts:
        words = _WORD.findall(part)
        gap = r"[\W_]*"
        pattern = gap.join(map(re.escape, words)) if words else re.escape(part)
        whole = re.compile(rf"(?<![^\W_]){pattern}") if words else re.compile(pattern)
        first = whole.search(folded) or re.search(pattern, folded)
        if first is None:
            continue
        near = whole if whole.search(folded) else re.compile(pattern)
        stop = first.start() + 2 * _CHARS_AFTER
        spans += [
            (offsets.start(match.start()), offsets.end(match.end()))
            for match in near.finditer(folded, first.start(), stop)
        ]
    kept: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if end > begin and (not kept or begin >= kept[-1][1]):
            kept.append((begin, end))
    return kept


class _Offsets:
    """Map offsets of the folded text to the original."""

    def __init__(self, text: str) -> None:
        self._ends: list[int] | None = None
        if not text.isascii():
            self._ends = list(accumulate(len(_FOLDS[ord(character)]) for character in text))

    def start(self, folded: int) -> int:
        """Return the original offset of a start in the folded text."""
        return folded if self._ends is None else bisect_right(self._ends, folded)

    def end(self, folded: int) -> int:
        """Return the original offset of an exclusive end in the folded text."""
        return folded if self._ends is None else bisect_right(self._ends, folded - 1) + 1
