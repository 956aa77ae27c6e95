"""Files of prompts for `medusa batch`, and the rows that it writes."""

import json
from pathlib import Path
from typing import Any

WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
LINES = [{"id": word, "prompt": f"say {word}"} for word in WORDS]


def write(path: Path, lines: list[Any]) -> Path:
    rows = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


def rows_of(path: Path) -> dict[str | int, dict[str, Any]]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    by_id = {row["id"]: row for row in rows}
    assert len(by_id) == len(rows)  # nothing is done twice
    return by_id
