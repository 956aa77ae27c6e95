"""What the measurements of `bench` read and write alike."""

from __future__ import annotations

import sys
from pathlib import Path

from medusa_core.errors import PromptFileError, RequestError


def listed_names(text: str) -> list[str]:
    """Names with commas between, each once."""
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def whole_numbers(text: str, option: str) -> tuple[int, ...]:
    """Counts of rows with commas between.

    Raises:
        RequestError: They are none.
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
    """Say in a terminal how far a measurement is."""
    if sys.stderr.isatty():
        end = "\n" if num_done == num_prompts else ""
        print(f"\r{num_done}/{num_prompts} prompts", end=end, file=sys.stderr, flush=True)


def write_file(path: Path, text: str) -> None:
    """Write what was measured.

    Raises:
        PromptFileError: The file can't be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise PromptFileError(
            f"{path} can't be written: {error.strerror or error}.", "Name another file."
        ) from error
