"""Files given by --data: search in folders, decoding, JSON rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from medusa_core.errors import TrainingError
from medusa_core.i18n import tr


def files_of(path: Path, suffixes: Sequence[str]) -> list[Path]:
    """Return a file, or the files below a folder with some suffixes.

    Raises:
        TrainingError: There are none.
    """
    if path.is_dir():
        found = sorted(file for file in path.rglob("*") if file.suffix in suffixes)
        if not found:
            named = " or ".join((", ".join(suffixes[:-1]), suffixes[-1]))
            raise TrainingError(
                tr("{0} holds no file to read.", path), tr("They end in {0}.", named)
            )
        return found
    if not path.is_file():
        raise TrainingError(tr("There is no file {0}.", path), "Check the name of --data.")
    return [path]


def text_of(path: Path) -> str:
    """Return the text of a file.

    Raises:
        TrainingError: It can't be read, or isn't UTF-8.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TrainingError(
            tr("{0} can't be read: {1}.", path, error), "Name another file."
        ) from error
    if "\0" in text:
        raise TrainingError(tr("{0} is no text.", path), "Name another file.")
    return text


def rows_of(text: str, name: str) -> Iterator[tuple[str, Any]]:
    """Return the rows of JSON lines or a JSON list, each with its position for messages.

    Raises:
        TrainingError: A row isn't JSON; the message names it.
    """
    try:
        if text.lstrip().startswith("["):
            yield from ((f"{name}, row {n}", row) for n, row in enumerate(json.loads(text), 1))
            return
    except (ValueError, RecursionError) as error:
        raise TrainingError(
            tr("{0} is no JSON: {1}.", name, error), "Name another file."
        ) from error
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            yield f"{name}, line {number}", json.loads(line)
        except (ValueError, RecursionError) as error:
            raise TrainingError(
                tr("{0}, line {1}, is no JSON: {2}.", name, number, error),
                "Write one JSON object a line.",
            ) from error
