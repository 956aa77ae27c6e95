"""Prompts for benchmarks and evaluation: JSON lines with `id, suite, category, turns[]`."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from medusa_core.errors import PromptFileError


@dataclass(frozen=True, slots=True)
class BenchPrompt:
    """A conversation's user messages.

    Attributes:
        prompt_id: Id in the file.
        category: Topic.
        turns: User messages, each sent after the model's answer to the one before.
    """

    prompt_id: str
    category: str
    turns: tuple[str, ...]


def read_prompts(path: Path, limit: int | None = None) -> list[BenchPrompt]:
    """Read a file of prompts.

    Args:
        path: JSON lines, or a folder of such files; unknown fields are ignored.
        limit: Most prompts, taken from the categories in rotation; None for all.

    Raises:
        PromptFileError: The file can't be read; the message names the line.
    """
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    prompts = [prompt for file in files for prompt in _read(file)]
    if not prompts:
        raise PromptFileError(f"{path} holds no prompt.", "Each line is one JSON object.")
    return prompts if limit is None else _rotate_categories(prompts)[:limit]


def _read(path: Path) -> list[BenchPrompt]:
    """Read all prompts of a file."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise PromptFileError(
            f"{path} can't be read: {error}.", "Name a file of prompts with --prompts."
        ) from error
    return [_parse(line, n, path) for n, line in enumerate(lines, 1) if line.strip()]


def _parse(line: str, number: int, path: Path) -> BenchPrompt:
    """Parse a line."""
    try:
        raw: Any = json.loads(line)
        turns = tuple(raw["turns"])
        prompt = BenchPrompt(str(raw["id"]), str(raw["category"]), turns)
    except (ValueError, TypeError, KeyError) as error:
        raise PromptFileError(
            f"{path.name}, line {number}, is no prompt: {error!r}.",
            'Each line needs "id", "category" and "turns".',
        ) from error
    if not turns or not all(isinstance(turn, str) and turn.strip() for turn in turns):
        raise PromptFileError(
            f"{path.name}, line {number}: turns is no list of texts.",
            'Write "turns": ["first message", ...].',
        )
    return prompt


def _rotate_categories(prompts: Sequence[BenchPrompt]) -> list[BenchPrompt]:
    """Interleave categories, so that the first prompts include all of them."""
    by_category: dict[str, list[BenchPrompt]] = defaultdict(list)
    for prompt in prompts:
        by_category[prompt.category].append(prompt)
    rounds = zip_longest(*by_category.values())
    return [prompt for prompt in chain.from_iterable(rounds) if prompt is not None]
