"""The choice of how many threads decode."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.runner.native import NativeRunner
from medusa_core.runtime.runner.runner import PlacedTree, Runner
from medusa_core.runtime.tree.shape import TokenTree, TreeShape
from medusa_core.speculation.drafters.source import (
    Candidates,
    Paths,
)
from medusa_core.speculation.drafters.sources.suffix_source import SuffixSource
from medusa_core.speculation.tuning import threads
from medusa_core.speculation.tuning.measurements import ModelMeasurements
from medusa_core.speculation.tuning.threads import (
    Threads,
    choose_threads,
)
from medusa_core.system.native.binding import native_library
from medusa_core.system.native.pool import Pool
from tests.support.engine.fixtures import LoadTarget
from tests.support.engine.laws import decode, user_says


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("seconds", "best"),
    [
        ({1: 1.0, 2: 1.0, 4: 1.05}, 4),  # as fast as each other: all cores
        ({1: 1.0, 2: 0.6, 4: 0.5}, 4),
        ({1: 1.0, 2: 0.5, 4: 0.9}, 2),
        ({1: 0.5, 2: 0.6, 4: 0.9}, 1),
    ],
)
def test_fewer_threads_must_be_clearly_faster(
    tiny: Target, monkeypatch: pytest.MonkeyPatch, seconds: dict[int, float], best: int
) -> None:
    monkeypatch.setattr(threads, "_pass_s", lambda target, count, rows: 0.1 * seconds[count])
    assert choose_threads(tiny, 4) == best
    assert torch.get_num_threads() == best


def test_one_disturbed_measurement_decides_nothing(
    tiny: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program runs while two threads are measured for the first time."""
    measured: list[int] = []

    def seconds(target: Target, count: int, rows: int) -> float:
        measured.append(count)
        return 0.2 if count == 2 and measured.count(2) in (2, 8) else 0.05 / count

    monkeypatch.setattr(threads, "_pass_s", seconds)
    assert choose_threads(tiny, 2) == 2
    assert measured == [2, *[2, 1] * 5] * 2


def test_no_more_threads_are_tried_than_there_are(
    tiny: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    def note(target: Target, count: int, rows: int) -> float:
        tried.append(count)
        return 0.1 / count

    monkeypatch.setattr(threads, "_pass_s", note)
    assert choose_threads(tiny, 6) == 6
    assert tried[:5] == [6, 6, 4, 2, 1]
    assert set(tried) == {1, 2, 4, 6}


def test_prefill_has_its_own_number_of_threads(
    tiny: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    def seconds(target: Target, count: int, rows: int) -> float:
        return 0.1 / count if rows > 8 else 0.01 * count

    monkeypatch.setattr(threads, "_pass_s", seconds)
    assert choose_threads(tiny, 4) == 1
    seen: list[int] = []
    monkeypatch.setattr(
        tiny.runner._model, "final_norm", lambda x: seen.append(torch.get_num_threads()) or x
    )
    kv = tiny.runner.new_cache(16)
    tiny.runner.extend([3, 4, 5], kv)
    tiny.runner.extend([6], kv)
    tiny.runner.use_threads(1, 1)
    tiny.runner.extend([3, 4, 5], kv)
    assert seen == [4, 1, 1]
    assert torch.get_num_threads() == 1


def chain(runner: Runner, num_rows: int) -> PlacedTree:
    """Return consecutive tokens after an empty cache."""
    tree = TokenTree(TreeShape.chain(num_rows), (3,) * num_rows)
    return PlacedTree(tree, runner.new_cache(num_rows))


def test_a_prompt_in_a_pass_with_trees_uses_prefills_threads(
    tiny: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    monkeypatch.setattr(
        tiny.runner._model, "final_norm", lambda x: seen.append(torch.get_num_threads()) or x
    )
    tiny.runner.use_threads(1, 2)
    tiny.runner.verify(chain(tiny.runner, 8), chain(tiny.runner, 8))
    tiny.runner.verify(chain(tiny.runner, 8), chain(tiny.runner, 64))
    assert seen == [1, 2]
    assert torch.get_num_threads() == 1


def test_the_compiled_step_prefills_with_prefills_threads(
    load: LoadTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner, seen = load("pebble", "float32").runner, list[int]()
    if not isinstance(runner, NativeRunner):
        pytest.skip("there is no compiled step here")
    forward = runner._forward

    def noted(parts: object, first: int, pool: Pool) -> Tensor:
        seen.append(pool.num_workers)
        return forward(parts, first, pool)  # type: ignore[arg-type]

    before = (runner.workers.decoding.num_workers, runner.workers.prefill.num_workers)
    monkeypatch.setattr(runner, "_forward", noted)
    runner.use_threads(1, 2)
    runner.verify(chain(runner, 8), chain(runner, 8))
    runner.verify(chain(runner, 8), chain(runner, 64))
    runner.use_threads(*before)
    assert seen == [1, 2]


def test_real_passes_converge_to_a_number_within_the_limit(tiny: Target) -> None:
    assert choose_threads(tiny, 2) in (1, 2)


def test_the_wake_up_of_threads_is_not_measured(
    tiny: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For eight milliseconds the woken one shares a processor."""
    now_s, since_s, threads_now = 0.0, 0.0, 1

    def use_threads(count: int, for_prefill: int) -> None:
        nonlocal since_s, threads_now
        since_s, threads_now = now_s, count

    def extend(token_ids: Sequence[int], kv: KvCache) -> torch.Tensor:
        nonlocal now_s
        are_awake = threads_now > 1 and now_s - since_s > 8e-3
        now_s += len(token_ids) * (20e-6 if are_awake else 30e-6)
        return torch.zeros(len(token_ids), 1)

    clock = SimpleNamespace(monotonic=lambda: now_s, perf_counter=lambda: now_s)
    monkeypatch.setattr(threads, "time", clock)
    monkeypatch.setattr(tiny.runner, "use_threads", use_threads)
    monkeypatch.setattr(tiny.runner, "extend", extend)
    monkeypatch.setattr(tiny.runner, "logits", lambda states: states)
    assert choose_threads(tiny, 2) == 2


def test_a_number_chosen_beside_other_programs_is_chosen_again_when_they_ended(
    tiny: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds, load = {1: 1.0, 2: 1.3}, 3.0
    monkeypatch.setattr(threads, "_pass_s", lambda target, count, rows: 0.1 * seconds[count])
    monkeypatch.setattr(threads.os, "getloadavg", lambda: (load, load, load))
    chosen = Threads(tiny, 2)
    chosen.choose()
    assert torch.get_num_threads() == 1
    assert chosen.was_disturbed
    assert not chosen.is_due, "they are still there"
    seconds, load = {1: 1.0, 2: 0.5}, 1.0  # one program that decodes with one thread: ours
    assert chosen.is_due
    chosen.choose()
    assert torch.get_num_threads() == 2
    assert not chosen.is_due, "it was measured in quiet"
    assert not chosen.was_disturbed


def test_an_answer_during_the_second_measurement_does_not_make_the_first_one_quiet(
    tiny: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = 3.0
    monkeypatch.setattr(threads, "_pass_s", lambda target, count, rows: 0.1 * count)
    monkeypatch.setattr(threads.os, "getloadavg", lambda: (load, load, load))
    chosen = Threads(tiny, 2)
    chosen.choose()
    load = 0.0
    assert not chosen.advance(), "the first of several pieces"
    chosen.pause()
    assert chosen.was_disturbed, "its numbers are still those"
    assert chosen.is_due


def test_nothing_is_measured_before_the_first_answer(
    tiny: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "_pass_s", lambda target, count, rows: 0.1 * count)
    chosen = Threads(tiny, 2)
    assert torch.get_num_threads() == 2, "all cores, until it is measured"
    assert chosen.is_due
    assert not chosen.advance(), "the first of several pieces"
    tiny.runner.use_threads(1, 1)  # as a piece leaves it
    chosen.pause()
    assert torch.get_num_threads() == 2, "for an answer in between"
    chosen.choose()
    assert chosen.counts == ((1, 1),)
    again = Threads(tiny, 2, chosen.counts)
    assert torch.get_num_threads() == 1
    assert not again.is_due, "an earlier run has measured it"


def test_numbers_measured_in_quiet_are_kept_for_the_next_start(
    tiny: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "_pass_s", lambda target, count, rows: 0.01 * count)
    saved = ModelMeasurements(tmp_path, tiny, ())
    chosen = Threads(tiny, 2)
    monkeypatch.setattr(threads.os, "getloadavg", lambda: (9.0, 9.0, 9.0))
    chosen.choose()
    saved.save_threads(chosen)
    assert saved.threads(2) is None, "other programs ran"
    monkeypatch.setattr(threads.os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    chosen.choose()
    saved.save_threads(chosen)
    assert saved.threads(2) == ((1, 1),)
    assert saved.threads(4) is None, "another number of cores"


def test_fewer_threads_are_reconsidered_for_a_while(
    tiny: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s, num_passes = 0.0, 0

    def seconds(target: Target, count: int, rows: int) -> float:
        nonlocal num_passes
        num_passes += 1
        return 0.01 * count

    monkeypatch.setattr(threads, "_pass_s", seconds)
    monkeypatch.setattr(threads.os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    clock = SimpleNamespace(monotonic=lambda: now_s, perf_counter=lambda: now_s)
    monkeypatch.setattr(threads, "time", clock)
    chosen = Threads(tiny, 2)
    chosen.choose()
    measured = []
    for _ in range(8):
        now_s += 20.0
        before = num_passes
        if chosen.is_due:
            chosen.choose()
        assert torch.get_num_threads() == 1, "one thread is still the faster"
        measured.append(num_passes > before)
    assert sum(measured) == 3
    assert not measured[0], "too soon"


@pytest.mark.skipif(native_library() is None, reason="no compiled step for this machine")
@pytest.mark.parametrize(("dtype", "count"), [("float32", 1), ("float64", 2)])
def test_drafting_leaves_the_cores_to_a_runner_with_its_own_threads(
    load: LoadTarget, monkeypatch: pytest.MonkeyPatch, dtype: str, count: int
) -> None:
    candidates = SuffixSource.candidates
    used: list[int] = []

    def note(source: SuffixSource, paths: Paths) -> Candidates | None:
        used.append(torch.get_num_threads())
        return candidates(source, paths)

    monkeypatch.setattr(SuffixSource, "candidates", note)
    target = load("qwen3", dtype)  # float64 is computed by torch
    target.runner.use_threads(2, 2)
    decode(target, GenerateSettings(drafter="suffix", max_new_tokens=8), user_says("one one one"))
    assert set(used) == {count}
    assert torch.get_num_threads() == 2
    target.runner.use_threads(1, 1)
