"""Answers that need more room in the cache than there is: they wait, and none is lost."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from medusa_core.engine.drafter_race import DrafterRace
from medusa_core.engine.generation import Generation
from medusa_core.engine.scheduler import Scheduler
from medusa_core.engine.session import Session
from medusa_core.engine.start import start_generation
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import (
    AnswerStarted,
    Calibrate,
    Calibrated,
    Cancel,
    CloseSession,
    Failed,
    Generate,
    GenerateSettings,
    GenerationDone,
    LoadModel,
    LoadOptions,
    ModelLoaded,
    Race,
    Raced,
    StepDone,
    StopReason,
)
from medusa_core.speculation.drafters.head_memory import HeadMemory
from medusa_core.speculation.tuning.row_policy import RowPolicy
from tests.support.engine.harness import EngineHarness
from tests.support.engine.laws import decode, user_says
from tests.support.models.targets import Folders

CONTEXT = 512
SHORT = 192  # for what has no calibration or race, which need more rows
OPEN = GenerateSettings(drafter="suffix", rule="greedy", max_new_tokens=0, banned=(1,))
WIDE = replace(OPEN, max_new_tokens=150)  # in `SHORT`, one such answer has room, two don't
LONG = replace(OPEN, max_new_tokens=16)


@pytest.fixture(scope="module")
def narrow(folders: Folders) -> Target:
    """A target whose cache holds one context."""
    return load_target(*folders["grouped"], LoadOptions("float64", context_tokens=384))


@pytest.fixture
def engine(folders: Folders) -> Iterator[EngineHarness]:
    harness = EngineHarness()
    options = LoadOptions("float64", "cpu", context_tokens=SHORT)
    command = LoadModel("", harness.name_request(), *folders["grouped"], options)
    assert isinstance(harness.load(command), ModelLoaded)
    yield harness
    harness.close()


def begun(target: Target, name: str, settings: GenerateSettings, text: str) -> Generation:
    request = Generate(name, "r", user_says(text), settings)
    return start_generation(request, target, Session(target), RowPolicy(target))


def test_answers_that_outgrow_the_cache_are_preempted_and_unchanged(
    narrow: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("medusa_core.engine.session._RESERVED_ROWS", 64)
    few = replace(OPEN, max_new_tokens=200)
    texts = {"first": "one", "second": "two two", "third": "three three three"}
    expected = {
        name: decode(narrow, few, user_says(text)).token_ids for name, text in texts.items()
    }
    # Answers without a limit of their own ask for rows bit by bit, so that all of them begin.
    running = [begun(narrow, name, replace(few, max_new_tokens=0), texts[name]) for name in texts]
    assert len(running) == len(texts)
    done: dict[str, tuple[int, ...]] = {}
    preempted: set[str] = set()
    scheduler = Scheduler()
    while running:
        for generation in running:
            if generation.prefill.has_read and generation.is_prefilling:
                preempted.add(generation.request.session_id)
        for result in scheduler.step(running):
            assert result.error is None
            for event in result.events:
                if isinstance(event, GenerationDone):
                    assert event.stop_reason is StopReason.CONTEXT
                    done[event.session_id] = event.token_ids
                    result.generation.session.close()
    assert preempted
    for name, token_ids in expected.items():
        assert done[name][: len(token_ids)] == token_ids


def test_an_answer_waits_until_the_cache_has_room(engine: EngineHarness) -> None:
    names = ("a", "b", "c")
    for name in names:
        engine.submit(Generate(name, name, user_says(f"say {name}"), WIDE))
    ends = [engine.wait(name, GenerationDone, Failed) for name in names]
    assert all(isinstance(end, GenerationDone) for end in ends)
    order = [
        (type(event), event.request_id)
        for event in engine.events
        if isinstance(event, AnswerStarted | GenerationDone)
    ]
    assert order == [(kind, name) for name in names for kind in (AnswerStarted, GenerationDone)]


def test_a_waiting_answer_can_be_stopped_and_blocks_nobody(engine: EngineHarness) -> None:
    for name in ("a", "b", "c"):
        engine.submit(Generate(name, name, user_says(f"say {name}"), WIDE))
    engine.wait("a", AnswerStarted)
    engine.submit(Cancel("b", "b"))
    engine.submit(CloseSession("c", "close"))
    for name in ("b", "c"):
        failed = engine.wait(name, GenerationDone, Failed)
        assert isinstance(failed, Failed)
        assert failed.kind == "Cancelled"
    assert isinstance(engine.wait("a", GenerationDone, Failed), GenerationDone)
    again = engine.answer("say b", WIDE, "b")
    assert isinstance(again, GenerationDone)


def test_a_waiting_conversation_is_not_started_twice(engine: EngineHarness) -> None:
    engine.submit(Generate("a", "a", user_says("say a"), WIDE))
    engine.submit(Generate("b", "b", user_says("say b"), WIDE))
    engine.submit(Generate("b", "again", user_says("say b"), WIDE))
    failed = engine.wait("again", GenerationDone, Failed)
    assert isinstance(failed, Failed)
    assert "still being answered" in failed.message
    assert isinstance(engine.wait("b", GenerationDone, Failed), GenerationDone)


@pytest.mark.parametrize("name", ["dflash", "streams"])
def test_heads_without_room_draft_nothing_and_the_answer_continues(
    name: str, folders: Folders
) -> None:
    target = load_target(*folders[name], LoadOptions("float64", context_tokens=CONTEXT))
    settings = replace(OPEN, drafter=name, max_new_tokens=32)
    plain = decode(target, replace(settings, drafter="none"), user_says("one"))
    assert target.heads is not None
    pool = target.heads.caches
    assert pool is not None
    other = pool.allocate(target.heads.new_cache, pool.num_rows - 32)  # type: ignore[attr-defined]
    session = Session(target)
    drafted = decode(target, settings, user_says("one"), session=session)
    assert drafted.token_ids == plain.token_ids
    memory = session.memory[next(iter(session.memory))]
    assert isinstance(memory, HeadMemory)
    assert memory.has_waiting
    assert drafted.steps[-2].num_rows == 1
    pool.release(other)
    again = decode(target, settings, user_says("one"), session=session)
    assert again.token_ids == plain.token_ids
    assert memory.kv.length > 32


def test_heads_use_the_room_of_evicted_idle_conversations(folders: Folders) -> None:
    engine = EngineHarness()
    options = LoadOptions("float64", "cpu", context_tokens=CONTEXT)
    command = LoadModel("", engine.name_request(), *folders["dflash"], options)
    assert isinstance(engine.load(command), ModelLoaded)
    settings = replace(OPEN, drafter="dflash", max_new_tokens=2)
    try:
        for number in range(9):
            done = engine.answer("say " + "a" * 30, settings, f"session {number}")
            assert isinstance(done, GenerationDone), done
    finally:
        engine.close()


def load_with_costs(folders: Folders, kept: Path) -> EngineHarness:
    """Return an engine whose cache holds one context and whose measurements are saved."""
    harness = EngineHarness()
    options = LoadOptions("float32", "cpu", context_tokens=CONTEXT)
    command = LoadModel("", "load", *folders["grouped"], options, calibrations_dir=kept)
    assert isinstance(harness.load(command), ModelLoaded)
    return harness


def fill_chat(engine: EngineHarness, num_letters: int = 900, context: int = CONTEXT) -> str:
    """Fill most of the context with a chat and return its question."""
    text = "say " + "a" * num_letters
    done = engine.answer(text, LONG, "chat")
    assert isinstance(done, GenerationDone)
    assert done.num_prompt_tokens > context // 2
    return text


def ask_again(engine: EngineHarness, text: str) -> GenerationDone:
    """Repeat the question: all but its last token is cached unless evicted."""
    done = engine.answer(text, LONG, "chat")
    assert isinstance(done, GenerationDone)
    return done


def test_comparison_and_calibration_never_evict_a_conversation(
    folders: Folders, tmp_path: Path
) -> None:
    engine = load_with_costs(folders, tmp_path)
    try:
        text = fill_chat(engine)
        engine.submit(Calibrate("", "calibrate"))
        engine.submit(Race("", "race"))
        for _ in range(3):
            done = ask_again(engine, text)
            assert done.num_cached_tokens == done.num_prompt_tokens - 1
        assert not engine.of("calibrate", Calibrated)
        engine.submit(CloseSession("chat", "close"))
        assert isinstance(engine.wait("calibrate", Calibrated, Failed), Calibrated)
        assert isinstance(engine.wait("race", Raced, Failed), Raced)
    finally:
        engine.close()


def test_calibration_has_room_beside_a_conversation(folders: Folders, tmp_path: Path) -> None:
    """Its cache grew to the whole context; what holds no rows yet is given back."""
    engine = load_with_costs(folders, tmp_path)
    try:
        text = fill_chat(engine, 640)
        engine.submit(Calibrate("", "calibrate"))
        assert isinstance(engine.wait("calibrate", Calibrated, Failed), Calibrated)
        done = ask_again(engine, text)
        assert done.num_cached_tokens == done.num_prompt_tokens - 1
    finally:
        engine.close()


def test_a_comparison_interrupted_by_a_question_waits_for_room_and_ends(
    folders: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = threading.Semaphore(0)
    advance = DrafterRace.advance

    def advance_slowly(race: DrafterRace) -> None:
        steps.release()
        time.sleep(5e-3)
        advance(race)

    monkeypatch.setattr(DrafterRace, "advance", advance_slowly)
    engine = load_with_costs(folders, tmp_path)
    try:
        engine.submit(Calibrate("", "calibrate"))
        engine.submit(Race("", "race"))
        for _ in range(5):
            assert steps.acquire(timeout=60)
        text = fill_chat(engine)
        done = ask_again(engine, text)
        assert done.num_cached_tokens == done.num_prompt_tokens - 1
        assert not engine.of("race", Raced)
        engine.submit(CloseSession("chat", "close"))
        assert isinstance(engine.wait("race", Raced, Failed), Raced)
    finally:
        engine.close()


def test_a_background_answer_uses_only_free_rows(engine: EngineHarness) -> None:
    text = fill_chat(engine, 300, SHORT)
    title = Generate("titles", "title", user_says("say t" + "b" * 80), LONG, is_background=True)
    engine.submit(title)
    done = ask_again(engine, text)
    assert done.num_cached_tokens == done.num_prompt_tokens - 1
    assert not engine.of("title", GenerationDone)
    engine.submit(CloseSession("chat", "close"))
    assert isinstance(engine.wait("title", GenerationDone, Failed), GenerationDone)


def test_a_background_answer_is_interrupted_and_restarted(
    engine: EngineHarness,
) -> None:
    title = Generate("titles", "title", user_says("say t"), WIDE, is_background=True)
    engine.submit(title)
    engine.wait("title", StepDone)
    done = engine.answer("say a", LONG, "chat")
    assert isinstance(done, GenerationDone)
    assert not engine.of("title", GenerationDone), "the question came first"
    ended = engine.wait("title", GenerationDone, Failed)
    assert isinstance(ended, GenerationDone)
    assert len(engine.of("title", AnswerStarted)) == 2
    assert ended.num_new_tokens == WIDE.max_new_tokens


def test_a_background_answer_that_never_fits_fails(engine: EngineHarness) -> None:
    title = Generate("titles", "title", user_says("say " + "b " * 2000), LONG, is_background=True)
    engine.submit(title)
    assert isinstance(engine.wait("title", GenerationDone, Failed), Failed)
