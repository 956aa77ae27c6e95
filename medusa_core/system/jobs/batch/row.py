"""Lines of a batch's file of answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

LineId = str | int

_MAX_BYTES = 1 << 20  # of one call of `read_rows`


class BatchRow(NamedTuple):
    """A line of an answers file: an answer or an error.

    Attributes:
        id: Id of the prompt's line.
        text: The answer; empty for an error.
        num_tokens: Number of its tokens.
        stop_reason: Why it ended; empty for an error.
        error: Why there is no answer; None if there is one.
    """

    id: LineId
    text: str = ""
    num_tokens: int = 0
    stop_reason: str = ""
    error: str | None = None


def row_of(line: bytes) -> BatchRow:
    """Parse a line of an answers file.

    Raises:
        ValueError: The line isn't a JSON object with the fields of `BatchRow`.
    """
    try:
        raw = json.loads(line)
    except RecursionError as error:
        raise ValueError("it is too deep") from error
    if not isinstance(raw, dict) or {*raw} != {*BatchRow._fields}:
        raise ValueError("it has other fields")
    return BatchRow(**raw)


def read_rows(path: Path, start: int = 0) -> tuple[list[BatchRow], int]:
    """Read answers from a file that may be growing.

    Args:
        path: The file; it may not exist yet.
        start: First byte; about a megabyte from there is read.

    Returns:
        Complete lines that are answers, and the byte after the last line that was read.
    """
    try:
        with path.open("rb") as file:
            file.seek(start)
            lines = file.readlines(_MAX_BYTES)
    except OSError:
        return [], start
    if lines and not lines[-1].endswith(b"\n"):
        lines.pop()
    rows = []
    for line in lines:
        try:
            rows.append(row_of(line))
        except ValueError:
            continue  # `medusa batch` refuses such a file, so nothing is lost here
    return rows, start + sum(map(len, lines))
