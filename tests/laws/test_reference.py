"""The engine does what it did before: tokens, trees, plans and traces of `tests/reference`."""

import json
from typing import Any

import pytest

from medusa_core.loading.target import Target
from tests.reference import record
from tests.support.engine.by_turns import by_turns

RECORDED: dict[str, Any] = json.loads(record.FILE.read_text())
DRAFTERS = tuple(sorted({name.split()[1] for name in RECORDED if name[0].isdigit()}))


@pytest.fixture(scope="module")
def target() -> Target:
    return record.target()


@pytest.mark.parametrize(
    ("prompt", "drafter", "rule", "seed"), by_turns(record.PROMPTS, DRAFTERS, record.RULES)
)
def test_tokens_and_trees_are_those_of_the_reference(
    prompt: str, drafter: str, rule: str, seed: int, target: Target
) -> None:
    case = record.Case(prompt, drafter, rule, seed)
    decoded, recorded = record.decode(case, target), RECORDED[str(case)]
    assert decoded.token_ids == recorded["tokens"]
    assert decoded.trees == recorded["trees"]


@pytest.mark.parametrize("rule", ["greedy", "sample"])
def test_plans_are_those_of_the_reference(rule: str, target: Target) -> None:
    assert record.plan(rule, target) == RECORDED[f"plan {rule}"]


@pytest.mark.parametrize("rule", ["greedy", "sample", "typical"])
def test_traces_are_those_of_the_reference(rule: str, target: Target) -> None:
    assert record.trace(rule, target) == RECORDED[f"trace {rule}"]


@pytest.mark.parametrize("shape", record.SHAPES)
def test_memory_is_planned_as_in_the_reference(shape: str) -> None:
    assert record.memory(shape) == RECORDED[f"memory {shape}"]
