"""What a command that failed said of it."""

from __future__ import annotations

_ERROR = "error: "


def problem_of(output: str) -> tuple[str, str] | None:
    """The problem and the hint that a command ended with; None where it told none.

    Args:
        output: The end of all that it printed.
    """
    lines = output.splitlines()
    for place in range(len(lines) - 1, -1, -1):
        if lines[place].startswith(_ERROR):
            hint = lines[place + 1].strip() if place + 1 < len(lines) else ""
            return lines[place].removeprefix(_ERROR), hint
    return None
