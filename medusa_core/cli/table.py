"""Rows of text under a head, for people."""

from __future__ import annotations

from collections.abc import Sequence


def table_lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table as wide as its cells."""
    every = (head, *rows)
    widths = [max(len(row[place]) for row in every) for place in range(len(head))]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in every]
