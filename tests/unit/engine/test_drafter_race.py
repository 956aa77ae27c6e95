"""Which drafter is fastest here: the race, what is kept of it, and what is learned meanwhile."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from medusa_core.engine import drafter_race
from medusa_core.engine.direct import generate
from medusa_core.engine.drafter_race import DrafterRace
from medusa_core.engine.generation import Generation
from medusa_core.engine.start import start_generation
from medusa_core.errors import EngineError
from medusa_core.loading.target import Target
from medusa_core.messages import (
    Calibrate,
    Cancel,
    ChatMessage,
    DrafterSpeed,
    Failed,
    Generate,
    GenerateSettings,
    GenerationDone,
    LoadModel,
    LoadOptions,
    ModelLoaded,
    Race,
    Raced,
    Unload,
    Unloaded,
)
from medusa_core.speculation.drafters.lineup import (
    drafter_registry,
    drafters_for,
    raced_drafters,
)
from medusa_core.speculation.tuning import calibration
from medusa_core.speculation.tuning.acceptance_model import AcceptanceRates
from medusa_core.speculation.tuning.measurements import ModelMeasurements
from medusa_core.speculation.tuning.row_policy import RowPolicy
from medusa_core.speculation.tuning.step_costs import (
    SourceCost,
    StepCosts,
)
from medusa_core.speculation.tuning.step_outcome import StepOutcome
from tests.support.engine.fixtures import LoadTarget
from tests.support.engine.harness import EngineHarness
from tests.support.engine.laws import user_says
from tests.support.models.targets import GROUPED, Folders
from tests.support.models.tiny import ACCURACIES, random_heads, write_heads

COSTS = StepCosts((1,), (1, 64), ((1.0, 2.0),))
QUESTIONS = ("one two", "three four five")


def run(race: DrafterRace) -> tuple[DrafterSpeed, ...]:
    """Run the comparison to its end."""
    while not race.is_done:
        race.advance()
    return race.speeds


@pytest.mark.parametrize("name", ["grouped", "eagle", "assisted"])
def test_all_drafters_answer_all_questions_of_the_comparison(name: str, load: LoadTarget) -> None:
    target = load(name, "float32")
    free = target.caches.free_rows
    race = DrafterRace(target, COSTS, QUESTIONS, 8)
    speeds = {speed.name: speed for speed in run(race)}
    assert race.num_answered == 2
    offered = {spec.name for spec in drafters_for(target)}
    assert set(speeds) == {spec.name for spec in raced_drafters(target)} == offered - {"lookahead"}
    assert speeds["none"].tau == speeds["none"].x_plain == 1.0
    assert all(speed.tau >= 1.0 and speed.tokens_per_s > 0 for speed in speeds.values())
    assert all(speed.draft_ms > 0 for speed in speeds.values())
    plain = speeds.pop("none")
    assert (plain.growth, plain.num_rows, plain.levels, plain.step_x) == ("none", 1.0, 0.0, 1.0)
    for speed in speeds.values():
        assert speed.growth in ("chain", "tree", "none")
        assert 0 <= speed.levels <= speed.num_rows - 1 + 1e-9
        assert speed.step_x == pytest.approx(1 + (speed.num_rows - 1) / 63)
        assert f"{speed.tau:.1f} tokens" in speed.why
    assert target.caches.free_rows == free


def test_every_drafter_answers_the_first_question_once_as_warm_up(
    tiny: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str, int]] = []

    def noted(
        race: str, request: str, messages: tuple[ChatMessage, ...], settings: GenerateSettings
    ) -> Generate:
        asked.append((settings.drafter, messages[0].text, settings.max_new_tokens))
        return Generate(race, request, messages, settings)

    monkeypatch.setattr("medusa_core.engine.drafter_race.Generate", noted)
    race = DrafterRace(tiny, COSTS, QUESTIONS, 12)
    run(race)
    names = {spec.name for spec in raced_drafters(tiny)}
    first, second = QUESTIONS
    assert Counter(asked) == {
        **{(name, first, 12): 2 for name in names},
        **{(name, second, 12): 1 for name in names},
    }
    assert race.num_answered == 2


def test_a_paused_comparison_frees_its_room_and_resumes(tiny: Target) -> None:
    free = tiny.caches.free_rows
    race = DrafterRace(tiny, COSTS, QUESTIONS, 12)
    for _ in range(9):
        race.advance()
    race.pause()
    assert tiny.caches.free_rows == free
    assert len(run(race)) == len(raced_drafters(tiny))


def test_a_question_that_does_not_fit_counts_for_no_drafter(tiny: Target) -> None:
    long = "word " * 5000
    for questions in ((long, "one"), ("one", long), (long, "one", long)):
        race = DrafterRace(tiny, COSTS, questions, 6)
        assert len(run(race)) == len(raced_drafters(tiny))
        assert race.num_answered == 1
    assert run(DrafterRace(tiny, COSTS, (long,), 6)) == ()


@pytest.mark.expects_errors
def test_a_drafter_that_fails_leaves_the_comparison(
    tiny: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []

    def fail(request: Generate, *rest: Any) -> Generation:
        started.append(request.settings.drafter)
        if request.settings.drafter == "medusa":
            raise EngineError("It broke.", "Try again.")
        return start_generation(request, *rest)

    monkeypatch.setattr(drafter_race, "start_generation", fail)
    free = tiny.caches.free_rows
    names = {speed.name for speed in run(DrafterRace(tiny, COSTS, QUESTIONS, 6))}
    assert names == {spec.name for spec in raced_drafters(tiny)} - {"medusa"}
    assert started.count("medusa") == 1
    assert tiny.caches.free_rows == free


def test_no_further_question_begins_when_time_is_over(tiny: Target) -> None:
    race = DrafterRace(tiny, COSTS, QUESTIONS * 3, 6, max_s=0.0)
    assert run(race)
    assert race.num_answered == 1


def test_the_fastest_drafter_is_the_default_and_of_equals_the_standard_one(tiny: Target) -> None:
    default = drafters_for(tiny)
    assert default[0].name == "composite"

    def first(**tokens_per_s: float) -> str:
        speeds = [DrafterSpeed(name, 1.0, s, 1.0, 0.0) for name, s in tokens_per_s.items()]
        return drafters_for(tiny, speeds)[0].name

    assert first(composite=10.0, medusa=11.0, none=5.0) == "medusa"
    assert first(composite=10.0, medusa=10.2, none=5.0) == "composite"
    assert first(composite=10.0, medusa=9.0, none=15.0) == "none"
    assert first(another=99.0) == "composite"
    speeds = [DrafterSpeed("medusa", 1.0, 9.0, 1.0, 0.0)]
    assert {spec.name for spec in drafters_for(tiny, speeds)} == {spec.name for spec in default}


def test_a_demo_model_drafts_even_if_that_is_slower(
    tiny: Target,
) -> None:
    slower = {spec.name: 1.0 for spec in drafters_for(tiny)} | {"none": 9.0, "suffix": 2.0}
    speeds = [DrafterSpeed(name, 1.0, speed, 1.0, 0.1) for name, speed in slower.items()]
    assert drafters_for(tiny, speeds)[0].name == "none"
    assert drafters_for(tiny, speeds, shows_drafts=True)[0].name == "suffix"
    assert drafters_for(tiny, shows_drafts=True) == drafters_for(tiny)
    offered = {spec.name for spec in drafters_for(tiny, speeds, shows_drafts=True)}
    assert offered == {*slower, "lookahead"}


def test_speeds_are_saved_for_the_compared_drafters(tiny: Target, tmp_path: Path) -> None:
    speeds = tuple(
        DrafterSpeed(name, 2.0, 9.0, 1.5, 0.1)
        for name in sorted(spec.name for spec in raced_drafters(tiny))
    )
    known = ModelMeasurements(tmp_path, tiny, ())
    assert known.speeds() == ()
    known.save_speeds(speeds)
    assert ModelMeasurements(tmp_path, tiny, ()).speeds() == speeds
    assert ModelMeasurements(tmp_path, replace(tiny, heads=None, trees=None), ()).speeds() == ()
    for damage in ('{"drafters": [{"name": "none"}]}', '{"drafters": 3}', "x"):
        for file in tmp_path.glob("*.speeds.json"):
            file.write_text(damage)
        assert known.speeds() == ()


def test_learned_rates_are_kept_across_loads(tiny: Target, tmp_path: Path) -> None:
    settings = GenerateSettings(drafter="medusa", max_new_tokens=24)
    row_policy = RowPolicy(tiny, COSTS)
    generate(tiny, user_says("one two three"), settings, row_policy=row_policy)
    ModelMeasurements(tmp_path, tiny, ()).save_learned(row_policy)
    later = RowPolicy(tiny, COSTS)
    assert later.to_json() != row_policy.to_json()
    ModelMeasurements(tmp_path, tiny, ()).load_learned(later)
    assert later.to_json() == row_policy.to_json()
    assert later.plan("s", "r", settings).num_learned > 0
    assert later.target_for(settings).trees == row_policy.target_for(settings).trees


def test_learned_rates_of_other_heads_are_discarded(tiny: Target, tmp_path: Path) -> None:
    settings = GenerateSettings(drafter="medusa", max_new_tokens=24)
    row_policy = RowPolicy(tiny, COSTS)
    generate(tiny, user_says("one two three"), settings, row_policy=row_policy)
    reported = json.loads(json.dumps(row_policy.to_json()))
    fresh = RowPolicy(tiny, COSTS)
    before = fresh.to_json()
    (bucket, counts), *_ = reported["heads"]
    for wrong in (
        counts | {"seen": counts["seen"][:-1]},
        counts | {"right": [row[:-1] for row in counts["right"]]},
        counts | {"right": [[1e9 for _ in row] for row in counts["right"]]},
        counts | {"seen": [-1.0 for _ in counts["seen"]]},
    ):
        with pytest.raises(ValueError, match=r".+"):
            fresh.load(reported | {"heads": [[bucket, wrong]]})
    for wrong in ({"promised": -1.0}, {"tried": [1.0]}, {"passed": [9e9] * 8}):
        changed = [[*kind, of | wrong] for *kind, of in reported["drafters"]]
        with pytest.raises(ValueError, match=r".+"):
            fresh.load(reported | {"drafters": changed})
    assert fresh.to_json() == before


def test_deeper_levels_are_probed_while_they_are_profitable(load: LoadTarget) -> None:
    """Of an EAGLE head nobody knows beforehand how often its guesses are right."""
    target = load("eagle", "float32")
    settings = GenerateSettings(drafter="eagle", growth="chain")

    def levels(of_a_level: float, *steps: StepOutcome) -> int | None:
        source_costs = SourceCost(*[tuple(of_a_level * n for n in range(1, 9))] * 2)
        row_policy = RowPolicy(target, replace(COSTS, source_costs={"eagle": source_costs}))
        row_policy.observe(settings, 1, steps)
        return row_policy.budget(settings, 1).levels

    shallow = [StepOutcome(1.0, 1, 8, 1.0, 3)] * 2000
    deep = [StepOutcome(3.0, 3, 8, 1.0, 3)] * 2000
    assert levels(1e-6) == 8
    assert levels(0.05, *shallow) == 1
    assert (levels(0.05, *deep) or 0) > 2
    assert levels(50.0) == 1  # whether drafts pay at all is the governor's to say


def test_a_level_counts_if_the_tree_had_it() -> None:
    rates = AcceptanceRates()
    for _ in range(500):
        rates.add(StepOutcome(1.0, 2, 8, 1.0, 2))
    first, second, third, *_ = (rate for (rate,) in rates.by_level)
    assert min(first, second) > 0.95
    assert third == pytest.approx(0.6)  # nothing is known of it


def test_every_source_is_measured(load: LoadTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "_ROUNDS", 1)
    monkeypatch.setattr(calibration, "ROW_COUNTS", (1, 4, 16))
    for name, own in (
        ("eagle", "eagle"),
        ("mimo", "mtp"),
        ("assisted", "draft-model"),
        ("hydra", "hydra"),
        ("streams", "streams"),
    ):
        target = load(name, "float32")
        source_costs = calibration.measure_costs(target, 5.0).source_costs[own]
        assert len(source_costs.greedy) == len(source_costs.drawn) > 1
        assert list(source_costs.greedy) == sorted(source_costs.greedy)
        # All streams pass through the layers together: three take hardly longer than one.
        assert (
            source_costs.greedy[-1]
            > (1.0 if own == "streams" else 1.2) * source_costs.greedy[0] - 1e-9
        )


@pytest.fixture
def fresh() -> Iterator[EngineHarness]:
    """An engine of the test's own, without a model."""
    harness = EngineHarness()
    yield harness
    harness.close()


def load_command(folders: Folders, kept: Path | None, request_id: str) -> LoadModel:
    return LoadModel(
        "",
        request_id,
        *folders["grouped"],
        LoadOptions(dtype="float32", device="cpu"),
        calibrations_dir=kept,
    )


def test_the_engine_compares_drafters_when_idle_and_saves_the_result(
    fresh: EngineHarness, folders: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So few tokens may seem too fast where other programs compute, too.
    for module in ("engine.model_slot", "speculation.tuning.measurements"):
        monkeypatch.setattr(f"medusa_core.{module}.is_plausible_speed_up", lambda *_: True)
    loaded = fresh.load(load_command(folders, tmp_path, "first"))
    assert isinstance(loaded, ModelLoaded)
    assert loaded.speeds == ()
    fresh.submit(Race("", "early"))
    assert isinstance(fresh.wait("early", Raced, Failed), Failed)  # nothing is calibrated
    fresh.submit(Calibrate("", "calibrate"))
    fresh.submit(Race("", "race"))
    done = fresh.answer("meanwhile somebody asks", GenerateSettings(max_new_tokens=4), "chat")
    assert isinstance(done, GenerationDone)
    raced = fresh.wait("race", Raced, Failed)
    assert isinstance(raced, Raced)
    assert raced.drafters[0].name == raced.speeds[0].name
    assert {choice.name for choice in raced.drafters} == {
        *(speed.name for speed in raced.speeds),
        "lookahead",
    }
    again = fresh.load(load_command(folders, tmp_path, "second"))
    assert isinstance(again, ModelLoaded)
    assert set(again.speeds) == set(raced.speeds)
    assert again.drafters == raced.drafters
    fresh.submit(Race("", "known"))
    known = fresh.wait("known", Raced, Failed)
    assert isinstance(known, Raced)
    assert known.speeds == raced.speeds
    name = raced.drafters[0].name
    done = fresh.answer("with the default", GenerateSettings(drafter="", max_new_tokens=4), "chat")
    assert isinstance(done, GenerationDone)
    assert done.settings.drafter == name


def test_learned_rates_are_saved_per_set_of_heads_and_draft_model(
    fresh: EngineHarness, folders: Folders, tmp_path: Path
) -> None:
    model, heads = folders["grouped"]
    other = write_heads(tmp_path / "other", random_heads(replace(GROUPED, seed=77)), ACCURACIES)
    kept = tmp_path / "kept"
    ways = {
        "heads": (heads, None, "medusa"),
        "other heads": (other, None, "medusa"),
        "draft model": (None, folders["smaller"][0], "draft-model"),
    }
    learned: dict[str, tuple[Path, float]] = {}
    for turn, name in enumerate((*ways, *ways)):
        heads_dir, assistant_dir, drafter = ways[name]
        before = {path: path.read_bytes() for path in kept.glob("*.learned.json")}
        command = LoadModel(
            "",
            f"load {turn}",
            model,
            heads_dir,
            LoadOptions(dtype="float32", device="cpu", assistant_dir=assistant_dir),
            calibrations_dir=kept,
        )
        assert isinstance(fresh.load(command), ModelLoaded)
        settings = GenerateSettings(drafter=drafter, max_new_tokens=24, banned=(1,))
        assert isinstance(fresh.answer("one two", settings, f"chat {turn}"), GenerationDone)
        fresh.submit(Unload("", f"unload {turn}"))
        assert isinstance(fresh.wait(f"unload {turn}", Unloaded, Failed), Unloaded)
        after = {path: path.read_bytes() for path in kept.glob("*.learned.json")}
        (changed,) = (path for path in after if after[path] != before.get(path))
        tried = sum(of["tried"][0] for *_, of in json.loads(after[changed])["drafters"])
        if name in learned:
            assert changed == learned[name][0]
            assert tried > learned[name][1], "it went on from what was learned before"
        learned[name] = changed, tried
    assert len({path for path, _ in learned.values()}) == len(ways)


def test_a_comparison_can_be_stopped(fresh: EngineHarness, folders: Folders) -> None:
    fresh.load(load_command(folders, None, "load"))
    fresh.submit(Calibrate("", "calibrate"))
    fresh.submit(Race("", "race"))
    fresh.submit(Cancel("", "race"))
    done = fresh.answer("still there", GenerateSettings(max_new_tokens=4), "chat")
    assert isinstance(done, GenerationDone)
    assert not any(isinstance(event, Raced) for event in fresh.events)
    assert isinstance(fresh.load(load_command(folders, None, "again")), ModelLoaded)


def test_drafters_have_known_sources() -> None:
    """Their names are those that asking was measured under."""
    assert drafter_registry().get("eagle").sources == ("eagle",)
