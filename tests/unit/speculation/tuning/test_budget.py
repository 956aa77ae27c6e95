"""Trees take the rows that pay: what rows cost, and which are taken."""

import random
from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import cycle

import pytest
import torch

from medusa_core.engine.direct import generate
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings
from medusa_core.runtime.tree.step import NO_COSTS, RowBudget
from medusa_core.speculation.drafters.drafter import NUM_RANKS, DrafterSpec
from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.rules.rule import rule_registry
from medusa_core.speculation.tuning.governor import Governor
from medusa_core.speculation.tuning.row_policy import RowPolicy
from medusa_core.speculation.tuning.step_costs import (
    MAX_ROWS,
    SourceCost,
    StepCosts,
)
from medusa_core.speculation.tuning.step_outcome import StepOutcome
from tests.support.engine.laws import user_says

COSTS = StepCosts((100, 200), (1, 4, 8), ((1.0, 1.6, 4.0), (2.0, 3.2, 9.0)))
CHEAP = StepCosts((1,), (1, MAX_ROWS), ((1.0, 1.0 + 1e-6),))
DEAR = StepCosts((1,), (1, MAX_ROWS), ((1.0, 600.0),))
SETTINGS = GenerateSettings(drafter="composite")


# What rows cost -----------------------------------------------------------------------------------


def test_the_cost_of_rows_is_expressed_in_tokens() -> None:
    budget = COSTS.budget(64, 100, 2.0)
    assert budget.most == 8
    assert list(budget.row_costs) == pytest.approx([0, 0.4, 0.8, 1.2, 2.4, 3.6, 4.8, 6.0])
    assert list(COSTS.budget(3, 100, 2.0).row_costs) == pytest.approx([0, 0.4, 0.8])
    assert list(COSTS.budget(4, 150, 1.0).row_costs) == pytest.approx([0, 0.3, 0.6, 0.9])
    assert list(COSTS.budget(4, 300, 1.0).row_costs) == pytest.approx([0, 0.6, 1.2, 1.8])
    for length in (10, 100, 130, 200, 1000):
        seconds = [COSTS.step_s(num_rows, length) for num_rows in range(1, 9)]
        prices = [3.0 * (longer - seconds[0]) for longer in seconds]
        assert list(COSTS.budget(64, length, 3.0).row_costs) == pytest.approx(prices)


def test_zero_rows_have_no_gain() -> None:
    noisy = StepCosts((1,), (1, 2, 3, 4), ((1.0, 0.9, 1.5, 1.4),))
    assert list(noisy.budget(64, 1, 1.0).row_costs) == pytest.approx([0, 0, 0.5, 0.5])


# Who decides --------------------------------------------------------------------------------------


def test_a_requested_number_of_rows_is_free(tiny: Target) -> None:
    row_policy = RowPolicy(tiny, COSTS)
    for growth in ("chain", "tree"):
        asked = replace(SETTINGS, tree_rows=5, growth=growth)
        assert row_policy.budget(asked, 100) == RowBudget(5, growth=growth)
    by_itself = row_policy.budget(replace(SETTINGS, tree_rows=5), 100)
    assert by_itself._replace(acceptance_ratios=NO_COSTS) == RowBudget(5)
    assert set(by_itself.acceptance_ratios) == {1.0}
    assert row_policy.budget(replace(SETTINGS, drafter="none", tree_rows=5), 100) == RowBudget(1)
    assert RowPolicy(tiny).budget(SETTINGS, 100).row_costs == RowBudget(1).row_costs
    assert (
        row_policy.budget(replace(SETTINGS, drafter="medusa"), 100).row_costs
        == RowBudget(1).row_costs
    )


def yields(num_steps: int, promised: float, accepted: int, seconds: float) -> list[StepOutcome]:
    """Steps of four rows."""
    return [StepOutcome(promised, accepted, 4, seconds)] * num_steps


def dearest(
    row_policy: RowPolicy, settings: GenerateSettings = SETTINGS, length: int = 100
) -> float:
    return row_policy.budget(settings, length).row_costs[-1]


def test_costs_follow_the_current_decoding_rate(tiny: Target) -> None:
    row_policy = RowPolicy(tiny, COSTS)
    at_first = dearest(row_policy)
    assert at_first == pytest.approx(3.0)  # plain decoding's pace: a token each second
    row_policy.observe(SETTINGS, 100, yields(4000, 3.0, 3, 1.0))
    assert dearest(row_policy) == pytest.approx(4 * at_first, rel=0.05)
    row_policy.observe(SETTINGS, 100, yields(9000, 3.0, 3, 4.0))
    assert dearest(row_policy) == pytest.approx(at_first, rel=0.1)
    for other in (replace(SETTINGS, drafter="suffix"), replace(SETTINGS, rule="sample")):
        assert dearest(row_policy, other) == pytest.approx(at_first)  # each has its own


def test_a_pause_doesnt_count_as_decoding_time(tiny: Target) -> None:
    paused, smooth = RowPolicy(tiny, COSTS), RowPolicy(tiny, COSTS)
    smooth.observe(SETTINGS, 100, yields(400, 3.0, 3, 1.0))
    paused.observe(SETTINGS, 100, [*yields(399, 3.0, 3, 1.0), StepOutcome(3.0, 3, 4, 1e6)])
    assert dearest(paused) == pytest.approx(dearest(smooth), rel=0.02)
    paused.observe(SETTINGS, 100, [])


def test_overestimated_gains_make_rows_more_expensive(tiny: Target) -> None:
    honest, boasting = RowPolicy(tiny, COSTS), RowPolicy(tiny, COSTS)
    honest.observe(SETTINGS, 100, yields(3000, 1.0, 1, 1.0))
    boasting.observe(SETTINGS, 100, yields(3000, 4.0, 1, 1.0))
    assert dearest(boasting) == pytest.approx(4 * dearest(honest), rel=0.1)
    modest = RowPolicy(tiny, COSTS)
    modest.observe(SETTINGS, 100, yields(3000, 0.25, 1, 1.0))
    assert dearest(modest) == pytest.approx(dearest(honest), rel=0.01)
    # Steps without drafts let distrust fade, or nothing would ever be tried again.
    boasting.observe(SETTINGS, 100, yields(1500, 0.0, 0, 0.5))
    assert dearest(boasting) == pytest.approx(dearest(honest), rel=0.1)


@pytest.mark.parametrize(
    ("slope", "more_s"),
    [(1.0, 0.0), (1.0, 5.0), (2.0, 0.0), (0.5, 1.0), (9.0, 0.0), (-1.0, 9.0)],
)
def test_further_rows_cost_their_current_step_time(
    tiny: Target, slope: float, more_s: float
) -> None:
    rng = random.Random(3)
    measured = COSTS.steps_s(8, 200)

    def steps(slope: float, more_s: float, num_steps: int) -> list[StepOutcome]:
        """Return steps of which rows, and all, take longer by given factors."""
        rows = [rng.randrange(1, 9) for _ in range(num_steps)]
        seconds = [slope * measured[n - 1] + more_s + rng.random() for n in rows]
        return [StepOutcome(1.0, 1, n, taken) for n, taken in zip(rows, seconds, strict=True)]

    row_policy = RowPolicy(tiny, COSTS)
    row_policy.observe(SETTINGS, 200, steps(0.7, 3.0, 2000))  # it was otherwise
    taken = steps(slope, more_s, 12_000)
    row_policy.observe(SETTINGS, 200, taken)
    rate = 2 * len(taken) / sum(step.seconds for step in taken)
    limited = min(3.0, max(1 / 3, slope))
    expected = limited * rate * (measured[-1] - measured[0])
    assert dearest(row_policy, length=200) == pytest.approx(expected, rel=0.1)


def test_steps_of_one_size_dont_reveal_the_cost_of_rows(tiny: Target) -> None:
    for num_rows in (4, 64):  # the latter were not measured
        row_policy = RowPolicy(tiny, COSTS)
        row_policy.observe(SETTINGS, 100, [StepOutcome(1.0, 1, num_rows, 3.0)] * 50)
        rate = (2 * 50 + 8) / (3.0 * 50 + 8)
        assert dearest(row_policy) == pytest.approx(3.0 * rate)


def test_cheap_rows_are_used_and_expensive_ones_are_not(
    target_of: Callable[[str], Target], monkeypatch: pytest.MonkeyPatch
) -> None:
    # It judges by real time, of which drafting for a tiny target takes much.
    monkeypatch.setattr(RowPolicy, "governor", lambda *_: None)
    weighing = [spec.name for spec in drafter_registry().specs if spec.weighs_rows]
    assert len(weighing) >= 4
    rules = [rule.name for rule in rule_registry().specs if rule.choice.is_exact]
    for drafter, rule in zip(weighing, cycle(rules), strict=False):
        settings = GenerateSettings(drafter=drafter, rule=rule, max_new_tokens=30)
        texts, rows = [], []
        for costs in (CHEAP, DEAR):
            reported: list[int] = []
            target = target_of(drafter)
            done = generate(
                target,
                user_says("again and again and again"),
                settings,
                on_step=lambda step, reported=reported: reported.append(step.num_rows),  # type: ignore[misc]
                row_policy=RowPolicy(target, costs),
            )
            texts.append(done.token_ids)
            rows.append(max(reported[1:]))
        assert texts[0] == texts[1]
        assert rows[0] > 2, drafter
        assert rows[1] == 1, drafter


@torch.inference_mode()
def test_unprofitable_heads_are_not_queried(tiny: Target) -> None:
    assert tiny.heads is not None
    assert tiny.trees is not None
    num_heads = tiny.heads.num_heads
    sure = replace(tiny.trees, head_accuracies=((0.9,),) * num_heads)
    target = replace(tiny, trees=sure, phrases=None)

    def requested(*draft_s: float) -> int | None:
        costs = replace(
            CHEAP, source_costs={"medusa": SourceCost(draft_s, tuple(9 * s for s in draft_s))}
        )
        return RowPolicy(target, costs).budget(SETTINGS, 64).levels

    assert requested(*[0.01 * n for n in range(1, num_heads + 1)]) == num_heads
    assert requested(*[0.01, *[5.0] * (num_heads - 1)]) == 1
    assert requested(*[5.0] * num_heads) == 0
    alone = replace(SETTINGS, drafter="medusa-dynamic")
    dear = replace(
        CHEAP, source_costs={"medusa": SourceCost((5.0,) * num_heads, (5.0,) * num_heads)}
    )
    assert RowPolicy(target, dear).budget(alone, 64).levels == 1  # nothing else would draft
    assert requested(*[0.2 + 0.01 * n for n in range(1, num_heads + 1)]) == num_heads
    costs = replace(
        DEAR, source_costs={"medusa": SourceCost((1e-6,) * num_heads, (1e-6,) * num_heads)}
    )
    assert RowPolicy(target, costs).budget(SETTINGS, 64).levels == 0  # no row pays

    some = replace(
        CHEAP, source_costs={"medusa": SourceCost((0.2,) * num_heads, (0.2,) * num_heads)}
    )
    # What is promised and not kept makes heads dearer, too.
    boasting = RowPolicy(target, some)
    assert boasting.budget(SETTINGS, 64).levels == num_heads
    boasting.observe(SETTINGS, 64, yields(3000, 60.0, 1, 1.0))
    assert boasting.budget(SETTINGS, 64).levels == 0
    seldom = replace(target, trees=replace(sure, head_accuracies=((0.4,),) * num_heads))
    assert RowPolicy(seldom, some).budget(SETTINGS, 64).levels

    drawn = replace(SETTINGS, rule="sample")
    costs = replace(
        CHEAP, source_costs={"medusa": SourceCost((0.1,) * num_heads, (90.0,) * num_heads)}
    )
    assert RowPolicy(target, costs).budget(SETTINGS, 64).levels == num_heads
    assert RowPolicy(target, costs).budget(drawn, 64).levels == 0


def test_noise_passed_to_heads_makes_fixed_trees_smaller(tiny: Target) -> None:
    assert tiny.trees is not None
    sure = replace(tiny.trees, head_accuracies=((0.9,),) * 3)
    costs = replace(
        CHEAP, source_costs={"medusa": SourceCost((0.01, 0.02, 0.03), (0.01, 5.0, 10.0))}
    )
    row_policy = RowPolicy(replace(tiny, trees=sure), costs)
    greedy = GenerateSettings(drafter="medusa")
    drawn = replace(greedy, rule="sample")
    assert (row_policy.rows(greedy, 64), row_policy.rows(drawn, 64)) == (4, 2)
    plans = [row_policy.plan("s", "r", settings) for settings in (greedy, drawn)]
    assert plans[1].tree_step_s[1] - plans[0].tree_step_s[1] == pytest.approx(5.0 - 0.02)


@torch.inference_mode()
@pytest.mark.parametrize("levels", [0, 1, 2])
def test_as_many_heads_are_queried_as_the_budget_has_levels(tiny: Target, levels: int) -> None:
    hidden = torch.zeros(tiny.config.hidden_size, dtype=torch.float64)
    drafter = drafter_registry().get("composite").build(tiny, RowBudget(8, levels=levels))
    drafter.begin([1])
    drafter.observe(Observation([9], hidden[None]))
    assert len(drafter.propose(9, 8).top_tokens) == levels


def test_an_answer_reports_the_gain_of_its_trees(
    tiny: Target, target_of: Callable[[str], Target]
) -> None:
    reported: list[StepOutcome] = []
    prompt_length = generate(
        tiny, user_says("one"), GenerateSettings(drafter="medusa")
    ).num_prompt_tokens

    class Listening(RowPolicy):
        def observe(
            self,
            settings: GenerateSettings,
            length: int,
            steps: Sequence[StepOutcome],
            drafter: DrafterSpec | None = None,
        ) -> None:
            assert length == prompt_length
            reported.extend(steps)

    for drafter in (spec.name for spec in drafter_registry().specs if spec.drafts):
        reported.clear()
        # Repetitions are rewarded, so that there is something to look up.
        settings = GenerateSettings(
            drafter=drafter, max_new_tokens=24, tree_rows=5, repetition_penalty=0.3
        )
        target = target_of(drafter)
        done = generate(target, user_says("one"), settings, row_policy=Listening(target))
        assert len(reported) == done.num_steps
        assert all(step.num_accepted < step.num_rows <= 5 for step in reported)
        assert all(0 <= step.expected_accepted < step.num_rows for step in reported)
        assert max(step.expected_accepted for step in reported) > 0
        assert (
            sum(step.num_accepted for step in reported) >= len(done.token_ids) - done.num_steps - 5
        )
        assert sum(step.seconds for step in reported) <= done.decode_s


def test_paused_steps_are_not_learned_from(tiny: Target) -> None:
    reported: list[StepOutcome] = []

    class Resting(Governor):
        drafts = False  # type: ignore[assignment]

    class Listening(RowPolicy):
        def governor(self, settings: GenerateSettings, length: int) -> Governor:
            return Resting(1.0)

        def observe(
            self,
            settings: GenerateSettings,
            length: int,
            steps: Sequence[StepOutcome],
            drafter: DrafterSpec | None = None,
        ) -> None:
            reported.extend(steps)

    done = generate(tiny, user_says("one"), SETTINGS, row_policy=Listening(tiny, COSTS))
    assert done.num_plain_steps == done.num_steps > 0
    assert reported == []


@torch.inference_mode()
def test_many_drafts_are_considered_if_rows_are_cheap(tiny: Target) -> None:
    hidden = torch.zeros(tiny.config.hidden_size, dtype=torch.float64)
    rising = array("f", [0.001 * row for row in range(64)])
    dear = array("f", [0.2 * row for row in range(64)])
    for prices, is_wide in ((array("f"), True), (rising, True), (dear, False)):
        spec = drafter_registry().get("medusa-dynamic")
        drafter = spec.build(tiny, RowBudget(64, prices))
        drafter.begin([1])
        drafter.observe(Observation([9], hidden[None]))
        children = drafter.propose(9, 64).tree.shape.children[0]
        assert (len(children) > NUM_RANKS) == is_wide


def test_a_drafter_reports_its_expected_gain(tiny: Target) -> None:
    assert tiny.trees is not None
    for rows in (2, 6):
        drafter = drafter_registry().get("medusa").build(tiny, RowBudget(rows))
        drafter.begin([1])
        drafter.observe(
            Observation([9], torch.zeros(1, tiny.config.hidden_size, dtype=torch.float64))
        )
        proposal = drafter.propose(9, rows)
        expected = tiny.trees.expected_length(proposal.tree.shape) - 1
        assert proposal.expected_accepted == pytest.approx(expected)
