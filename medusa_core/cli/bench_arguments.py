"""Input and output of benchmarks."""

from __future__ import annotations

import sys
from pathlib import Path

from medusa_core.errors import PromptFileError, RequestError
from medusa_core.system.files.disk_errors import disk_errors


def listed_names(text: str) -> list[str]:
    """Split names at commas, without duplicates."""
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def whole_numbers(text: str, option: str) -> tuple[int, ...]:
    """Parse a comma-separated list of row counts.

    Raises:
        RequestError: The text is no such list.
    """
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if not numbers or not all(1 < number <= 1024 for number in numbers):
        raise RequestError(f"{option} {text} are no numbers of rows.", "Write them as 2,4,8,16.")
    return numbers


def print_line(text: str) -> None:
    """Print what is being measured."""
    print(text, file=sys.stderr, flush=True)


def show_progress(num_done: int, num_prompts: int) -> None:
    """Show the progress of a measurement in a terminal."""
    if sys.stderr.isatty():
        end = "\n" if num_done == num_prompts else ""
        print(f"\r{num_done}/{num_prompts} prompts", end=end, file=sys.stderr, flush=True)


def write_file(path: Path, text: str) -> None:
    """Write the results.

    Raises:
        PromptFileError: The file can't be written.
    """
    with disk_errors(PromptFileError, path, "Name another file."):
        path.write_text(text, encoding="utf-8")
