"""Every request gets exactly one last event, wherever the engine fails."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from medusa_core.engine.drafter_race import DrafterRace
from medusa_core.engine.generation import Generation
from medusa_core.engine.model_slot import ModelSlot
from medusa_core.engine.scheduler import Scheduler
from medusa_core.engine.sessions import Sessions
from medusa_core.messages import (
    AnswerStarted,
    Calibrate,
    Calibrated,
    Cancel,
    CloseSession,
    EngineLost,
    Failed,
    Generate,
    GenerateSettings,
    GenerationDone,
    LoadModel,
    LoadOptions,
    ModelLoaded,
    Progress,
    Race,
    Raced,
    StepDone,
    Unload,
    Unloaded,
)
from tests.support.engine.by_turns import by_turns
from tests.support.engine.harness import EngineHarness
from tests.support.engine.laws import user_says
from tests.support.models.targets import Folders

pytestmark = pytest.mark.expects_errors
OPEN = GenerateSettings(drafter="suffix", rule="greedy", max_new_tokens=0, banned=(1,))
HALF = GenerateSettings(drafter="suffix", rule="greedy", max_new_tokens=80, banned=(1,))
WIDE = GenerateSettings(drafter="suffix", rule="greedy", max_new_tokens=120, banned=(1,))
SHORT = GenerateSettings(drafter="suffix", rule="greedy", max_new_tokens=5, banned=(1,))
POISON = RuntimeError("CUDA error: an illegal memory access was encountered")
LAST = (Calibrated, Failed, GenerationDone, ModelLoaded, Raced, Unloaded)


def raises(error: BaseException) -> Callable[..., object]:
    def fail(*_: object, **__: object) -> object:
        raise error

    return fail


def load_command(folders: Folders, name: str = "load") -> LoadModel:
    options = LoadOptions("float64", "cpu", context_tokens=192)
    return LoadModel("", name, *folders["grouped"], options)


@pytest.fixture
def engine(folders: Folders) -> Iterator[EngineHarness]:
    harness = EngineHarness()
    assert isinstance(harness.load(load_command(folders)), ModelLoaded)
    yield harness
    harness.close()


def ends_of(engine: EngineHarness) -> dict[str, list[str]]:
    """Names of the last events of each request, and what came after them."""
    ends: dict[str, list[str]] = {}
    for event in engine.events:
        after = event.request_id in ends and isinstance(event, StepDone | Progress | AnswerStarted)
        if isinstance(event, LAST) or after:
            ends.setdefault(event.request_id, []).append(type(event).__name__)
    return ends


def check(engine: EngineHarness, *names: str, other: str = "Failed") -> None:
    """Check that each request has ended once, and that the engine's thread still answers."""
    for name in names:
        engine.wait(name, *LAST)
    assert isinstance(engine.answer("again", SHORT, "again"), GenerationDone)
    ends = ends_of(engine)
    assert {name: ends[name] for name in names if len(ends[name]) != 1} == {}
    assert Counter(ends[name][0] for name in names)[other] >= 1, ends


def test_an_answer_that_fails_while_sharing_its_rows_fails_alone(
    engine: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Generation) -> None:
        failed.append(self.request.request_id)
        raise MemoryError

    failed: list[str] = []
    monkeypatch.setattr("medusa_core.engine.session._RESERVED_ROWS", 64)
    monkeypatch.setattr(Generation, "preempt", fail)
    names = ("a", "b", "c")
    for each in names:
        engine.submit(Generate(each, each, user_says(f"say {each}"), OPEN))
    check(engine, *names)
    assert {each for each in names if isinstance(engine.wait(each, *LAST), Failed)} == set(failed)


def test_an_answer_that_fails_while_ending_for_lack_of_room_fails_alone(
    engine: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Generation, "make_room", lambda self: not self.prefill.has_read)
    monkeypatch.setattr(Generation, "end_without_room", raises(MemoryError()))
    engine.submit(Generate("a", "a", user_says("say"), OPEN))
    assert isinstance(engine.wait("a", *LAST), Failed)
    monkeypatch.undo()
    check(engine, "a")


def test_an_answer_that_fails_while_its_grammar_is_compiled_fails_alone(
    engine: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Generation, "wait_for_grammar", raises(MemoryError()))
    grammar = "start: /[a-z]+/"
    engine.submit(Generate("g", "g", user_says("words"), SHORT, grammar=grammar))
    assert isinstance(engine.wait("g", *LAST), Failed)
    monkeypatch.undo()
    check(engine, "g")


@pytest.mark.parametrize("is_required", [True, False])
def test_an_answer_whose_grammar_cant_be_used_fails_if_it_needs_it(
    engine: EngineHarness, is_required: bool
) -> None:
    """A tool's schema, such as one that requires what it excludes."""
    schema = (
        '{"type": "object", "properties": {}, "required": ["a"], "additionalProperties": false}'
    )
    grammar = f"start: %json {schema}"
    request = Generate("g", "g", user_says("words"), SHORT, grammar=grammar)
    engine.submit(replace(request, requires_grammar=is_required))
    last = engine.wait("g", *LAST)
    assert isinstance(last, Failed if is_required else GenerationDone)
    if isinstance(last, GenerationDone):
        assert len(last.token_ids) == SHORT.max_new_tokens


def test_a_scheduler_error_ends_all_running_answers_and_the_thread_continues(
    engine: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Scheduler, running: list[Generation]) -> object:
        if len(running) < 2:
            return step(self, running)
        raise MemoryError

    step = Scheduler.step
    monkeypatch.setattr(Scheduler, "step", fail)
    for each in ("a", "b"):
        engine.submit(Generate(each, each, user_says(f"say {each}"), HALF))
    for each in ("a", "b"):
        assert isinstance(engine.wait(each, *LAST), Failed)
    check(engine, "a", "b")


@pytest.mark.parametrize("num_waiting", [1, 2, 3])
def test_a_device_lost_in_a_waiting_answer_ends_each_once(
    num_waiting: int, engine: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = [f"waits {number}" for number in range(num_waiting)]
    engine.submit(Generate("runs", "runs", user_says("say"), WIDE))
    for each in waiting:
        engine.submit(Generate(each, each, user_says("say"), WIDE))
    engine.wait("runs", AnswerStarted)
    monkeypatch.setattr("medusa_core.engine.executor.start_generation", raises(POISON))
    for each in waiting:
        assert isinstance(engine.wait(each, *LAST), EngineLost)
    engine.submit(Cancel(waiting[0], waiting[0]))
    engine.submit(Calibrate("", "later"))
    assert isinstance(engine.wait("later", *LAST), EngineLost)
    assert all(len(ends) == 1 for ends in ends_of(engine).values()), ends_of(engine)


def test_a_device_lost_after_an_answers_end_ends_the_others_once(
    engine: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ModelSlot, "send_plan", raises(POISON))
    names = ("short", "long", "longer")
    for each in names:
        settings = SHORT if each == "short" else WIDE
        engine.submit(Generate(each, each, user_says(f"say {each}"), settings))
    ends = [type(engine.wait(each, *LAST)) for each in names]
    assert ends == [GenerationDone, EngineLost, EngineLost]
    engine.submit(Calibrate("", "later"))
    engine.wait("later", *LAST)
    assert all(len(ends) == 1 for ends in ends_of(engine).values()), ends_of(engine)


@pytest.mark.parametrize("name", ["save_learned", "send_plan"])
def test_nothing_fails_after_its_final_event(
    name: str, engine: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ModelSlot, name, raises(MemoryError()))
    assert isinstance(engine.answer("one", SHORT, "one"), GenerationDone)
    monkeypatch.undo()
    assert isinstance(engine.answer("two", SHORT, "one"), GenerationDone)
    assert all(len(ends) == 1 for ends in ends_of(engine).values()), ends_of(engine)


@pytest.mark.parametrize(
    ("how", "name"),
    by_turns(["cancel", "close", "unload", "load"], ["cancel", "update_datastore"]),
)
def test_an_answer_whose_final_event_fails_ends_once_and_so_do_the_others(
    how: str,
    name: str,
    engine: EngineHarness,
    folders: Folders,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Generation, name, raises(MemoryError()))
    for each in ("a", "b"):
        engine.submit(Generate(each, each, user_says("say"), OPEN))
        engine.wait(each, AnswerStarted)
    match how:
        case "cancel":
            engine.submit(Cancel("a", "a"))
            engine.submit(Cancel("b", "b"))
        case "close":
            engine.submit(CloseSession("a", "close a"))
            engine.submit(CloseSession("b", "close b"))
        case "unload":
            engine.submit(Unload("", "gone"))
    if how in ("unload", "load"):
        assert isinstance(engine.load(load_command(folders, "anew")), ModelLoaded)
    for each in ("a", "b"):
        engine.wait(each, *LAST)
    monkeypatch.undo()
    check(engine, "a", "b", other="Failed" if name == "cancel" else "GenerationDone")


def test_a_session_that_cannot_be_closed_keeps_its_reported_failure(
    engine: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sessions, "close", raises(MemoryError()))
    monkeypatch.setattr(Generation, "events", raises(MemoryError()))
    engine.submit(Generate("a", "a", user_says("say"), SHORT))
    assert isinstance(engine.wait("a", *LAST), Failed)
    monkeypatch.undo()
    check(engine, "a")


def test_a_failed_load_fails_once_even_if_the_previous_model_cannot_be_restored(
    engine: EngineHarness, folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("medusa_core.engine.model_slot.load_target", raises(MemoryError()))
    assert isinstance(engine.load(load_command(folders, "fails")), Failed)
    engine.submit(Calibrate("", "there is none"))
    assert isinstance(engine.wait("there is none", *LAST), Failed)
    monkeypatch.undo()
    assert engine.of("load", Unloaded)  # nobody goes on to name the model before
    assert isinstance(engine.load(load_command(folders, "works")), ModelLoaded)
    check(engine, "fails")


def test_a_waiting_measurement_is_cancelled_when_the_model_is_unloaded(
    engine: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.submit(Calibrate("", "known"))
    assert isinstance(engine.wait("known", *LAST), Calibrated)
    monkeypatch.setattr(DrafterRace, "advance", lambda _: None)
    engine.submit(Race("", "first race"))
    engine.submit(Race("", "second race"))
    engine.submit(Generate("a", "a", user_says("say"), OPEN))
    engine.wait("a", AnswerStarted)
    engine.submit(Calibrate("", "waits"))
    engine.submit(Unload("", "gone"))
    for each in ("first race", "second race", "waits"):
        failed = engine.wait(each, *LAST)
        assert isinstance(failed, Failed)
        assert failed.kind == "Cancelled"
    engine.wait("gone", Unloaded)
    assert all(len(ends) == 1 for ends in ends_of(engine).values()), ends_of(engine)


def test_a_receiver_that_raises_ends_no_thread(engine: EngineHarness) -> None:
    engine.on_event = raises(MemoryError())
    assert isinstance(engine.answer("one", SHORT, "one"), GenerationDone)
    check(engine, "r1", other="GenerationDone")
