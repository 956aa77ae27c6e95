"""Whether an answer can be compared with plain decoding."""

import pytest

from medusa_core.speculation.tuning.baseline import Baseline
from medusa_core.speculation.tuning.step_costs import StepCosts

COSTS = StepCosts((1,), (1, 64), ((1.0, 2.0),))


def steps(seconds: float, num: int = 20, rows: int = 64) -> Baseline:
    found = Baseline()
    for _ in range(num):
        found.add(rows, 1, seconds, seconds + 0.1)
    return found


@pytest.mark.parametrize(("seconds", "plain_s"), [(2.0, 1.0), (2.3, 1.0), (1.7, 1.0)])
def test_an_earlier_baseline_is_used_if_steps_take_as_long_as_then(
    seconds: float, plain_s: float
) -> None:
    assert steps(seconds).plain_s(COSTS, 1) == plain_s


@pytest.mark.parametrize("seconds", [1.2, 3.0, 9.0])
def test_under_other_load_nothing_is_compared(seconds: float) -> None:
    assert steps(seconds).plain_s(COSTS, 1) == 0.0


def test_plain_steps_within_the_answer_are_the_preferred_baseline() -> None:
    found = steps(9.0)
    for number in range(8):
        assert found.plain_s(COSTS, 1) == 0.0, f"{number} are too few"
        found.add(1, 1, 4.0, 4.5)
    assert found.plain_s(COSTS, 1) == found.plain_s(None, 1) == 4.5


def test_plain_steps_after_a_short_text_are_scaled_to_a_long_one() -> None:
    longer = StepCosts((1, 101), (1, 64), ((1.0, 2.0), (6.0, 8.0)))
    found = Baseline()
    for _ in range(8):
        found.add(1, 1, 1.4, 1.5)  # one and a half times as long as measured: others are busy
    assert found.plain_s(longer, 1) == pytest.approx(1.5)
    assert found.plain_s(longer, 61) == pytest.approx(1.5 * 4)


def test_without_steps_or_costs_there_is_no_baseline() -> None:
    assert Baseline().plain_s(COSTS, 1) == 0.0
    assert steps(2.0).plain_s(None, 1) == 0.0
