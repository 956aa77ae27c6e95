"""Accuracies learned from answers, and drafts that rest where they don't pay."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from medusa_core.engine.direct import generate
from medusa_core.engine.session import Session
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.rules.rule import rule_registry
from medusa_core.speculation.tuning.acceptance_model import AcceptanceRates, AccuracyCounts
from medusa_core.speculation.tuning.governor import (
    MIN_SPEED_UP,
    Governor,
)
from medusa_core.speculation.tuning.row_policy import RowPolicy
from medusa_core.speculation.tuning.step_costs import StepCosts
from medusa_core.speculation.tuning.step_outcome import StepOutcome, bucket_of
from tests.support.engine.laws import user_says

PRIOR = ((0.5, 0.2, 0.1, 0.0), (0.4, 0.1, 0.1, 0.0))


def test_without_observations_the_prior_table_is_used() -> None:
    for shares, expected in zip(AccuracyCounts(PRIOR).accuracies, PRIOR, strict=True):
        assert shares == pytest.approx(expected)


def test_a_depth_counts_if_the_tokens_before_it_were_drafted() -> None:
    learned = AccuracyCounts(PRIOR)
    for _ in range(600):
        learned.learn([[1, 2], [5, 6]], [2, 6])  # both second ranks right
        learned.learn([[1, 2], [5, 6]], [9, 5])  # off the tree: what comes after says nothing
    (first, second, *_), (deep_first, deep_second, *_) = learned.accuracies
    assert second == pytest.approx(0.5, abs=0.05)
    assert first < 0.05
    assert deep_second > 0.9
    assert deep_first < 0.05


def test_unknown_outcomes_are_not_learned_from() -> None:
    learned = AccuracyCounts(PRIOR)
    before = learned.accuracies
    learned.learn([[1], [2]], [])
    assert learned.accuracies == before


def test_old_observations_decay() -> None:
    learned = AccuracyCounts(PRIOR)
    for token_id, count in ((1, 9000), (2, 9000)):
        for _ in range(count):
            learned.learn([[1, 2]], [token_id])
    assert learned.accuracies[0][1] > 0.7  # without fading it would be a half


def test_rates_are_separate_per_temperature() -> None:
    buckets = [bucket_of(GenerateSettings(temperature=t), True) for t in (0.1, 0.5, 0.7, 1.0, 1.4)]
    assert buckets == [0.5, 0.5, 0.5, 1.0, 1.5]
    assert bucket_of(GenerateSettings(temperature=0.7), False) == 0.0


def drive(governor: Governor, steps: Iterable[tuple[int, float]], plain_s: float = 1.0) -> str:
    """Record steps of drafts, plain ones where drafting is paused; returns a letter for each."""
    drafted = ""
    for num_tokens, step_s in steps:
        drafted += "D" if governor.drafts else "p"
        governor.add(*((num_tokens, step_s) if governor.drafts else (1, plain_s)))
    return drafted


def test_profitable_drafting_continues() -> None:
    governor = Governor(1.0, prior_speed_up=1.0)
    assert drive(governor, [(2, 1.5)] * 500) == "D" * 500
    assert governor.speed_up == pytest.approx(4 / 3, abs=0.02)
    assert governor.num_plain_steps == 0


def test_a_pause_of_the_machine_says_nothing_about_drafts() -> None:
    governor = Governor(1.0, prior_speed_up=1.0)
    steps = [(2, 90.0 if step % 20 == 7 else 1.5) for step in range(500)]
    assert drive(governor, steps) == "D" * 500
    assert governor.speed_up == pytest.approx(4 / 3, abs=0.02)


def test_unprofitable_drafting_pauses_and_is_tried_ever_more_rarely() -> None:
    governor = Governor(1.0, prior_speed_up=1.0)
    drafted = drive(governor, [(2, 2.1)] * 2000)
    assert governor.speed_up == pytest.approx(2 / 2.1, abs=0.02)
    assert governor.speed_up < MIN_SPEED_UP
    trials = [len(part) for part in drafted.split("p") if part]
    pauses = [len(part) for part in drafted.split("D") if part]
    assert trials[1:] == [5] * (len(trials) - 1)  # ten tokens each
    # A comparison first, then the pause, each longer than the one before.
    assert pauses[:5] == [8 + 24, 8 + 48, 8 + 96, 8 + 192, 8 + 384]
    assert governor.num_plain_steps == drafted.count("p")
    assert drafted.count("D") < 100


@pytest.mark.parametrize("num_tokens", [1, 2, 3])
@pytest.mark.parametrize("speed_up", [0.5, 0.8, 0.9])
def test_a_loss_is_decided_within_24_tokens(num_tokens: int, speed_up: float) -> None:
    governor = Governor(1.0)
    decoded, decided = 0, 0
    while decoded < 400:
        was_drafting = governor.drafts
        yielded = num_tokens if was_drafting else 1
        governor.add(yielded, num_tokens / speed_up if was_drafting else 1.0)
        decoded += yielded
        if was_drafting and not governor.drafts:
            decided = decided or decoded
    assert 0 < decided <= 24 - 8  # and eight plain steps, which are what was decided
    assert governor.num_plain_steps > 0.85 * 400


def test_a_clear_loss_pauses_the_next_answer_only_briefly() -> None:
    governor = Governor(1.0, prior_speed_up=1.0)
    assert drive(governor, [(1, 1.5)] * 40) == "D" * 10 + "p" * 30
    drafted = drive(governor, [(3, 1.5)] * 80)
    assert drafted == "p" * 2 + "D" * 78


def test_a_clearly_losing_drafter_is_soon_hardly_tried() -> None:
    governor = Governor(1.0, prior_speed_up=1.0)
    drive(governor, [(1, 1.5)] * 2000)
    assert governor.num_plain_steps > 1900


def test_a_drafter_without_candidates_continues_if_it_costs_no_time() -> None:
    for step_s, goes_on in ((1.005, True), (1.05, False)):
        governor = Governor(1.0, prior_speed_up=1.0)
        drafted = drive(governor, [(1, step_s)] * 50)
        assert ("p" not in drafted) is goes_on


def test_drafts_that_yield_much_in_few_steps_are_kept() -> None:
    # Two a step, and three of such steps in four yield nothing.
    for yields, goes_on in (((1, 1, 1, 5), False), ((1, 1, 1, 9), True)):
        governor = Governor(1.0, prior_speed_up=1.0)
        steps = [(yields[step % 4], 2.6) for step in range(400)]
        assert (drive(governor, steps).count("p") < 40) is goes_on


def test_a_drafter_that_lost_last_time_is_tried_after_a_pause() -> None:
    governor = Governor(1.0, prior_speed_up=0.7)
    assert drive(governor, [(3, 1.5)] * 200) == "p" * 24 + "D" * 176
    assert Governor(1.0, prior_speed_up=1.1).drafts


def test_long_steps_count_although_most_steps_are_short() -> None:
    # Asked, mostly nothing is found; what is found takes twice what it brings.
    kinds = ((1, 1.1), (1, 1.1), (2, 4.0))
    drafted = drive(Governor(1.0, prior_speed_up=1.0), [kinds[i % 3] for i in range(33)])
    assert drafted == "D" * 8 + "p" * 25


def test_before_the_first_drafts_plain_steps_are_measured() -> None:
    # What was measured beforehand says 2; so slow a plain step would hide that drafts lose.
    governor = Governor(2.0)
    assert drive(governor, [(1, 1.5)] * 40) == "p" * 3 + "D" * 10 + "p" * 27
    assert governor.plain_step_s == 1.0


def test_a_longer_cache_slows_plain_steps_by_the_measured_amount() -> None:
    governor = Governor(1.0)
    for _ in range(3):
        governor.add(1, 1.2)
    governor.expected_s = 3.0
    assert governor.plain_step_s == pytest.approx(3.6)


@pytest.mark.parametrize("lengths", [(4.0, 1.0), (1.0, 4.0)])
def test_steps_of_conversations_of_other_lengths_are_compared_with_their_plain_steps(
    lengths: tuple[float, float],
) -> None:
    governor = Governor(lengths[0], prior_speed_up=1.0)
    for number, plain_s in enumerate(lengths):
        governor.expected_s = plain_s
        drafted = drive(governor, [(2, 1.5 * plain_s)] * 100, plain_s)
        assert drafted == "D" * 100
        assert governor.speed_up == pytest.approx(4 / 3, abs=0.04), number


def test_while_the_machine_is_busy_plain_steps_are_slow_too() -> None:
    governor = Governor(1.0, prior_speed_up=1.0)  # as measured while nothing else ran
    drafted = drive(governor, [(2, 2.2)] * 500, plain_s=2.0)
    assert drafted.count("p") == 8
    assert governor.plain_step_s == 2.0
    assert governor.speed_up == pytest.approx(2 * 2 / 2.2, abs=0.02)


class Dear(RowPolicy):
    """Thinks that plain decoding takes no time."""

    def rows(
        self, settings: GenerateSettings, length: int, drafter: DrafterSpec | None = None
    ) -> int:
        return 8 if settings.drafter != "none" else 1

    def governor(self, settings: GenerateSettings, length: int) -> Governor:
        return Governor(1e-9, prior_speed_up=1.0)


@pytest.mark.parametrize("drafter", ["medusa", "composite"])
def test_an_answer_with_paused_drafting_is_unchanged(tiny: Target, drafter: str) -> None:
    settings = GenerateSettings(drafter=drafter, max_new_tokens=250, banned=(1,))
    plain = generate(tiny, user_says("x"), replace(settings, drafter="none"))
    rested = generate(tiny, user_says("x"), settings, row_policy=Dear(tiny))
    assert rested.num_plain_steps >= 100
    assert rested.token_ids == plain.token_ids
    assert sum(rested.accept_lengths) == len(rested.token_ids) - 1


def test_requested_drafting_does_not_pause(tiny: Target) -> None:
    settings = GenerateSettings(drafter="medusa", max_new_tokens=120, banned=(1,), tree_rows=8)
    assert generate(tiny, user_says("x"), settings, row_policy=Dear(tiny)).num_plain_steps == 0


def test_answers_teach_the_row_policy(tiny: Target) -> None:
    row_policy = RowPolicy(tiny)
    settings = GenerateSettings(drafter="medusa", max_new_tokens=150, banned=(1,))
    assert tiny.trees is not None
    generate(tiny, user_says("x"), settings, session=Session(tiny), row_policy=row_policy)
    trees = row_policy.target_for(settings).trees
    assert trees is not None
    # Random heads are hardly ever right, whatever the table beside them claims.
    assert trees.head_accuracies[0][0] < 0.7 * tiny.trees.head_accuracies[0][0]
    assert not rule_registry().get("greedy").choice.draws


def test_sampled_answers_start_from_the_table_of_their_temperature(tiny: Target) -> None:
    assert tiny.trees is not None
    num_heads = len(tiny.trees.head_accuracies)
    drawn = ((0.3, 0.1, 0.05, 0.05),) * num_heads
    row_policy = RowPolicy(replace(tiny, trees=replace(tiny.trees, drawn={0.5: drawn})))
    by_chance = GenerateSettings(rule="sample", temperature=0.7)
    greedy = GenerateSettings(drafter="medusa")

    def accuracies(settings: GenerateSettings) -> object:
        trees = row_policy.target_for(settings).trees
        return trees and trees.head_accuracies

    assert accuracies(by_chance) == drawn
    assert accuracies(greedy) == tiny.trees.head_accuracies
    assert accuracies(replace(by_chance, temperature=1.0)) == tiny.trees.head_accuracies
    row_policy.learn_heads(by_chance, [(1, [[9, 8], [7, 6]])], [5, 9, 7])
    assert accuracies(greedy) == tiny.trees.head_accuracies
    trees = row_policy.target_for(by_chance).trees
    assert trees is not None
    # one right guess more, sixty that the table counts for
    assert trees.head_accuracies[0][0] == pytest.approx((0.3 * 60 + 1) / 61)


def test_rows_follow_the_ratio_of_actual_to_expected_gains(tiny: Target) -> None:
    assert tiny.trees is not None
    sure = replace(tiny.trees, head_accuracies=((0.8,),) * 6)
    target = replace(tiny, trees=sure)
    costs = StepCosts((1,), (1, 16), ((1.0, 4.0),))
    row_policy = RowPolicy(target, costs)
    settings = GenerateSettings(drafter="medusa")
    at_first = row_policy.rows(settings, 64)
    assert at_first >= 4
    row_policy.observe(settings, 64, [StepOutcome(3.0, 1, 6, 1.0)] * 300)
    assert 2 <= row_policy.rows(settings, 64) < at_first
    drawn = replace(settings, rule="sample")
    assert row_policy.rows(drawn, 64) == at_first  # each has its own
    row_policy.observe(settings, 64, [StepOutcome(3.0, 3, 6, 1.0)] * 3000)
    assert row_policy.rows(settings, 64) >= at_first


def rates_after(*outcomes: StepOutcome) -> AcceptanceRates:
    rates = AcceptanceRates()
    for outcome in outcomes:
        rates.add(outcome)
    return rates


def test_expected_gains_decay() -> None:
    assert rates_after().ratio == 1
    half = [StepOutcome(2.0, 1, 4, 1.0)] * 3000
    assert rates_after(*half).ratio == pytest.approx(0.5, abs=0.02)
    assert rates_after(*half, *[StepOutcome(2.0, 2, 4, 1.0)] * 6000).ratio > 0.9


def test_steps_without_expectations_keep_the_ratio() -> None:
    assert rates_after(*[StepOutcome(0.0, 3, 4, 1.0)] * 100).ratio == 1
