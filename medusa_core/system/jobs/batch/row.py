"""A line of a file of answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

LineId = str | int

_MOST_BYTES = 1 << 20  # that are read at once


class BatchRow(NamedTuple):
    """An answer, or why there is none.

    Attributes:
        id: Of the line that is answered.
        text: The answer; empty where there is none.
        num_tokens: Its tokens.
        stop_reason: Why it ended; empty where there is none.
        error: Why there is none; None where there is one.
    """

    id: LineId
    text: str = ""
    num_tokens: int = 0
    stop_reason: str = ""
    error: str | None = None


def row_of(line: bytes) -> BatchRow:
    """An answer of its line.

    Raises:
        ValueError: The line is something else.
    """
    try:
        raw = json.loads(line)
    except RecursionError as error:
        raise ValueError("it is too deep") from error
    if not isinstance(raw, dict) or {*raw} != {*BatchRow._fields}:
        raise ValueError("it has other fields")
    return BatchRow(**raw)


def read_rows(path: Path, start: int = 0) -> tuple[list[BatchRow], int]:
    """Answers that lie in a file behind a place, and where those that were read end.

    Args:
        path: The file; there may be none yet, and its last line may be under way. What is no
            answer is left out.
        start: The place, in bytes. At most about a megabyte is read.
    """
    try:
        with path.open("rb") as file:
            file.seek(start)
            lines = file.readlines(_MOST_BYTES)
    except OSError:
        return [], start
    if lines and not lines[-1].endswith(b"\n"):
        lines.pop()
    rows = []
    for line in lines:
        try:
            rows.append(row_of(line))
        except ValueError:
            continue  # whoever writes refuses such a file
    return rows, start + sum(map(len, lines))
