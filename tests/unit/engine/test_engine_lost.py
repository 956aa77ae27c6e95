"""What the worker survives, and what it doesn't: an error that poisons the device."""

from collections.abc import Callable, Iterator
from itertools import product

import pytest
import torch

from medusa_core.engine.executor import Executor
from medusa_core.engine.failures import Failures, poisons_device
from medusa_core.engine.model_slot import ModelSlot
from medusa_core.errors import OutOfMemoryError
from medusa_core.messages import (
    Calibrate,
    ChatMessage,
    EngineLost,
    Event,
    Failed,
    Generate,
    GenerateSettings,
    GenerationDone,
    LoadModel,
    LoadOptions,
    ModelLoaded,
    Role,
    StepDone,
)
from medusa_core.runtime.runner.resident import ResidentRunner
from tests.support.engine.harness import EngineHarness
from tests.support.engine.laws import user_says

pytestmark = pytest.mark.expects_errors
SETTINGS = GenerateSettings(max_new_tokens=12, banned=(1,))


class PanicException(BaseException):
    """Stand-in for the tokenizer library's panics, which are recognised by name."""


@pytest.fixture
def engine() -> Iterator[EngineHarness]:
    harness = EngineHarness()
    yield harness
    harness.close()


def load(engine: EngineHarness, folders: dict[str, tuple[object, object]]) -> None:
    engine.submit(LoadModel("", "load", *folders["grouped"], LoadOptions(dtype="float64")))  # type: ignore[arg-type]
    assert isinstance(engine.wait("load", ModelLoaded, Failed), ModelLoaded)


def ask(engine: EngineHarness, name: str, session: str = "s") -> Event:
    engine.submit(Generate(session, name, user_says("one"), SETTINGS))
    return engine.wait(name, GenerationDone, Failed)


def raising(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, after: int = 3
) -> Callable[[], int]:
    """Return a runner whose verifications raise from a given one on."""
    verify, count = ResidentRunner.verify, 0

    def failing(self: ResidentRunner, *args: object) -> object:
        nonlocal count
        count += 1
        if count > after:
            raise error
        return verify(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(ResidentRunner, "verify", failing)
    return lambda: count


@pytest.mark.parametrize(
    "error",
    [PanicException("called unwrap"), SystemExit(3), KeyboardInterrupt(), RecursionError("deep")],
    ids=lambda error: type(error).__name__,
)
def test_the_worker_survives_any_exception(
    error: BaseException,
    engine: EngineHarness,
    folders: dict[str, tuple[object, object]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    load(engine, folders)
    raising(monkeypatch, error)
    failed = ask(engine, "first")
    assert isinstance(failed, Failed)
    assert not isinstance(failed, EngineLost)
    monkeypatch.undo()
    assert isinstance(ask(engine, "second"), GenerationDone)


POISON = (
    RuntimeError("CUDA error: an illegal memory access was encountered"),
    RuntimeError("CUDA error: device-side assert triggered"),
    RuntimeError("CUDA error: unspecified launch failure"),
)


@pytest.mark.parametrize("error", POISON, ids=lambda error: str(error)[12:30])
def test_a_lost_device_ends_all_work_and_is_reported(
    error: BaseException,
    engine: EngineHarness,
    folders: dict[str, tuple[object, object]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    load(engine, folders)
    count = raising(monkeypatch, error)
    engine.submit(Generate("other", "beside", user_says("two"), SETTINGS))
    lost = ask(engine, "first")
    assert isinstance(lost, EngineLost)
    assert "Restart Medusa Chat" in lost.hint
    assert isinstance(engine.wait("beside", GenerationDone, Failed), EngineLost)
    num_tried = count()
    monkeypatch.undo()
    # Later commands are answered at once, and nothing is tried.
    assert isinstance(ask(engine, "second"), EngineLost)
    engine.submit(Calibrate("s", "calibrate"))
    assert isinstance(engine.wait("calibrate", Failed), EngineLost)
    engine.submit(LoadModel("", "again", *folders["grouped"]))  # type: ignore[arg-type]
    assert isinstance(engine.wait("again", ModelLoaded, Failed), EngineLost)
    assert count() == num_tried


def test_tokens_decided_before_are_kept(
    engine: EngineHarness,
    folders: dict[str, tuple[object, object]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    load(engine, folders)
    raising(monkeypatch, POISON[0])
    ask(engine, "first")
    steps = [e for e in engine.events if isinstance(e, StepDone) and e.request_id == "first"]
    assert len(steps) == 4


def caused(error: BaseException, cause: BaseException) -> BaseException:
    """An error in our words, raised from another one."""
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        torch.AcceleratorError("CUDA error: out of memory"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        caused(OutOfMemoryError("No memory."), RuntimeError("CUDA error: out of memory")),
    ],
    ids=lambda error: str(error)[:40],
)
def test_out_of_memory_errors_are_no_lost_device(error: BaseException) -> None:
    reported: list[Event] = []
    Failures(reported.append).report(Calibrate("s", "r"), error)
    (failed,) = reported
    assert isinstance(failed, Failed)
    assert (type(failed), failed.kind) == (Failed, "OutOfMemoryError")


def test_a_lost_device_is_recognised_in_chained_errors() -> None:
    assert poisons_device(caused(OutOfMemoryError("No memory."), POISON[0]))
    later = ValueError("while it was tidied up")
    later.__context__ = POISON[1]
    assert poisons_device(later)


def out_of_memory(*_: object, **__: object) -> None:
    raise torch.OutOfMemoryError("CUDA out of memory")


def poisoned(*_: object, **__: object) -> None:
    raise POISON[0]


def test_a_card_lost_while_memory_is_freed_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lose() -> None:
        raise POISON[0]

    reported: list[Event] = []
    executor = Executor(reported.append, lambda _: False)
    monkeypatch.setattr("medusa_core.system.cuda.release_memory", lose)
    monkeypatch.setattr(ModelSlot, "begin_calibration", out_of_memory)
    executor.handle(Calibrate("s", "first"))
    executor.work()
    executor.handle(Calibrate("s", "second"))
    assert [(type(event), event.request_id) for event in reported] == [
        (EngineLost, "first"),
        (EngineLost, "second"),
    ]


def test_an_error_after_an_answers_last_step_is_survived(
    engine: EngineHarness,
    folders: dict[str, tuple[object, object]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise PanicException("planning")

    load(engine, folders)
    monkeypatch.setattr(ModelSlot, "send_plan", fail)
    assert isinstance(ask(engine, "first"), GenerationDone)
    monkeypatch.undo()
    assert isinstance(ask(engine, "second"), GenerationDone)


@pytest.mark.parametrize("error", [ImportError("libcudart"), SystemExit(1)], ids=repr)
def test_a_torch_that_cannot_be_used_is_reported_for_every_request(
    error: BaseException,
    engine: EngineHarness,
    folders: dict[str, tuple[object, object]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr("medusa_core.engine.worker.load_torch_libraries", fail)
    for name in ("first", "second"):
        assert isinstance(ask(engine, name), Failed)
    monkeypatch.undo()
    load(engine, folders)


def test_other_errors_are_no_lost_device() -> None:
    assert not poisons_device(RuntimeError("shapes differ"))
    assert poisons_device(torch.AcceleratorError("CUDA error: misaligned address"))


def test_a_lost_device_is_not_used_at_shutdown(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[Event] = []
    executor = Executor(reported.append, lambda _: False)
    monkeypatch.setattr(ModelSlot, "begin_calibration", poisoned)
    executor.handle(Calibrate("s", "r"))
    executor.work()
    executor.close()
    assert [type(event) for event in reported] == [EngineLost]


def test_invalid_tokens_of_a_model_keep_the_answers_text(
    engine: EngineHarness, folders: dict[str, tuple[object, object]]
) -> None:
    load(engine, folders)
    question, *_ = user_says("one")
    wrong: tuple[tuple[int, ...], ...] = ((-5,), (-1, 3), (320,), (2**31,), (5, 2**40))
    for token_ids, content in product(wrong, ("", "two")):
        turns = (question, ChatMessage(Role.ASSISTANT, content, token_ids), question)
        name = f"{content} {token_ids}"
        engine.submit(Generate("s", name, turns, SETTINGS))
        assert isinstance(engine.wait(name, GenerationDone, Failed), GenerationDone)
