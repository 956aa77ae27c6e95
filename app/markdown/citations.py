"""Citations of passages in answers: `[1]` becomes a link, which the window opens.

Positions and text stay, so that marks of tokens and copied text are as without citations.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from app.markdown.model import CITATION, UNKNOWN_CITATION, Run, Runs, TextStyle

# Not `[1](target)` or `[^1]`; `[1][2]` and `[1, 2]` are two citations.
_CITATION = re.compile(r"\[(?:[1-9]\d{0,3})(?:, ?[1-9]\d{0,3})*\](?![(\w])")
_NUMBER = re.compile(r"\d+")
# What a citation may follow without a space: a word or year, but no `a`, `x1`, `my_list`,
# `rowCount`, `self.items` or `f()`, after which brackets are an index.
_NAME = re.compile(r"[\w.]*\w\)?$|\(\)$")
_WORD = re.compile(r"(?:[^\W\d_]{3,}|\d+|[^\x00-\x7f]+)\)?")
_CAMEL_CASE = re.compile(r"[a-z][A-Z]")
_MOST_NAME_CHARS = 64


def with_citations(runs: Runs, numbers: Collection[int]) -> Runs:
    """Return runs in which citations are links.

    Args:
        runs: Runs of a line of text.
        numbers: Numbers of the passages; others are marked as unknown.
    """
    return tuple(part for run in runs for part in _parts(run, numbers))


def _parts(run: Run, numbers: Collection[int]) -> Iterator[Run]:
    """Split a run at its citations."""
    if run.href or run.style & (TextStyle.CODE | TextStyle.MATH) or not run.is_one_to_one:
        yield run
        return
    at = 0
    for start, end, number in _found(run.text, numbers):
        if at < start:
            yield _part(run, at, start, "")
        kind = CITATION if number in numbers else UNKNOWN_CITATION
        yield _part(run, start, end, f"{kind}{number}")
        at = end
    if at < len(run.text):
        yield _part(run, at, len(run.text), "") if at else run


def _found(text: str, numbers: Collection[int]) -> Iterator[tuple[int, int, int]]:
    """Yield start, end and number of each citation; of several in one pair of brackets, too.

    Right after a word, brackets are a citation if all of their numbers are those of passages.
    """
    if "[" not in text:
        return
    for match in _CITATION.finditer(text):
        found = list(_NUMBER.finditer(match[0]))
        name = _NAME.search(text, max(0, match.start() - _MOST_NAME_CHARS), match.start())
        if name is not None and not (
            _is_word(name[0]) and all(int(one[0]) in numbers for one in found)
        ):
            continue
        if len(found) == 1:
            yield match.start(), match.end(), int(found[0][0])
            continue
        for one in found:
            yield match.start() + one.start(), match.start() + one.end(), int(one[0])


def _is_word(name: str) -> bool:
    """Whether a name before brackets is a word of a sentence rather than a variable."""
    return bool(_WORD.fullmatch(name)) and not _CAMEL_CASE.search(name)


def _part(run: Run, start: int, end: int, href: str) -> Run:
    """Return a part of a run as a link."""
    return Run(run.text[start:end], run.start + start, run.start + end, run.style, href)
