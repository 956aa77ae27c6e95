"""The committed prompts: every category is there, in the schema that the bench reads."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

PROMPTS = Path(__file__).parents[3] / "resources" / "prompts"
IN_DOMAIN = {
    "dialogue", "math", "qa", "reading", "scripts", "short", "smalltalk", "stories", "structured",
    "task_dialogue", "words",
}  # fmt: skip
SUITES = {"mt_bench", "spec_bench", "humaneval", "gsm8k_test", "ifeval"}


def read(name: str) -> list[dict[str, Any]]:
    """Rows of one file of prompts."""
    lines = (PROMPTS / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("name", ["in_domain.jsonl", "general.jsonl"])
def test_each_prompt_has_the_schema_and_a_unique_id(name: str) -> None:
    rows = read(name)
    assert max(Counter(row["id"] for row in rows).values()) == 1
    for row in rows:
        assert {"id", "suite", "category", "turns"} <= set(row)
        assert row["turns"]
        assert all(isinstance(turn, str) and turn.strip() for turn in row["turns"])


def test_in_domain_prompts_are_short_and_three_of_each_category() -> None:
    rows = read("in_domain.jsonl")
    assert Counter(row["category"] for row in rows) == dict.fromkeys(IN_DOMAIN, 3)
    assert max(sum(map(len, row["turns"])) for row in rows) <= 1500


def test_general_prompts_are_two_of_each_suite_and_category() -> None:
    rows = read("general.jsonl")
    assert {row["suite"] for row in rows} == SUITES
    assert set(Counter((row["suite"], row["category"]) for row in rows).values()) == {2}


@pytest.mark.parametrize("name", ["in_domain.jsonl", "general.jsonl"])
def test_the_source_of_each_prompt_is_stated(name: str) -> None:
    sources = (PROMPTS / "SOURCES.md").read_text(encoding="utf-8")
    assert {row.get("src", row["suite"]) for row in read(name)} - set(sources.split()) - {
        word.strip(",") for word in sources.split()
    } == set()
