"""The sentences and facts that the recipe's own chat rows are put together from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Fact = tuple[str, Any]
_TEXTS = Path(__file__).parent / "texts"


@dataclass(frozen=True, slots=True)
class Hero:
    """Who a tale may be about: the word in the wish, the pronouns, and what it likes to do."""

    noun: str
    subject: str
    owner: str
    habit: str


@dataclass(frozen=True, slots=True)
class Sentences:
    """All that the rows are made of.

    Attributes:
        lists: By name, sentences of one use.
        facts: By kind, pairs of a thing and what is known of it.
        heroes: Of the tales.
    """

    lists: Mapping[str, Sequence[str]]
    facts: Mapping[str, Sequence[Fact]]
    heroes: Sequence[Hero]


def read_sentences() -> Sentences:
    """Read the shipped files."""
    facts: dict[str, list[Fact]] = {}
    for row in read_jsonl("facts.jsonl"):
        facts.setdefault(row["about"], []).append((row["of"], row["is"]))
    return Sentences(_lists(), facts, [Hero(**row) for row in read_jsonl("heroes.jsonl")])


def read_jsonl(name: str) -> list[dict[str, Any]]:
    """The rows of one of the recipe's files."""
    text = (_TEXTS / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def _lists() -> dict[str, list[str]]:
    """`[name]` opens a list; every other line is one sentence of it."""
    found: dict[str, list[str]] = {}
    name = ""
    text = (_TEXTS / "sentences.txt").read_text(encoding="utf-8")
    for line in filter(None, text.splitlines()):
        if line.startswith("["):
            name = line.strip("[]")
            found[name] = []
        else:
            found[name].append(line)
    return found
