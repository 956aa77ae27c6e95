"""The engine through its public door: events, cancelling, sessions in turns, errors, the end."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from medusa_core.loading.target import Target
from medusa_core.messages import (
    TARGET,
    AnswerStarted,
    Calibrate,
    Calibrated,
    Cancel,
    CloseSession,
    Event,
    Failed,
    Generate,
    GenerateSettings,
    GenerationDone,
    LoadModel,
    LoadOptions,
    ModelLoaded,
    Planned,
    Progress,
    Race,
    Raced,
    StepDone,
    StopReason,
    Unload,
    Unloaded,
)
from medusa_core.speculation.tuning import calibration
from medusa_core.speculation.tuning.step_costs import StepCosts
from medusa_core.speculation.tuning.threads import ThreadCounts, Threads
from tests.support.engine.harness import EngineHarness
from tests.support.engine.laws import decode, user_says

SETTINGS = GenerateSettings(
    drafter="medusa", rule="sample", temperature=1.2, seed=3, max_new_tokens=20
)
LONG = replace(SETTINGS, max_new_tokens=400)
HALF = replace(SETTINGS, max_new_tokens=100)  # several such answers have room at once
LONG_PROMPT = "many words to read " * 20  # several chunks of prefill
Folders = dict[str, tuple[Path, Path]]


@pytest.fixture(scope="module")
def shared(folders: Folders) -> Iterator[EngineHarness]:
    """Engine with the tiny target, shared by tests that don't change it."""
    harness = EngineHarness()
    assert isinstance(harness.load(load_command(folders, harness)), ModelLoaded)
    yield harness
    harness.close()


@pytest.fixture
def engine(shared: EngineHarness) -> Iterator[EngineHarness]:
    shared.events.clear()
    yield shared
    shared.on_event = lambda _: None


@pytest.fixture
def fresh() -> Iterator[EngineHarness]:
    """An engine of the test's own, without a model."""
    harness = EngineHarness()
    yield harness
    harness.close()


def load_command(folders: Folders, harness: EngineHarness) -> LoadModel:
    model_dir, heads_dir = folders["grouped"]
    return LoadModel(
        "", harness.name_request(), model_dir, heads_dir, LoadOptions("float64", "cpu")
    )


def test_loading_reports_progress_and_the_loaded_model(
    fresh: EngineHarness, folders: Folders
) -> None:
    loaded = fresh.load(load_command(folders, fresh))
    assert isinstance(loaded, ModelLoaded)
    assert [e.stage for e in fresh.events if isinstance(e, Progress)][:2] == ["import", "weights"]
    assert (loaded.name, loaded.num_heads, loaded.dtype) == ("grouped", 3, "float64")
    assert loaded.context_tokens == 512
    assert loaded.vocab_size == 320
    assert {choice.name for choice in loaded.drafters} >= {"medusa", "none"}
    assert {choice.name for choice in loaded.rules} >= {"greedy", "sample"}
    assert {"medusa", "suffix"} <= loaded.serving < {info.name for info in loaded.sources}
    assert loaded.end_ids <= dict(loaded.special_tokens).keys()
    assert all(name for _, name in loaded.special_tokens)
    assert loaded.load_s > 0


def test_nothing_is_measured_before_the_first_answer(
    fresh: EngineHarness, folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[str] = []
    for kind in (Threads, calibration.Calibration):
        advance = kind.advance

        def note(self: object, advance: Callable[..., object] = advance) -> object:
            measured.append(type(self).__name__)
            return advance(self)

        monkeypatch.setattr(kind, "advance", note)
    fresh.load(load_command(folders, fresh))
    assert isinstance(fresh.answer("tell me", SETTINGS), GenerationDone)
    assert not measured
    calibrate = Calibrate("", fresh.name_request())
    fresh.submit(calibrate)
    fresh.wait(calibrate.request_id, Calibrated)
    assert measured.index("Threads") < measured.index("Calibration")


def test_the_steps_of_an_answer_add_up_to_it(engine: EngineHarness, tiny: Target) -> None:
    done = engine.answer("tell me", SETTINGS)
    assert isinstance(done, GenerationDone)
    steps = engine.of(done.request_id, StepDone)
    assert [step.step for step in steps] == list(range(done.num_steps + 1))
    assert tuple(t for step in steps for t in step.token_ids) == done.token_ids
    assert tuple(len(step.token_ids) for step in steps[1:]) == done.accept_lengths
    text = b"".join(piece for step in steps for piece in step.pieces)
    assert text[: steps[-1].num_visible_bytes].decode() == done.text
    assert [step.num_context_tokens for step in steps][-1] == done.num_prompt_tokens + len(
        done.token_ids
    )
    assert steps[0].num_rows == done.num_prompt_tokens - done.num_cached_tokens
    assert steps[0].sources == (TARGET,)
    for step in steps[1:]:
        assert step.num_rows == len(step.node_sources)
        assert set(step.sources) <= set(step.node_sources)
        parts = sum(step.times)
        assert step.step_s >= parts  # the whole step has its text, too
    steps_s = sum(step.step_s for step in steps[1:])
    assert steps_s <= done.decode_s < 2 * steps_s  # telling them takes time, too
    assert done.time_to_first_token_s > 0
    assert done.settings.tree_rows == 12  # what the table beside the heads says
    expected = decode(tiny, SETTINGS, user_says("tell me"))
    assert done.token_ids == expected.token_ids


def test_cancel_in_decode_takes_effect_within_one_step(engine: EngineHarness) -> None:
    request_id = engine.name_request()

    def cancel_after_the_third(event: Event) -> None:
        if isinstance(event, StepDone) and event.step == 3:
            engine.submit(Cancel("c", request_id))

    engine.on_event = cancel_after_the_third
    engine.submit(Generate("c", request_id, user_says("go on and on"), LONG))
    done = engine.wait(request_id, GenerationDone)
    assert isinstance(done, GenerationDone)
    assert done.stop_reason is StopReason.CANCELLED
    assert 3 <= done.num_steps <= 4
    steps = engine.of(request_id, StepDone)
    assert done.token_ids == tuple(t for step in steps for t in step.token_ids)
    assert done.text


def test_cancel_in_prefill_takes_effect_within_one_chunk(engine: EngineHarness) -> None:
    request_id = engine.name_request()

    def cancel_at_once(event: Event) -> None:
        if isinstance(event, Progress) and event.stage == "prefill":
            engine.submit(Cancel("p", request_id))

    engine.on_event = cancel_at_once
    engine.submit(Generate("p", request_id, user_says(LONG_PROMPT), LONG))
    done = engine.wait(request_id, GenerationDone)
    assert isinstance(done, GenerationDone)
    assert (done.stop_reason, done.token_ids, done.text) == (StopReason.CANCELLED, (), "")
    assert len(engine.of(request_id, Progress)) <= 2
    assert not engine.of(request_id, StepDone)
    engine.on_event = lambda _: None
    # What was read before the cancel is not read again.
    again = engine.answer(LONG_PROMPT, SETTINGS, "p")
    assert isinstance(again, GenerationDone)
    assert again.num_cached_tokens >= 64


def test_cancel_in_prefill_beside_an_answer_takes_effect_within_one_chunk(
    engine: EngineHarness,
) -> None:
    beside, request_id = engine.name_request(), engine.name_request()

    def ask_then_cancel(event: Event) -> None:
        if isinstance(event, StepDone) and (event.request_id, event.step) == (beside, 1):
            prompt = user_says("what no other test has read " * 8)
            engine.submit(Generate("reads", request_id, prompt, SETTINGS))
        if isinstance(event, Progress) and event.request_id == request_id:
            engine.submit(Cancel("reads", request_id))

    engine.on_event = ask_then_cancel
    engine.submit(Generate("beside", beside, user_says("go on and on"), HALF))
    done = engine.wait(request_id, GenerationDone, Failed)
    assert isinstance(done, GenerationDone)
    assert (done.stop_reason, done.token_ids) == (StopReason.CANCELLED, ())
    assert 1 <= len(engine.of(request_id, Progress)) <= 2
    other = engine.wait(beside, GenerationDone)
    assert isinstance(other, GenerationDone)
    assert other.stop_reason is not StopReason.CANCELLED


def test_prefill_reports_its_progress(engine: EngineHarness) -> None:
    done = engine.answer(LONG_PROMPT, SETTINGS, "progress")
    fractions = [e.fraction for e in engine.of(done.request_id, Progress)]
    assert len(fractions) >= 2
    assert fractions == sorted(fractions)
    assert fractions[0] > 0
    assert fractions[-1] < 1


def test_a_cancel_for_another_request_or_after_the_end_is_ignored(engine: EngineHarness) -> None:
    engine.submit(Cancel("s", "nobody"))
    done = engine.answer("still here", SETTINGS)
    engine.submit(Cancel("s", done.request_id))
    again = engine.answer("still here", SETTINGS)
    assert isinstance(done, GenerationDone)
    assert isinstance(again, GenerationDone)
    assert again.text == done.text
    assert len(engine.of(done.request_id, GenerationDone)) == 1


def test_two_sessions_are_interleaved_and_answered_as_if_alone(
    engine: EngineHarness, tiny: Target
) -> None:
    prompts = {"left": "the left hand", "right": "the right hand"}
    requests = {name: engine.name_request() for name in prompts}

    def start_the_other(event: Event) -> None:
        if isinstance(event, StepDone) and (event.session_id, event.step) == ("left", 0):
            engine.submit(Generate("right", requests["right"], user_says(prompts["right"]), HALF))

    engine.on_event = start_the_other
    engine.submit(Generate("left", requests["left"], user_says(prompts["left"]), HALF))
    dones = {name: engine.wait(requests[name], GenerationDone) for name in prompts}
    for name, prompt in prompts.items():
        done = dones[name]
        assert isinstance(done, GenerationDone)
        assert done.token_ids == decode(tiny, HALF, user_says(prompt)).token_ids
    turns = [event.session_id for event in engine.events if isinstance(event, StepDone)]
    # The left one has had two turns before the right one's first.
    together = turns[2 : 2 * min(turns.count("left"), turns.count("right")) - 2]
    assert len(together) > 10
    assert all(a != b for a, b in pairwise(together))


@pytest.mark.expects_errors
def test_a_conversation_runs_one_answer_at_a_time(engine: EngineHarness) -> None:
    first, second = engine.name_request(), engine.name_request()

    def retry(event: Event) -> None:
        if isinstance(event, StepDone) and (event.request_id, event.step) == (first, 1):
            engine.submit(Generate("one", second, user_says("b"), SETTINGS))

    engine.on_event = retry
    engine.submit(Generate("one", first, user_says("a"), SETTINGS))
    failed = engine.wait(second, Failed)
    assert isinstance(failed, Failed)
    assert failed.kind == "RequestError"
    assert failed.hint
    assert isinstance(engine.wait(first, GenerationDone), GenerationDone)


def test_closing_a_session_ends_its_answer_and_frees_its_cache(engine: EngineHarness) -> None:
    request_id = engine.name_request()

    def close(event: Event) -> None:
        if isinstance(event, StepDone) and event.step == 2:
            engine.submit(CloseSession("gone", "close"))

    engine.on_event = close
    engine.submit(Generate("gone", request_id, user_says("soon over"), LONG, cache_salt="gone"))
    done = engine.wait(request_id, GenerationDone)
    assert isinstance(done, GenerationDone)
    assert done.stop_reason is StopReason.CANCELLED
    engine.on_event = lambda _: None
    engine.submit(Generate("gone", "again", user_says("soon over"), SETTINGS, cache_salt="gone"))
    again = engine.wait("again", GenerationDone)
    assert isinstance(again, GenerationDone)
    assert again.num_cached_tokens == 0


def test_calibration_waits_for_answers_that_use_its_room(
    fresh: EngineHarness, folders: Folders
) -> None:
    fresh.load(load_command(folders, fresh))
    order: list[Event] = []

    def note(event: Event) -> None:
        if isinstance(event, StepDone) and event.step == 0:
            fresh.submit(Calibrate("", "calibrate"))
        order.append(event)

    fresh.on_event = note
    fresh.submit(Generate("early", "early", user_says("before all is measured"), LONG))
    assert isinstance(fresh.wait("calibrate", Calibrated, Failed), Calibrated)
    kinds = [type(event) for event in order]
    assert kinds.index(GenerationDone) < kinds.index(Calibrated)


def test_missing_calibration_is_measured_while_idle(
    fresh: EngineHarness, folders: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "BUDGET_S", {"cpu": 0.0})
    monkeypatch.setattr(calibration, "ROW_COUNTS", (1, 2, 4, 16, 64))
    monkeypatch.setattr(calibration.Calibration, "is_disturbed", False)
    fresh.load(replace(load_command(folders, fresh), calibrations_dir=tmp_path))
    fresh.submit(Calibrate("", "calibrate"))
    fresh.submit(Race("", "race"))
    assert isinstance(fresh.wait("calibrate", Calibrated, Failed), Calibrated)
    assert isinstance(fresh.answer("meanwhile", SETTINGS), GenerationDone)
    assert isinstance(fresh.wait("race", Raced, Failed), Raced)
    first, last = fresh.of("calibrate", Calibrated)
    assert [rows for rows, _ in first.step_s] == [1, 2, 4]
    assert [rows for rows, _ in last.step_s] == list(calibration.ROW_COUNTS)
    (saved,) = tmp_path.glob("*.costs.json")
    assert StepCosts.from_json(json.loads(saved.read_text())).is_complete


def test_measurements_are_repeated_on_request(
    fresh: EngineHarness, folders: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration.Calibration, "is_disturbed", False)
    monkeypatch.setitem(calibration.BUDGET_S, "cpu", 10.0)
    monkeypatch.setattr(calibration, "_ROUNDS", 2)  # nothing is left for the second time
    monkeypatch.setattr(calibration, "ROW_COUNTS", (1, 4, 16))
    fresh.load(replace(load_command(folders, fresh), calibrations_dir=tmp_path))
    fresh.submit(Calibrate("", "first"))
    first = fresh.wait("first", Calibrated, Failed)
    fresh.submit(Calibrate("", "known"))
    known = fresh.wait("known", Calibrated, Failed)
    fresh.submit(Calibrate("", "again", is_anew=True))
    again = fresh.wait("again", Calibrated, Failed)
    assert isinstance(first, Calibrated)
    assert isinstance(known, Calibrated)
    assert isinstance(again, Calibrated)
    assert first.step_s == known.step_s != again.step_s


def test_calibration_measures_steps_and_chooses_a_tree(
    fresh: EngineHarness, folders: Folders
) -> None:
    fresh.load(load_command(folders, fresh))
    fresh.submit(Calibrate("", "calibrate"))
    calibrated = fresh.wait("calibrate", Calibrated, Failed)
    assert isinstance(calibrated, Calibrated)
    planned = fresh.wait("calibrate", Planned)
    assert isinstance(planned, Planned)
    assert len(planned.head_accuracies) == 3
    assert len(planned.best_nodes) == len(planned.tree_step_s)
    for number, node in enumerate(planned.best_nodes, start=1):
        assert node.parent < number
        above = planned.best_nodes[node.parent - 1] if node.parent else None
        assert node.head == (above.head + 1 if above else 1)
        assert node.chance <= (above.chance if above else 1)
    rows = [rows for rows, _ in calibrated.step_s]
    assert rows[0] == 1
    assert rows == sorted(rows)
    assert all(seconds > 0 for _, seconds in calibrated.step_s)
    assert calibrated.plain_step_s >= calibrated.step_s[0][1]
    assert 2 <= planned.tree_rows <= rows[-1]
    done = fresh.answer("now", SETTINGS)
    assert isinstance(done, GenerationDone)
    assert 2 <= done.settings.tree_rows <= rows[-1]
    # What was learned of it changes the plan, which says so; a draw's own temperature is told.
    learned = fresh.wait(done.request_id, Planned)
    assert isinstance(learned, Planned)
    assert (planned.temperature, planned.num_learned) == (0.0, 0)
    assert (learned.temperature, learned.num_learned) == (1.0, done.num_steps)
    assert learned.head_accuracies != planned.head_accuracies
    assert len(learned.head_accuracies) == len(planned.head_accuracies)
    plain = fresh.answer("and", replace(SETTINGS, drafter="none"))
    reported = fresh.wait(plain.request_id, Planned)
    assert isinstance(reported, Planned)
    assert reported.tree_rows >= 2, "of the heads, whoever drafted"


@pytest.mark.expects_errors
def test_without_a_model_requests_fail_and_the_engine_keeps_working(
    fresh: EngineHarness, folders: Folders
) -> None:
    for _ in range(2):
        failed = fresh.answer("hello", SETTINGS)
        assert isinstance(failed, Failed)
        assert (failed.kind, bool(failed.hint)) == ("RequestError", True)
    fresh.load(load_command(folders, fresh))
    assert isinstance(fresh.answer("hello", SETTINGS), GenerationDone)
    fresh.submit(Unload("", "unload"))
    assert isinstance(fresh.wait("unload", Unloaded), Unloaded)
    assert isinstance(fresh.answer("hello", SETTINGS), Failed)


def test_loading_another_model_ends_answers_of_the_first(
    fresh: EngineHarness, folders: Folders
) -> None:
    fresh.load(load_command(folders, fresh))
    model_dir, heads_dir = folders["tied"]
    request_id = fresh.name_request()

    def load_other(event: Event) -> None:
        if isinstance(event, StepDone) and event.step == 1:
            fresh.submit(
                LoadModel("", "other", model_dir, heads_dir, LoadOptions("float32", "cpu"))
            )

    fresh.on_event = load_other
    fresh.submit(Generate("s", request_id, user_says("cut short"), LONG))
    done = fresh.wait(request_id, GenerationDone)
    assert isinstance(done, GenerationDone)
    assert done.stop_reason is StopReason.CANCELLED
    loaded = fresh.wait("other", ModelLoaded)
    assert isinstance(loaded, ModelLoaded)
    assert loaded.name == "tied"
    after = fresh.answer("cut short", SETTINGS)
    assert isinstance(after, GenerationDone)
    assert after.num_cached_tokens == 0  # rows of the other model are worth nothing


def test_closing_within_an_answer_ends_thread_and_answer(
    folders: Folders,
) -> None:
    before = set(threading.enumerate())
    harness = EngineHarness()
    started = threading.Event()
    harness.on_event = lambda event: started.set() if isinstance(event, StepDone) else None
    harness.load(load_command(folders, harness))
    harness.submit(Generate("s", "last", user_says("never ends"), LONG))
    assert started.wait(60)
    harness.close()
    harness.close()
    ends = harness.of("last", GenerationDone)
    assert [end.stop_reason for end in ends] == [StopReason.CANCELLED]
    assert set(threading.enumerate()) <= before


def test_closing_an_unused_engine_is_quick() -> None:
    harness = EngineHarness()
    harness.close()
    harness.submit(Unload("", "too late"))
    assert harness.events == []


def test_a_cancel_alone_does_not_start_the_engine(fresh: EngineHarness) -> None:
    fresh.submit(Cancel("chat", "remote"))
    fresh.submit(Unload("", "unload"))
    fresh.wait("unload", Unloaded)
    assert {event.request_id for event in fresh.events} == {"unload"}


@pytest.mark.expects_errors
def test_an_answer_names_the_request_that_loaded_its_model(
    fresh: EngineHarness, folders: Folders, tmp_path: Path
) -> None:
    first = load_command(folders, fresh)
    fresh.load(first)
    refused = replace(first, request_id=fresh.name_request(), model_dir=tmp_path)
    fresh.submit(refused)
    done = fresh.answer("tell me", SETTINGS)
    assert isinstance(fresh.wait(refused.request_id, ModelLoaded, Failed), Failed)
    reported = [e for e in fresh.events if e.request_id == done.request_id]
    assert isinstance(reported[0], AnswerStarted)
    assert reported[0].load_id == first.request_id


def test_steps_are_measured_again_after_a_change_of_threads(
    fresh: EngineHarness, folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh.load(load_command(folders, fresh))
    calibrate = Calibrate("", fresh.name_request())
    fresh.submit(calibrate)
    fresh.wait(calibrate.request_id, Calibrated)
    fresh.answer("tell me", SETTINGS)
    assert len(fresh.of(calibrate.request_id, Calibrated)) == 1
    fresh.events.clear()
    module = "medusa_core.speculation.tuning.threads"
    monkeypatch.setattr(f"{module}.Threads.is_due", property(lambda one: one.counts[0][0] != 7))

    def choose(threads: Threads) -> bool:
        threads.counts = (ThreadCounts(7, 7),)
        return True

    monkeypatch.setattr(f"{module}.Threads.advance", choose)
    assert isinstance(fresh.answer("tell me", SETTINGS), GenerationDone)
    monkeypatch.undo()
    fresh.wait(calibrate.request_id, Calibrated)
