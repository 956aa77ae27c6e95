"""Heads beside other drafts: whether they bring more than their time is seen as answers go."""

import time
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
import torch

from medusa_core.drafters.drafter import Observation, drafter_registry
from medusa_core.drafters.grown import GrownDrafter
from medusa_core.drafters.lookup import Lookup
from medusa_core.generate.direct import generate
from medusa_core.messages import GenerateSettings
from medusa_core.pace.learning import StepYield, Without
from medusa_core.pace.tuner import Tuner
from medusa_core.rules.rule import rule_registry
from medusa_core.target import Target
from medusa_core.types import Proposal, RowBudget
from tests.core.laws import user_says
from tests.core.test_budget import CHEAP, SETTINGS

PRICES = array("f", [0.01 * row for row in range(8)])
LENGTH = 64


# When they are asked ------------------------------------------------------------------------------


def proposals(
    drafter: GrownDrafter, target: Target, num_steps: int, start: int = 1
) -> Iterator[tuple[int, Proposal]]:
    """What is proposed as a text grows by two tokens a step, and the text's length then."""
    hidden = torch.zeros(target.config.hidden_size, dtype=torch.float64)
    drafter.begin([1] * start)
    for step in range(1, num_steps + 1):
        run = [7, 7] if step % 3 else [7, 9]
        drafter.observe(Observation(run, hidden[None]))
        yield start + 2 * step, drafter.propose(run[-1], 8)


@torch.inference_mode()
@pytest.mark.parametrize(("asks_rarely", "every"), [(False, 2), (False, 16), (True, 256)])
@pytest.mark.parametrize("start", [1, 7, 200])
def test_now_and_then_a_step_goes_otherwise(
    tiny: Target, asks_rarely: bool, every: int, start: int
) -> None:
    budget = RowBudget(8, PRICES, asks_rarely=asks_rarely, sample_every=every)
    drafter = GrownDrafter(budget, tiny.heads, Lookup(), tiny.phrases)
    alone = GrownDrafter(budget, None, Lookup(), tiny.phrases)
    told = zip(
        proposals(drafter, tiny, 400, start), proposals(alone, tiny, 400, start), strict=True
    )
    samples, num_sampled = [], start // every
    for (length, proposal), (_, other) in told:
        is_sample, num_sampled = length // every > num_sampled, length // every
        compares = is_sample and num_sampled % 2 == 1
        asks = compares or is_sample == asks_rarely
        assert bool(proposal.guesses) == asks
        assert (proposal.instead is not None) == compares
        assert other.instead is None
        if compares:
            assert proposal.instead == other.tree
        if not asks:
            assert proposal.tree == other.tree
        samples.append((is_sample, compares))
    assert {(True, True), (True, False)} <= set(samples)


@torch.inference_mode()
def test_a_new_answer_knows_nothing_of_the_last_one(tiny: Target) -> None:
    drafter = GrownDrafter(RowBudget(8), tiny.heads, Lookup(), tiny.phrases)
    for _, proposal in proposals(drafter, tiny, 3):
        assert proposal.guesses
    drafter.begin([1])
    assert not drafter.propose(7, 8).guesses


def test_where_nothing_is_to_be_weighed_heads_are_always_asked(tiny: Target) -> None:
    sampling = RowBudget(8, PRICES, sample_every=2)
    for budget, lookup in ((RowBudget(8), Lookup()), (sampling, None)):
        drafter = GrownDrafter(budget, tiny.heads, lookup)
        for _, proposal in proposals(drafter, tiny, 40):
            assert proposal.guesses
            assert proposal.instead is None


# What is learned of it ----------------------------------------------------------------------------


def tuner_of(target: Target, draft_s: float) -> Tuner:
    """Of heads that are right in nine of ten steps, and of rows that cost next to nothing."""
    assert target.heads is not None
    assert target.trees is not None
    sure = replace(target.trees, head_accuracies=((0.9,),) * target.heads.num_heads)
    seconds = (draft_s,) * target.heads.num_heads
    costs = replace(CHEAP, draft_s=seconds, drawn_draft_s=seconds)
    return Tuner(replace(target, trees=sure), costs)


def asks_rarely(tuner: Tuner, settings: GenerateSettings = SETTINGS) -> bool:
    budget = tuner.budget(settings, LENGTH)
    assert budget.num_heads
    return budget.asks_rarely


def compared(num_steps: int, gain: int, rows: tuple[int, int] = (4, 4)) -> list[StepYield]:
    """Steps of a second that kept so many drafts more than without heads."""
    without = Without(2 - gain, rows[1])
    return [StepYield(1.0, 2, rows[0], 1.0, without=without)] * num_steps


def test_heads_that_bring_nothing_beside_others_are_asked_rarely(tiny: Target) -> None:
    tuner = tuner_of(tiny, 0.1)
    assert not asks_rarely(tuner)
    tuner.judge(SETTINGS, LENGTH, compared(3, 0))
    assert not asks_rarely(tuner)  # that may be chance
    assert tuner.budget(SETTINGS, LENGTH).sample_every == 2
    tuner.judge(SETTINGS, LENGTH, compared(100, 0))
    assert asks_rarely(tuner)
    assert tuner.budget(SETTINGS, LENGTH).sample_every == 256
    for other in (replace(SETTINGS, rule="sample"), replace(SETTINGS, drafter="medusa-dynamic")):
        assert not asks_rarely(tuner, other)  # each has its own
    tuner.judge(SETTINGS, LENGTH, compared(1000, 2))  # of another kind of text
    assert not asks_rarely(tuner)
    assert tuner.budget(SETTINGS, LENGTH).sample_every == 16


def test_heads_that_are_watched_are_always_asked(tiny: Target) -> None:
    watching = replace(SETTINGS, watches=True)
    for draft_s in (0.1, 50.0):
        tuner = tuner_of(tiny, draft_s)
        for settings in (SETTINGS, watching):
            tuner.judge(settings, LENGTH, compared(100, 0))
        budget = tuner.budget(watching, LENGTH)
        assert budget.num_heads
        assert (budget.asks_rarely, budget.sample_every) == (False, 0)
        assert len(budget.prices) > 0


def test_what_heads_bring_is_weighed_with_their_time(tiny: Target) -> None:
    gains = [*compared(60, 1), *compared(140, 0)]  # 0.3 of a token, three tokens a second
    for draft_s, rarely in ((0.05, False), (0.2, True)):
        tuner = tuner_of(tiny, draft_s)
        for _ in range(5):
            tuner.judge(SETTINGS, LENGTH, gains)
        assert asks_rarely(tuner) == rarely


def test_what_their_rows_take_is_subtracted(tiny: Target) -> None:
    steep = replace(CHEAP, rows=(1, 8), seconds=((1.0, 2.0),), draft_s=(0.01,) * 3)
    tuner = tuner_of(tiny, 0.01)
    tuner.costs = steep
    for rows, rarely in (((8, 1), True), ((4, 4), False), ((1, 8), False)):
        tuner.judge(SETTINGS, LENGTH, compared(2000, 1, rows))
        assert asks_rarely(tuner) == rarely, rows


def drafts(num_steps: int, with_s: float, without_s: float) -> list[StepYield]:
    """Steps with heads and without, by how long their drafts took."""
    one = StepYield(1.0, 2, 4, 1.0, draft_s=without_s)
    return [one, one._replace(draft_s=with_s, asks_heads=True)] * num_steps


def test_the_time_that_heads_take_is_read_from_the_clock(tiny: Target) -> None:
    tuner = tuner_of(tiny, 0.01)
    tuner.judge(SETTINGS, LENGTH, compared(400, 1))  # about one token, three tokens a second
    assert not asks_rarely(tuner)
    tuner.judge(SETTINGS, LENGTH, drafts(200, 0.6, 0.1))
    assert asks_rarely(tuner)
    tuner.judge(SETTINGS, LENGTH, drafts(4000, 0.6, 0.5))
    assert not asks_rarely(tuner)
    # What is compared takes longer, and a pause is nobody's time.
    tuner.judge(SETTINGS, LENGTH, [step._replace(draft_s=9.0) for step in compared(400, 1)])
    assert not asks_rarely(tuner)
    paused = [step._replace(draft_s=500.0) for step in drafts(1, 1, 1)[1:]]
    tuner.judge(SETTINGS, LENGTH, [*paused, *drafts(20, 0.6, 0.5)])
    assert not asks_rarely(tuner)


def test_drafts_with_heads_alone_do_not_say_what_heads_take(tiny: Target) -> None:
    tuner = tuner_of(tiny, 0.01)
    asked = [step for step in drafts(400, 50.0, 0.0) if step.asks_heads]
    tuner.judge(SETTINGS, LENGTH, asked)
    assert not asks_rarely(tuner)


def test_where_less_comes_true_than_was_promised_heads_bring_less(tiny: Target) -> None:
    tuner = tuner_of(tiny, 0.2)
    tuner.judge(SETTINGS, LENGTH, [StepYield(4.0, 2, 4, 1.0)] * 3000)  # half of it, 3 tokens/s
    assert not asks_rarely(tuner)
    tuner.judge(SETTINGS, LENGTH, compared(10, 0))
    assert asks_rarely(tuner)


def test_rows_that_take_longer_now_take_more_of_what_heads_bring(tiny: Target) -> None:
    tuner = tuner_of(tiny, 0.01)
    tuner.costs = replace(CHEAP, rows=(1, 8), seconds=((1.0, 2.0),), draft_s=(0.01,) * 3)
    slow = [step._replace(seconds=2.0) for step in compared(3000, 3, (8, 1))]
    tuner.judge(SETTINGS, LENGTH, slow)  # seven rows take a second: one and a half tokens
    assert not asks_rarely(tuner)
    one, eight = StepYield(1.0, 2, 1, 1.0), StepYield(1.0, 2, 8, 4.0)
    tuner.judge(SETTINGS, LENGTH, [one, eight] * 9000)  # they take three
    assert asks_rarely(tuner)


def test_before_it_is_known_heads_bring_what_they_would_alone_and_cost_what_was_measured(
    tiny: Target,
) -> None:
    few = compared(10, 0)  # of 14 with what was known: 0.7 of a token, 1.7 tokens a second
    for draft_s, drawn_draft_s, settings, rarely in (
        (0.36, 0.01, SETTINGS, False),
        (0.45, 0.01, SETTINGS, True),
        (0.01, 0.5, SETTINGS, False),
        (0.01, 0.5, replace(SETTINGS, rule="sample"), True),
    ):
        tuner = tuner_of(tiny, draft_s)
        assert tuner.costs is not None
        tuner.costs = replace(tuner.costs, drawn_draft_s=(drawn_draft_s,) * 3)
        tuner.judge(settings, LENGTH, few)
        assert asks_rarely(tuner, settings) == rarely, (draft_s, drawn_draft_s)


def test_what_was_long_ago_fades(tiny: Target) -> None:
    tuner = tuner_of(tiny, 0.33)
    tuner.judge(SETTINGS, LENGTH, compared(2000, 0))
    assert asks_rarely(tuner)
    tuner.judge(SETTINGS, LENGTH, compared(600, 2))
    assert not asks_rarely(tuner)
    tuner = tuner_of(tiny, 0.01)
    tuner.judge(SETTINGS, LENGTH, compared(400, 1))
    tuner.judge(SETTINGS, LENGTH, drafts(5000, 0.6, 0.1))
    assert asks_rarely(tuner)
    tuner.judge(SETTINGS, LENGTH, drafts(1500, 0.6, 0.5))
    assert not asks_rarely(tuner)


# In answers ---------------------------------------------------------------------------------------


def test_an_answer_tells_what_heads_brought(tiny: Target) -> None:
    told: list[StepYield] = []

    class Listening(Tuner):
        def judge(
            self, settings: GenerateSettings, length: int, steps: Sequence[StepYield]
        ) -> None:
            told.extend(steps)

    known = tuner_of(tiny, 1e-6)
    tuner = Listening(known.target_for(SETTINGS), known.costs)
    settings = replace(SETTINGS, max_new_tokens=60, rests=False, repetition_penalty=0.3)
    done = generate(tiny, user_says("one"), settings, tuner=tuner)
    assert len(told) == done.num_steps
    both = [step for step in told if step.without is not None]
    assert both
    assert all(step.asks_heads for step in both)
    assert not all(step.asks_heads for step in told)
    assert all(0 < step.draft_s < step.seconds for step in told)
    for step in both:
        assert step.without is not None
        assert 0 <= step.without.num_accepted <= step.num_accepted + 1
        assert step.without.num_accepted < step.without.num_rows
    assert any(step.without and step.without.num_accepted for step in both)


def test_what_is_told_of_a_step_is_what_it_was(
    tiny: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[StepYield] = []
    proposed: list[Proposal] = []
    propose = GrownDrafter.propose

    def slowly(self: GrownDrafter, root_id: int, max_rows: int) -> Proposal:
        time.sleep(0.01)
        proposed.append(propose(self, root_id, max_rows))
        return proposed[-1]

    class Listening(Given):
        def judge(
            self, settings: GenerateSettings, length: int, steps: Sequence[StepYield]
        ) -> None:
            told.extend(steps)

    monkeypatch.setattr(GrownDrafter, "propose", slowly)
    settings = replace(SETTINGS, max_new_tokens=60, rests=False, repetition_penalty=0.3)
    runs: list[tuple[int, ...]] = []
    generate(
        tiny,
        user_says("one"),
        settings,
        on_step=lambda step: runs.append(step.token_ids),
        tuner=Listening(tiny, RowBudget(8, PRICES, sample_every=4)),
    )
    assert len(told) == len(proposed) == len(runs) - 1
    for step, proposal, run in zip(told[:-1], proposed, runs[1:], strict=False):
        assert step.draft_s >= 0.01
        if proposal.instead is None:
            assert step.without is None
        else:
            rows = proposal.instead.shape.num_nodes
            assert step.without == (proposal.instead.num_held(run), rows)


class Given(Tuner):
    """Gives every answer the same budget."""

    def __init__(self, target: Target, given: RowBudget) -> None:
        super().__init__(target)
        self._given = given

    def budget(self, settings: GenerateSettings, length: int) -> RowBudget:
        return self._given


@pytest.mark.parametrize("rule", [spec.name for spec in rule_registry().specs if spec.is_exact])
@pytest.mark.parametrize("drafter", [s.name for s in drafter_registry().specs if s.weighs_rows])
def test_the_text_is_the_same_however_often_heads_are_asked(
    tiny: Target, rule: str, drafter: str
) -> None:
    settings = GenerateSettings(drafter=drafter, rule=rule, max_new_tokens=60, rests=False)
    often, rarely = (
        generate(tiny, user_says("two"), settings, tuner=Given(tiny, budget))
        for budget in (
            RowBudget(8, PRICES, sample_every=2),
            RowBudget(8, PRICES, asks_rarely=True, sample_every=16),
        )
    )
    plain = generate(tiny, user_says("two"), replace(settings, drafter="none"))
    assert often.token_ids == rarely.token_ids == plain.token_ids
