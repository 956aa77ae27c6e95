"""A recipe is fitted into the time that there is."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from medusa_core.errors import TrainingError
from recipe.recipe import RECIPES
from recipe.timetable import SHARES_FILE, Timetable, costs, scaled

SMALL = RECIPES["small"]
STAGES = list(costs(SMALL))
PACE = 10_000.0  # tokens of pretraining a second, as the machine of the demo model's recipe.md


class Machine:
    """Fake machine that runs stages of a recipe at a pace, by its own clock."""

    def __init__(self, folder: Path, rate: float, **slowness: float) -> None:
        self.now_s = 1000.0
        self.tried = 0
        self.shares: dict[str, float] = {}
        self._folder, self._rate, self._slowness = folder, rate, slowness

    def timetable(self, within_s: float | None) -> Timetable:
        return Timetable(SMALL, self._folder, within_s, self._measure_rate, lambda: self.now_s)

    def do(self, timetable: Timetable, *stages: str) -> None:
        for name in stages:
            with timetable.stage(name) as fitted:
                cost = costs(fitted)[name]
                self.shares[name] = cost / costs(SMALL)[name]
                self.now_s += cost / self._rate * self._slowness.get(name, 1.0)

    def _measure_rate(self) -> float:
        self.tried += 1
        return self._rate


def test_the_small_recipe_costs_what_was_measured() -> None:
    minutes = {name: cost / PACE / 60 for name, cost in costs(SMALL).items()}
    assert minutes == pytest.approx(
        {"pretrain": 42, "tune": 62, "polish": 26.5, "heads": 11, "phrases": 17}, rel=0.1
    )


@pytest.mark.parametrize("stage", STAGES)
def test_a_share_of_a_stage_costs_that_share_and_changes_no_other_stage(stage: str) -> None:
    half, whole = costs(scaled(SMALL, stage, 0.5)), costs(SMALL)
    for name in STAGES:
        assert half[name] == pytest.approx(whole[name] * (0.5 if name == stage else 1), rel=1e-3)
    assert scaled(SMALL, stage, 1.0) == SMALL
    assert all(cost > 0 for cost in costs(scaled(SMALL, stage, 1e-6)).values())


@pytest.mark.parametrize(
    "slowness",
    [{}, {"tune": 1.3}, {"polish": 1.5, "heads": 2.0}, {"pretrain": 0.7}, {"phrases": 1.2}],
    ids=str,
)
@pytest.mark.parametrize("minutes", [20, 60, 150])
def test_everything_is_done_within_the_time_limit(
    minutes: float, slowness: dict[str, float], tmp_path: Path
) -> None:
    machine = Machine(tmp_path, PACE / 3, **slowness)
    machine.do(machine.timetable(minutes * 60), *STAGES)
    taken = (machine.now_s - 1000) / 60
    assert 0.75 * minutes < taken <= minutes
    assert machine.tried == 1, "behind the first stage its own pace is known"
    assert all(0 < share < 1 for share in machine.shares.values())


def test_with_enough_or_unlimited_time_everything_is_done(tmp_path: Path) -> None:
    for number, within_s in enumerate((None, 200 * 60.0)):
        folder = tmp_path / str(number)
        folder.mkdir()
        machine = Machine(folder, PACE)
        machine.do(machine.timetable(within_s), *STAGES)
        assert machine.shares == dict.fromkeys(STAGES, 1.0)
        assert machine.tried == (within_s is not None)


def test_a_resumed_stage_keeps_its_settings(tmp_path: Path) -> None:
    first = Machine(tmp_path, PACE)
    first.do(first.timetable(75 * 60), "pretrain")
    assert json.loads((tmp_path / SHARES_FILE).read_text()).keys() == {"pretrain"}
    again = Machine(tmp_path, PACE)
    again.do(again.timetable(None), "pretrain", "tune")
    assert again.shares["pretrain"] == first.shares["pretrain"] < 0.6
    assert again.shares["tune"] == 1.0
    short = Machine(tmp_path, PACE)
    timetable = short.timetable(10 * 60)
    short.do(timetable, *STAGES)
    assert short.shares["pretrain"] == first.shares["pretrain"]
    assert short.shares["tune"] == 1.0
    assert short.shares["polish"] == pytest.approx(0.02, rel=0.1), (
        "no time is left: as little as there is"
    )


def test_too_short_a_time_is_reported_at_once(tmp_path: Path) -> None:
    machine = Machine(tmp_path, PACE)
    with pytest.raises(TrainingError, match=r"2\.9 minutes for what takes 158") as error:
        machine.do(machine.timetable(3 * 60 + 2), *STAGES)
    assert "--within" in error.value.hint
    assert not (tmp_path / SHARES_FILE).exists()


def test_a_failed_stage_doesnt_change_the_pace(tmp_path: Path) -> None:
    machine = Machine(tmp_path, PACE)
    timetable = machine.timetable(75 * 60)
    with pytest.raises(RuntimeError), timetable.stage("pretrain"):
        raise RuntimeError
    machine.do(timetable, "tune")
    assert machine.tried == 2


def test_other_sizes_have_other_costs() -> None:
    fewer = replace(SMALL, sources=SMALL.sources[:2])
    assert costs(fewer)["polish"] < costs(SMALL)["polish"]
    assert costs(fewer)["tune"] == costs(SMALL)["tune"]
