"""Step costs of this machine, where they are kept, and the trees that they recommend."""

import itertools
import json
import math
import weakref
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings, LoadOptions
from medusa_core.runtime.backends.experts import ExpertMlps
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.runner.runner import PlacedTree
from medusa_core.runtime.tree.search import (
    best_paths,
    grow,
)
from medusa_core.runtime.tree.shape import TokenTree
from medusa_core.runtime.tree.tables import TreePresets
from medusa_core.speculation.drafters.source import source_registry
from medusa_core.speculation.drafters.sources.draft_model_source import DraftModelSource
from medusa_core.speculation.drafters.sources.heads_source import HeadsSource
from medusa_core.speculation.tuning import (
    calibration,
    measurements,
)
from medusa_core.speculation.tuning.calibration import (
    LENGTHS,
    ROW_COUNTS,
    Calibration,
    measure_costs,
)
from medusa_core.speculation.tuning.measurements import (
    ModelMeasurements,
    calibration_key,
    model_key,
)
from medusa_core.speculation.tuning.row_policy import RowPolicy
from medusa_core.speculation.tuning.source_costs import SourceTimer
from medusa_core.speculation.tuning.step_costs import (
    SourceCost,
    StepCosts,
)
from medusa_core.system.files.measurement_files import MeasurementFiles
from tests.support.engine.fixtures import LoadTarget
from tests.support.models.targets import Folders

COSTS = StepCosts(
    (100, 200),
    (1, 4, 8),
    ((1.0, 1.6, 4.0), (2.0, 3.0, 9.0)),
    {"medusa": SourceCost((0.1, 0.2), (0.3, 0.4))},
)
ACCURACIES = ((0.6, 0.2, 0.1), (0.5, 0.2, 0.1))


@pytest.fixture(autouse=True)
def usual_time(background_work_is_brief: None) -> None:
    """Use the calibration time that users have."""
    calibration.BUDGET_S["cpu"] = 2.0


def flat(*seconds: float) -> StepCosts:
    """Return costs of 1, 2, 3, … rows at any length, without drafts."""
    return StepCosts((1,), tuple(range(1, len(seconds) + 1)), (seconds,))


def test_every_row_count_is_measured(load: LoadTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "_ROUNDS", 2)  # the others measure the same again
    target = load("pebble", "float32")
    costs = measure_costs(target, budget_s=10.0)  # a slow machine needs more than the usual two
    assert (costs.lengths, costs.rows) == (LENGTHS, ROW_COUNTS)
    assert target.heads is not None
    source_costs = costs.source_costs["medusa"]
    assert len(source_costs.greedy) == len(source_costs.drawn) == target.heads.num_heads
    assert source_costs.drawn[-1] > source_costs.greedy[-1]  # the noise is to be drawn
    assert set(costs.source_costs) == {
        spec.name for spec in source_registry().specs if spec.serves(target)
    }
    assert costs.plain_s(LENGTHS[0]) >= costs.step_s(1, LENGTHS[0]) > 0


def test_steps_are_measured_after_every_length_within_the_planned_memory(
    load: LoadTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = load("pebble", "float32")
    target = replace(target, config=replace(target.config, context_tokens=512))
    measured: set[tuple[int, int]] = set()
    caches: weakref.WeakSet[KvCache] = weakref.WeakSet()
    slots = []

    def note(target: Target, rule: Any, tree: TokenTree, kv: KvCache) -> float:
        measured.add((kv.length, tree.shape.num_nodes))
        caches.add(kv)
        slots.append(sum(kv.length + max(ROW_COUNTS) for kv in caches))
        return 1e-3

    monkeypatch.setattr(calibration, "_step_s", note)
    costs = measure_costs(target)
    assert costs.lengths == (64, 320)
    assert measured == set(itertools.product(costs.lengths, ROW_COUNTS))
    assert max(slots) <= 512


def test_row_counts_not_measured_in_time_are_unknown_and_allowed(tiny: Target) -> None:
    costs = measure_costs(tiny, budget_s=0.0)
    assert costs.rows == (1, 2, 4)
    assert not costs.is_complete
    assert costs.row_limit == 64
    assert costs.step_s(64, 64) > costs.step_s(4, 64)
    assert len(costs.steps_s(64, 64)) == 64


def test_a_calibration_while_idle_measures_everything(tiny: Target) -> None:
    free = tiny.caches.free_rows
    calibration = Calibration(tiny, budget_s=0.0)
    assert not calibration.is_usable
    while not calibration.is_over:
        calibration.advance()
        if calibration.is_usable and not calibration.is_over:
            costs = calibration.costs()
            assert not costs.is_complete or costs.rows == ROW_COUNTS
            calibration.pause()
            assert tiny.caches.free_rows == free
    costs = calibration.costs()
    assert costs.is_complete
    assert costs.rows == ROW_COUNTS
    assert tiny.caches.free_rows == free


def test_a_slow_draft_model_leaves_time_for_the_row_counts(
    load: LoadTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It took nearly all the time that there was; only a plain step was measured then."""
    target, now_s = load("assisted", "float32"), 0.0
    start = DraftModelSource.start

    def pass_by(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds

    def slow_start(self: DraftModelSource, root_id: int, most_rows: int) -> None:
        pass_by(1.7)
        start(self, root_id, most_rows)

    def step(target: Target, rule: Any, tree: TokenTree, kv: KvCache) -> float:
        pass_by(seconds := 0.03 * (4 + tree.shape.num_nodes))
        return seconds

    monkeypatch.setattr(DraftModelSource, "start", slow_start)
    monkeypatch.setattr(calibration, "_step_s", step)
    clock = SimpleNamespace(perf_counter=lambda: now_s, thread_time=lambda: now_s)
    monkeypatch.setattr(calibration, "time", clock)
    monkeypatch.setattr("medusa_core.speculation.tuning.source_costs.time", clock)
    costs = measure_costs(target)
    assert costs.rows[:4] == (1, 2, 4, 7)
    patient = Calibration(target)
    while not patient.is_over:
        patient.advance()
    complete = patient.costs()
    assert complete.is_complete
    assert complete.rows == tuple(n for n in ROW_COUNTS if 0.03 * (4 + n) <= 1.0)
    assert complete.step_s(64, 64) == pytest.approx(0.03 * 68), "too long to wait for: extrapolated"
    assert complete.source_costs["draft-model"].greedy[0] == pytest.approx(1.7)


def test_an_incomplete_calibration_is_completed(tiny: Target) -> None:
    known = replace(measure_costs(tiny, budget_s=0.0), is_complete=False)
    slow = replace(known, seconds=tuple(tuple(9 * s for s in row) for row in known.seconds))
    calibration = Calibration(tiny, slow, budget_s=0.0)
    while not calibration.is_over:
        calibration.advance()
    costs = calibration.costs()
    assert costs.is_complete
    assert costs.rows == ROW_COUNTS
    assert costs.step_s(4, 64) < slow.step_s(4, 64) / 2, "scaled to the load of now"


def test_missing_measurements_are_made_first(tiny: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s, measured = 0.0, list[int]()

    def step(target: Target, rule: Any, tree: TokenTree, kv: KvCache) -> float:
        nonlocal now_s
        measured.append(tree.shape.num_nodes)
        now_s += 0.3
        return 0.3

    monkeypatch.setattr(calibration, "_step_s", step)
    clock = SimpleNamespace(perf_counter=lambda: now_s, thread_time=lambda: now_s)
    monkeypatch.setattr(calibration, "time", clock)
    first = measure_costs(tiny)
    assert first.rows == (1, 2, 4)
    measured.clear()
    second = measure_costs(tiny, known=first)
    assert second.rows == (1, 2, 4, 7, 8)
    steps = [rows for rows in measured if rows != 4]  # those between drafts
    assert steps[:2] == [1, 1]
    assert set(steps[2:]) <= {7, 8, 12}


def test_heads_are_timed_three_times_in_the_first_round(
    tiny: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As few as tell what is usual."""
    requested: list[int] = []
    start = HeadsSource.start

    def noted(self: HeadsSource, root_id: int, most_rows: int) -> None:
        start(self, root_id, most_rows)
        requested.append(len(self.top_tokens))

    monkeypatch.setattr(HeadsSource, "start", noted)
    assert tiny.heads is not None
    calibration = Calibration(tiny, budget_s=0.0)
    while not calibration.is_over:
        calibration.advance()
    for count in range(1, tiny.heads.num_heads + 1):
        assert requested.count(count) == 2 * (
            1 + 3
        )  # once more, to warm up; greedily and by chance


@pytest.mark.parametrize(("step_s", "is_taken"), [(0.02, True), (0.2, False)])
def test_between_timings_of_heads_the_target_evicts_them_from_the_cpu_cache(
    tiny: Target, step_s: float, is_taken: bool
) -> None:
    steps: list[float] = []

    def step() -> float:
        steps.append(step_s)
        return step_s

    timer = SourceTimer(tiny, "greedy", torch.zeros(1, tiny.config.hidden_size), step)
    list(timer.round(is_first=True))
    timer.close()
    # Only where a step takes long its heads are larger than the cache anyway.
    assert len(steps) > 4 if is_taken else len(steps) == 1


def test_a_model_without_heads_is_measured_too(tiny: Target) -> None:
    costs = measure_costs(replace(tiny, heads=None, trees=None), budget_s=1.0)
    assert "medusa" not in costs.source_costs
    assert costs.rows[:2] == (1, 2)


def test_costs_are_interpolated_linearly() -> None:
    assert COSTS.step_s(1, 100) == 1.0
    assert COSTS.step_s(2, 100) == pytest.approx(1.2)
    assert COSTS.step_s(6, 150) == pytest.approx((2.8 + 6.0) / 2)
    assert COSTS.step_s(12, 100) == pytest.approx(6.4)  # beyond, it goes on
    assert COSTS.step_s(1, 300) == pytest.approx(3.0)
    assert COSTS.step_s(1, 10) == 1.0
    assert COSTS.plain_s(200) == 2.0
    assert COSTS.source_s(("medusa",)) == (0.0, 0.1, 0.2)
    assert COSTS.source_s(("medusa", "unknown"), draws=True) == (0.0, 0.3, 0.4)
    both = replace(
        COSTS, source_costs={**COSTS.source_costs, "eagle": SourceCost((1.0, 2.0, 3.0), (9.0,) * 3)}
    )
    assert both.source_s(("medusa", "eagle")) == pytest.approx((0.0, 1.1, 2.2, 3.2))
    assert COSTS.source_s(()) == (0.0,)
    assert COSTS.tree_s(4, 3, 100, (0.0, 0.1, 0.2)) == pytest.approx(1.8)  # heads there are two


@pytest.mark.parametrize(
    ("costs", "rows"),
    [
        (flat(1.0, 1.0, 1.0, 9.0), 3),  # rows are free until they aren't
        (flat(1.0, 2.0, 3.0, 4.0), 1),  # no tree pays for itself
    ],
)
def test_the_fastest_tree_is_chosen(costs: StepCosts, rows: int) -> None:
    order = grow(ACCURACIES, 8)
    depths, values = [len(path) for path, _ in order], [value for _, value in order]
    assert costs.best_rows(depths, values, 1) == rows
    assert flat(*[1.0] * 4).best_rows(depths, values, 1, (0.0, 9.0)) == 1  # nor does the draft
    assert flat(*[1.0] * 3).best_rows(depths, values, 1, (0.0, 0.1, 5.0)) == 2  # nor the second


def test_of_equally_fast_trees_the_smaller_is_chosen() -> None:
    depths, values = [1, 2], [0.6, 0.3]
    assert flat(9.0, 1.6, 1.9).best_rows(depths, values, 1) == 2
    assert flat(9.0, 1.6, 1.9 * 0.98).best_rows(depths, values, 1) == 2
    assert flat(9.0, 1.6, 1.9 * 0.96).best_rows(depths, values, 1) == 3


def test_one_search_gives_the_best_trees_of_every_size() -> None:
    order = grow(ACCURACIES, 11)
    values = [value for _, value in order]
    assert values == sorted(values, reverse=True)
    for count in range(12):
        assert sorted(path for path, _ in order[:count]) == sorted(best_paths(ACCURACIES, count))


def test_a_longer_context_gets_a_smaller_tree(tiny: Target) -> None:
    costs = StepCosts((10, 400), (1, 4, 8), ((1.0, 1.1, 1.2), (1.0, 2.0, 4.0)))
    row_policy = RowPolicy(tiny, costs)
    settings = GenerateSettings(drafter="medusa")
    assert row_policy.rows(settings, 10) > row_policy.rows(settings, 400)


def test_without_heads_the_suffix_source_has_a_tree(tiny: Target) -> None:
    bare = replace(tiny, heads=None, trees=None)
    settings = GenerateSettings(drafter="suffix")
    assert RowPolicy(bare).budget(settings, 10).most > 1
    assert RowPolicy(bare, COSTS).budget(settings, 10).most > 1
    assert RowPolicy(bare, COSTS).budget(replace(settings, drafter="none"), 10).most == 1


def test_rows_of_a_measured_step_choose_different_experts(
    load: LoadTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal rows would choose the same, so that drafts seemed to cost nothing."""
    target, route = load("lfm2_moe", "float64"), ExpertMlps._route
    chosen: list[Tensor] = []

    def noted(experts: ExpertMlps, x: Tensor) -> tuple[Tensor, Tensor]:
        weights, numbers = route(experts, x)
        chosen.append(numbers)
        return weights, numbers

    monkeypatch.setattr(ExpertMlps, "_route", noted)
    kv = calibration._filled_cache(target, 8)
    target.runner.verify(PlacedTree(calibration._filled_tree(target, 8), kv))
    assert target.config.moe is not None
    least = target.config.moe.routing.num_experts_per_tok
    assert all(len(torch.unique(numbers)) > least for numbers in chosen)


def test_costs_are_loaded_from_disk_unchanged(tmp_path: Path) -> None:
    kept = MeasurementFiles(tmp_path / "new" / "folder")
    assert kept.load("key", "costs", StepCosts.from_json) is None
    kept.save("key", "costs", COSTS.to_json())
    assert kept.load("key", "costs", StepCosts.from_json) == COSTS
    assert kept.load("another", "costs", StepCosts.from_json) is None
    assert kept.load("key", "speeds", StepCosts.from_json) is None


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b"\xff\xfe",
        json.dumps(COSTS.to_json() | {"rows": [4, 1, 8]}).encode(),
        json.dumps(
            COSTS.to_json() | {"rows": [1], "seconds": [[1.0], [2.0]], "max_rows": 64}
        ).encode(),
        json.dumps(COSTS.to_json() | {"seconds": [[1.0, 9.0, 9.0], [2.0, 3.0, 9.0]]}).encode(),
        json.dumps(COSTS.to_json() | {"rows": [1, 4]}).encode(),
        json.dumps(COSTS.to_json() | {"lengths": []}).encode(),
        json.dumps(COSTS.to_json() | {"source_costs": {"medusa": [[-1, 1], [1, 1]]}}).encode(),
        json.dumps(COSTS.to_json() | {"source_costs": {"medusa": [[1, 1], [0, 1]]}}).encode(),
        json.dumps(COSTS.to_json() | {"source_costs": {"medusa": [[1, 1], [1]]}}).encode(),
        json.dumps(COSTS.to_json() | {"source_costs": {"medusa": [[], []]}}).encode(),
        json.dumps(COSTS.to_json() | {"source_costs": [1]}).encode(),
        json.dumps(COSTS.to_json() | {"seconds": [[1, 2, "x"], [1, 2, 3]]}).encode(),
        json.dumps(COSTS.to_json() | {"seconds": [[1, 2, float("nan")], [1, 2, 3]]}).encode(),
    ],
)
def test_a_damaged_cost_file_is_measured_again(
    damage: bytes, tmp_path: Path, tiny: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measurements, "Calibration", Measured)
    (tmp_path / f"{calibration_key(tiny, ())}.costs.json").write_bytes(damage)
    assert ModelMeasurements(tmp_path, tiny, ()).costs() == COSTS
    monkeypatch.setattr(measurements, "Calibration", pytest.fail)
    assert ModelMeasurements(tmp_path, tiny, ()).costs() == COSTS


class Measured:
    """A calibration that has measured `COSTS`.

    Attributes:
        known: What each one was given.
    """

    is_over, is_disturbed = True, False
    known: ClassVar[list[StepCosts | None]] = []

    def __init__(self, target: Target, known: StepCosts | None, *, is_hurried: bool) -> None:
        assert is_hurried
        self.known.append(known)

    def costs(self) -> StepCosts:
        """Return the measured costs."""
        return COSTS


def test_incomplete_costs_are_completed_at_the_next_load(
    tmp_path: Path, tiny: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measurements, "Calibration", Measured)
    incomplete = replace(COSTS, rows=(1, 4), seconds=((1.0, 1.6), (2.0, 3.0)), is_complete=False)
    MeasurementFiles(tmp_path).save(calibration_key(tiny, ()), "costs", incomplete.to_json())
    assert ModelMeasurements(tmp_path, tiny, ()).costs() == COSTS
    assert Measured.known[-1] == incomplete
    monkeypatch.setattr(measurements, "Calibration", pytest.fail)
    assert ModelMeasurements(tmp_path, tiny, ()).costs() == COSTS


def test_measurements_can_be_discarded(
    tmp_path: Path, tiny: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measurements, "Calibration", Measured)
    known = ModelMeasurements(tmp_path, tiny, ())
    known.costs()
    known.forget()
    assert known.saved_costs() is None
    known.forget()  # there is nothing any more
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(("own_s", "is_disturbed"), [(0.4, True), (1.2, False)])
def test_disturbed_measurements_are_used_but_not_saved(
    tmp_path: Path, tiny: Target, monkeypatch: pytest.MonkeyPatch, own_s: float, is_disturbed: bool
) -> None:
    wall = itertools.count()
    fake = SimpleNamespace(
        perf_counter=lambda: 2.0 * next(wall), thread_time=lambda: own_s * next(wall)
    )
    monkeypatch.setattr(calibration, "_step_s", lambda *_: 1e-3)
    monkeypatch.setattr(calibration, "time", fake)
    known = ModelMeasurements(tmp_path, tiny, ())
    assert known.costs().rows[0] == 1
    assert (known.saved_costs() is None) == is_disturbed


def test_costs_that_cannot_be_saved_are_used_nevertheless(
    tmp_path: Path, tiny: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measurements, "Calibration", Measured)
    (tmp_path / "file").write_text("in the way")
    assert ModelMeasurements(tmp_path / "file", tiny, ()).costs() == COSTS


def test_the_key_of_costs_contains_their_conditions(
    tmp_path: Path, tiny: Target, load: LoadTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"1")
    key = calibration_key(tiny, [tmp_path])
    assert key == calibration_key(tiny, [tmp_path])
    assert key != calibration_key(load("grouped", "float32"), [tmp_path])
    (tmp_path / "model.safetensors").write_bytes(b"22")
    assert key != calibration_key(tiny, [tmp_path])
    (tmp_path / "model.safetensors").unlink()
    there = calibration_key(tiny, [tmp_path])
    anywhere = model_key(tiny, [tmp_path])
    monkeypatch.setattr("torch.__version__", "9.9")
    assert there != calibration_key(tiny, [tmp_path])
    assert model_key(tiny, [tmp_path]) == anywhere  # what was learned outlives such updates
    library = tmp_path / "step.so"
    keys = set()
    for content in (b"1", b"22"):  # of the same name: an update of this program
        library.write_bytes(content)
        found = SimpleNamespace(_name=str(library))
        monkeypatch.setattr(measurements, "native_library", lambda found=found: found)
        keys.add(calibration_key(tiny, []))
    assert len(keys) == 2


def test_costs_are_valid_only_for_the_same_placement_of_layers(
    load: LoadTarget, folders: Folders
) -> None:
    offloaded = load("streamed", "float32")
    here = load_target(*folders["streamed"], LoadOptions("float32", "cpu"))
    here = replace(here, config=offloaded.config)
    assert model_key(offloaded, ()) == model_key(here, ())
    assert calibration_key(offloaded, ()) != calibration_key(here, ())


@pytest.mark.parametrize("begins", [1.0, 4.2])
def test_a_temporarily_slow_machine_makes_no_row_count_expensive(
    tiny: Target, monkeypatch: pytest.MonkeyPatch, begins: float
) -> None:
    """For as long as one and a half turns take: from the first draft on, or at the end."""
    now_s, first_draft_s = 0.0, math.inf
    verify, start = tiny.runner.verify, HeadsSource.start

    def pass_by(seconds: float) -> None:
        nonlocal now_s
        is_slow = begins * first_draft_s <= now_s < (begins + 1.5) * first_draft_s
        now_s += seconds * (2.0 if is_slow else 1.0)

    def slow_verify(*placed: PlacedTree) -> Tensor:
        pass_by(1e-4 * sum(each.tree.shape.num_nodes for each in placed))
        return verify(*placed)

    def slow_start(self: HeadsSource, root_id: int, most_rows: int) -> None:
        nonlocal first_draft_s
        first_draft_s = min(first_draft_s, now_s)
        start(self, root_id, most_rows)
        pass_by(1e-5 * len(self.top_tokens))

    monkeypatch.setattr(tiny.runner, "verify", slow_verify)
    monkeypatch.setattr(HeadsSource, "start", slow_start)
    clock = SimpleNamespace(perf_counter=lambda: now_s, thread_time=lambda: now_s)
    monkeypatch.setattr(calibration, "time", clock)
    monkeypatch.setattr("medusa_core.speculation.tuning.source_costs.time", clock)
    costs = measure_costs(tiny, budget_s=100.0)
    assert now_s > 4 * first_draft_s
    assert tiny.heads is not None
    assert costs.seconds[0] == pytest.approx([1e-4 * rows for rows in ROW_COUNTS])
    assert costs.source_costs["medusa"].chain == ()  # heads are asked once, whatever the tree
    for seconds in costs.source_costs["medusa"][:2]:
        assert seconds == pytest.approx([1e-5 * n for n in range(1, tiny.heads.num_heads + 1)])


def test_trees_follow_learned_acceptance_rates(tiny: Target) -> None:
    row_policy = RowPolicy(replace(tiny, trees=TreePresets(ACCURACIES, 4)))
    settings = GenerateSettings()
    # The second rank of the first head is always right, the second head never.
    row_policy.learn_heads(settings, [(place, [[7, 9], [8, 8]]) for place in range(400)], [9] * 401)
    trees = row_policy.target_for(settings).trees
    assert trees is not None
    (first, second, *_), (third, *_) = trees.head_accuracies
    assert second > 0.8 > 0.2 > first
    assert third < 0.1
    sampled = replace(settings, rule="sample")
    assert row_policy.target_for(sampled).trees == TreePresets(
        ACCURACIES, 4
    )  # chance has its own counts
