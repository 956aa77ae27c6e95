"""Whose turn it is: prompts in the passes of others, requests that don't join, who waits."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from torch import Tensor

from medusa_core.engine.answer_tuning import AnswerTuning
from medusa_core.engine.generation import Generation
from medusa_core.engine.scheduler import MAX_BATCH, Scheduler, StepResult
from medusa_core.engine.session import Session
from medusa_core.engine.start import start_generation
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import (
    Generate,
    GenerateSettings,
    GenerationDone,
    LoadOptions,
    Progress,
    StepDone,
)
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.runner.resident import ResidentRunner
from medusa_core.runtime.runner.runner import PlacedTree
from medusa_core.speculation.tuning.row_policy import RowPolicy
from tests.support.engine.laws import decode, user_says
from tests.support.models.targets import Folders

PLAIN = GenerateSettings(drafter="none", rule="greedy", max_new_tokens=30, banned=(1,))
LONG_PROMPT = "many words to read " * 24  # several chunks


class NotingRunner(ResidentRunner):
    """Notes the rows of each sequence in each pass; prompts by themselves are negative."""

    def __init__(self, target: Target) -> None:
        super().__init__(target.runner._model, target.precision)
        self.passes: list[tuple[int, ...]] = []

    def verify(self, *placed: PlacedTree) -> Tensor:
        self.passes.append(tuple(each.tree.shape.num_nodes for each in placed))
        return super().verify(*placed)

    def extend(self, token_ids: Sequence[int], kv: KvCache, only_last: bool = False) -> Tensor:
        self.passes.append((-len(token_ids),))
        return super().extend(token_ids, kv, only_last)


@pytest.fixture(scope="module")
def roomy(folders: Folders) -> Target:
    """A target with room for many conversations."""
    options = LoadOptions("float64", context_tokens=512, sessions=MAX_BATCH + 4)
    return load_target(*folders["grouped"], options)


@pytest.fixture
def target(roomy: Target) -> Target:
    """Return a target whose runner records its passes."""
    return replace(roomy, runner=NotingRunner(roomy))


def started(target: Target, name: str, text: str, joins: bool = True) -> Generation:
    """An answer whose prompt isn't read yet."""
    request = Generate(name, "r", user_says(text), PLAIN, joins=joins)
    return start_generation(request, target, Session(target), RowPolicy(target))


def passes_of(target: Target) -> list[tuple[int, ...]]:
    assert isinstance(target.runner, NotingRunner)
    return target.runner.passes


def run(scheduler: Scheduler, running: list[Generation]) -> list[list[StepResult]]:
    """Run steps until all answers have ended."""
    steps = []
    while running:
        steps.append(scheduler.step(running))
    return steps


def done_of(steps: list[list[StepResult]], name: str) -> GenerationDone:
    (done,) = [
        event
        for results in steps
        for result in results
        for event in result.events
        if isinstance(event, GenerationDone) and event.session_id == name
    ]
    return done


def test_an_answer_decodes_in_every_pass_that_prefills_a_prompt(target: Target) -> None:
    scheduler = Scheduler()
    running = [started(target, "early", "hello")]
    first = scheduler.step(running)
    late = started(target, "late", LONG_PROMPT)
    running.append(late)
    passes_of(target).clear()
    steps = run(scheduler, running)
    shared = [rows for rows in passes_of(target) if len(rows) == 2 and max(rows) > 1]
    assert len(shared) > 2
    assert all(min(rows) == 1 for rows in shared)
    assert max(max(rows) for rows in shared) <= target.chunk_rows
    reading = [
        results
        for results in steps
        if any(isinstance(e, Progress) for t in results for e in t.events)
    ]
    assert all(
        any(isinstance(e, StepDone) and e.session_id == "early" for t in results for e in t.events)
        for results in reading
    )
    for name, text in (("early", "hello"), ("late", LONG_PROMPT)):
        assert (
            done_of([first, *steps], name).token_ids
            == decode(target, PLAIN, user_says(text)).token_ids
        )


def test_a_prompt_gets_at_most_a_chunk_of_a_larger_pass(
    target: Target,
) -> None:
    running = [started(target, name, LONG_PROMPT) for name in ("one", "other")]
    run(Scheduler(prompt_rows=64, chunk_rows=16), running)
    assert max(max(rows) for rows in passes_of(target)) == 16


def test_a_single_prompt_is_prefilled_in_passes_of_its_own(target: Target) -> None:
    run(Scheduler(), [started(target, "alone", LONG_PROMPT)])
    read = [rows for rows in passes_of(target) if rows[0] < 0]
    assert read == passes_of(target)[: len(read)]
    assert len(read) > 2
    assert all(rows == (1,) for rows in passes_of(target)[len(read) :])


def test_an_answer_that_cannot_share_passes_decodes_alone_in_turns(
    target: Target,
) -> None:
    names = ("left", "alone", "right")
    running = [started(target, name, "hello", joins=name != "alone") for name in names]
    steps = run(Scheduler(), running)
    owners = [{result.generation.request.session_id for result in results} for results in steps]
    assert {frozenset(owner) for owner in owners} == {
        frozenset({"left", "right"}),
        frozenset({"alone"}),
    }
    both = owners[: 2 * (PLAIN.max_new_tokens - 1)]
    assert all(a != b for a, b in pairwise(both)), "they take turns"
    assert all(len(rows) == 1 for rows in passes_of(target)[1::2][: PLAIN.max_new_tokens])


def test_prompts_without_rows_in_a_pass_come_first_in_the_next(target: Target) -> None:
    running = [started(target, name, LONG_PROMPT) for name in ("one", "two")]
    steps = run(Scheduler(), running)
    readers = [
        [
            t.generation.request.session_id
            for t in results
            if any(isinstance(e, Progress) for e in t.events)
        ]
        for results in steps
    ]
    assert readers[:4] == [["one"], ["two"], ["one"], ["two"]]


def test_a_pass_has_as_many_prompt_rows_as_configured(target: Target) -> None:
    running = [started(target, str(n), LONG_PROMPT) for n in range(3)]
    Scheduler(prompt_rows=600).step(running)
    (rows,) = passes_of(target)
    assert len(rows) > 1
    assert sum(rows) == 600


def test_no_answer_waits_long_if_more_run_than_share_a_pass(target: Target) -> None:
    running = [started(target, str(n), "hello") for n in range(MAX_BATCH + 3)]
    scheduler, taken = Scheduler(), Counter[str]()
    for _ in range(20):
        results = scheduler.step(running)
        assert len(results) <= MAX_BATCH
        taken.update(result.generation.request.session_id for result in results)
    assert len(taken) == MAX_BATCH + 3
    assert max(taken.values()) - min(taken.values()) <= 1


def test_step_times_are_learned_only_from_unshared_steps(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned: list[int] = []
    monkeypatch.setattr(AnswerTuning, "learn_time", lambda *_: learned.append(1))
    scheduler, running = Scheduler(), [started(target, "early", "hello")]
    scheduler.step(running)
    scheduler.step(running)
    assert len(learned) == 1
    late = started(target, "late", LONG_PROMPT)
    running.append(late)
    while late.is_prefilling:
        scheduler.step(running)
    assert len(learned) == 1


def test_prompts_that_wait_for_rows_occupy_no_place_in_a_pass(target: Target) -> None:
    scheduler, running = Scheduler(max_batch=3), [started(target, "early", "hello")]
    scheduler.step(running)
    running[:0] = [started(target, str(n), LONG_PROMPT) for n in range(4)]
    results = scheduler.step(running)
    assert [result.generation.request.session_id for result in results] == ["0", "early"]
