"""Sessions on a card: two in turns, verification, calibration, and caches that give way."""

from dataclasses import replace
from pathlib import Path

import pytest

from medusa_core.engine import session
from medusa_core.messages import (
    AnswerStarted,
    Calibrate,
    Calibrated,
    ChatMessage,
    CloseSession,
    Event,
    Failed,
    Generate,
    GenerateSettings,
    GenerationDone,
    LoadModel,
    LoadOptions,
    ModelLoaded,
    Role,
    Unload,
    Unloaded,
    Verified,
    Verify,
)
from medusa_core.speculation.tuning.calibration import BUDGET_S
from tests.lanes.card.conftest import Folders
from tests.support.card.card import CARDS, fake_cuda
from tests.support.card.sessions import EngineOnCard
from tests.support.engine.laws import user_says
from tests.support.models.tiny import TinySpec, write_tiny

SETTINGS = GenerateSettings(max_new_tokens=16)
PLAIN = replace(SETTINGS, drafter="none")


def load(
    engine: EngineOnCard, folder: tuple[Path, Path | None], device: str, dtype: str = "float64"
) -> None:
    reported = engine.ask(LoadModel("", "load", *folder, LoadOptions(dtype, device)))
    assert isinstance(reported[-1], ModelLoaded)
    assert reported[-1].device.startswith(device)


def compare(engine: EngineOnCard) -> dict[str, tuple[int, ...]]:
    """Compare the answers of two interleaved sessions, one plain and one with drafts."""
    reported = engine.ask(
        Generate("left", "a", user_says("the sea at night"), PLAIN),
        Generate("right", "b", user_says("the sea at night"), SETTINGS),
    )
    return {e.session_id: e.token_ids for e in reported if isinstance(e, GenerationDone)}


@CARDS
def test_two_interleaved_sessions_write_the_same_as_on_the_cpu(
    capability: tuple[int, int], folders: Folders
) -> None:
    engine = EngineOnCard()
    load(engine, folders["grouped"], "cpu")
    expected = compare(engine)
    with fake_cuda(capability):
        there = EngineOnCard()
        load(there, folders["grouped"], "cuda")
        assert compare(there) == expected
        assert expected["left"] == expected["right"]


@pytest.mark.parametrize("capability", [(8, 6)])
def test_a_cache_that_grows_within_an_answer_changes_no_token(
    capability: tuple[int, int], folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_RESERVED_ROWS", 16)
    settings = replace(SETTINGS, rule="sample", seed=5, temperature=1.5)
    prompt = user_says("the sea at night")
    limited = Generate("s", "r", prompt, replace(settings, max_new_tokens=1000), shares=4)
    engine = EngineOnCard()
    load(engine, folders["grouped"], "cpu")
    expected = done_of(engine.ask(limited))
    assert len(expected.token_ids) > 60
    with fake_cuda(capability):
        there = EngineOnCard()
        load(there, folders["grouped"], "cuda")
        opened = replace(limited, settings=replace(settings, max_new_tokens=0))
        assert done_of(there.ask(opened)).token_ids == expected.token_ids


def done_of(reported: list[Event]) -> GenerationDone:
    """The end of the only answer."""
    (done,) = (event for event in reported if isinstance(event, GenerationDone))
    return done


@CARDS
def test_a_text_is_verified_as_on_the_cpu(capability: tuple[int, int], folders: Folders) -> None:
    ask = Verify("s", "v", text="one two three and a word that nobody expects")
    engine = EngineOnCard()
    load(engine, folders["grouped"], "cpu")
    (expected,) = engine.ask(ask)
    with fake_cuda(capability):
        there = EngineOnCard()
        load(there, folders["grouped"], "cuda")
        (read,) = there.ask(ask)
    assert isinstance(expected, Verified)
    assert isinstance(read, Verified)
    ids = [[token.output.token_id for token in each.tokens] for each in (expected, read)]
    assert ids[0] == ids[1]


@pytest.mark.parametrize("graphs", [False, True], ids=["plain", "graphs"])
def test_continued_and_further_answers_equal_those_of_the_cpu(
    graphs: bool, folders: Folders
) -> None:
    def talk(engine: EngineOnCard) -> list[tuple[int, ...]]:
        requested = user_says("hello")
        (*_, first) = engine.ask(Generate("s", "1", requested, SETTINGS))
        assert isinstance(first, GenerationDone)
        answer = ChatMessage(Role.ASSISTANT, first.text, first.token_ids)
        (*_, again) = engine.ask(
            Generate("s", "2", (*requested, answer, *user_says("more")), SETTINGS)
        )
        (*_, reroll) = engine.ask(Generate("s", "3", (*requested, answer), SETTINGS, keep_tokens=3))
        assert isinstance(again, GenerationDone)
        assert isinstance(reroll, GenerationDone)
        return [first.token_ids, again.token_ids, reroll.token_ids]

    engine = EngineOnCard()
    load(engine, folders["grouped"], "cpu")
    expected = talk(engine)
    with fake_cuda(graphs_pay=graphs):
        there = EngineOnCard()
        load(there, folders["grouped"], "cuda")
        assert talk(there) == expected


def test_steps_are_measured_on_a_card(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BUDGET_S, "cuda", 0.5)
    with fake_cuda() as card:
        engine = EngineOnCard()
        load(engine, folders["grouped"], "cuda", "")
        taken = card.memory.taken_bytes
        reported = engine.ask(Calibrate("", "c"))
        assert any(isinstance(event, Calibrated) for event in reported)
        assert card.memory.taken_bytes <= taken + (1 << 16)  # its caches are gone


def small(tmp_path: Path) -> tuple[Path, None]:
    """A target whose plan has room for one long answer."""
    return write_tiny(tmp_path / "small", TinySpec(context_tokens=128)), None


def test_an_idle_session_is_evicted_if_another_needs_its_room(tmp_path: Path) -> None:
    ask = replace(PLAIN, max_new_tokens=100)
    with fake_cuda() as card:
        engine = EngineOnCard()
        load(engine, small(tmp_path), "cuda", "float32")
        reserved = card.memory.taken_bytes
        (*_, first) = engine.ask(Generate("one", "1", user_says("hello"), ask))
        assert isinstance(first, GenerationDone)
        (*_, second) = engine.ask(Generate("two", "2", user_says("hello"), ask))
        assert isinstance(second, GenerationDone)
        assert second.token_ids == first.token_ids
        assert tuple(engine.executor._sessions) == ("two",)
        assert card.memory.taken_bytes <= reserved + (1 << 16)  # both lay in what was reserved


def test_a_cache_that_grows_does_not_evict_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_RESERVED_ROWS", 16)
    half, open_ended = replace(PLAIN, max_new_tokens=70), replace(PLAIN, max_new_tokens=0)
    with fake_cuda():
        engine = EngineOnCard()
        load(engine, small(tmp_path), "cuda", "float32")
        for name in ("one", "two"):
            engine.ask(Generate(name, name, user_says("hello"), half, shares=2))
        assert tuple(engine.executor._sessions) == ("one", "two")
        # Neither half of the memory has room for the whole context.
        (*_, grown) = engine.ask(Generate("two", "2", user_says("hello"), open_ended))
        assert isinstance(grown, GenerationDone)
        assert tuple(engine.executor._sessions) == ("two",)
        assert len(grown.token_ids) > 96  # more than half of the memory
        (*_, alone) = engine.ask(Generate("three", "3", user_says("hello"), open_ended))
        assert isinstance(alone, GenerationDone)
        assert grown.token_ids == alone.token_ids


def test_both_sides_of_a_comparison_fit_where_one_answer_was_planned(
    tmp_path: Path,
) -> None:
    def both(shares: int) -> list[Event]:
        sides = [
            Generate(side, side, user_says("hello"), ask, shares=shares) for side in ("a", "b")
        ]
        ends = engine.ask(*sides, CloseSession("a", "x"), CloseSession("b", "y"))
        return [event for event in ends if isinstance(event, GenerationDone | Failed)]

    ask = replace(PLAIN, max_new_tokens=100)
    with fake_cuda():
        engine = EngineOnCard()
        load(engine, small(tmp_path), "cuda", "float32")
        engine.ask(Generate("chat", "1", user_says("hello"), ask))  # it gives way
        left, right = both(2)
        assert isinstance(left, GenerationDone)
        assert isinstance(right, GenerationDone)
        assert left.token_ids == right.token_ids
        assert left.num_prompt_tokens + len(left.token_ids) <= 64
        long = Generate("a", "2", user_says("many words to read " * 5), ask, shares=2)
        (refused,) = engine.ask(long)
        assert isinstance(refused, Failed)
        assert refused.kind == "RequestError"
        assert "share the context of 128 tokens" in refused.hint


def test_a_second_answer_without_room_waits_for_the_first(tmp_path: Path) -> None:
    ask = replace(PLAIN, max_new_tokens=100)
    with fake_cuda():
        engine = EngineOnCard()
        load(engine, small(tmp_path), "cuda", "float32")
        reported = engine.ask(
            Generate("one", "1", user_says("hello"), ask),
            Generate("two", "2", user_says("hello"), ask),
        )
    assert [event.request_id for event in reported if isinstance(event, AnswerStarted)] == [
        "1",
        "2",
    ]
    assert [event.request_id for event in reported if isinstance(event, GenerationDone)] == [
        "1",
        "2",
    ]


def test_all_operations_of_a_model_stay_within_its_plan(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BUDGET_S, "cuda", 0.1)
    with fake_cuda() as card:
        engine = EngineOnCard()
        load(engine, folders["grouped"], "cuda", "")
        loaded = next(event for event in engine.events if isinstance(event, ModelLoaded))
        plan, before = loaded.plan, card.memory.taken_bytes
        assert plan.weights_bytes + plan.kv_bytes <= before
        card.memory.peak_bytes = before
        # A budget: what goes beyond the plan fails by name.
        card.memory.total_bytes = before + plan.scratch_bytes
        long_text = "one two three " * 25
        reported = engine.ask(
            Calibrate("", "c"), Generate("chat", "1", user_says(long_text), SETTINGS)
        )
        reported += engine.ask(
            Verify("s", "v", text=long_text),
            Generate("left", "l", user_says("hello"), PLAIN, shares=2),
            Generate("right", "r", user_says("hello"), SETTINGS, shares=2),
        )
        reported += engine.ask(Verify("s", "w", text=long_text), Calibrate("", "d"))
        assert not [event for event in reported if isinstance(event, Failed)]
        assert sum(isinstance(event, Verified) for event in reported) == 2
        calibrated = [event.request_id for event in reported if isinstance(event, Calibrated)]
        # What a budget left out is completed in spare time and told again.
        assert set(calibrated) == {"c", "d"}
        assert card.memory.taken_bytes <= before + (1 << 16)  # and no mask is kept


@pytest.mark.expects_errors
def test_out_of_memory_on_a_card_is_reported_and_the_engine_keeps_working(folders: Folders) -> None:
    with fake_cuda() as card:
        engine = EngineOnCard()
        load(engine, folders["grouped"], "cuda")
        total, card.memory.total_bytes = card.memory.total_bytes, card.memory.taken_bytes
        *_, failed = engine.ask(Generate("one", "1", user_says("hello"), PLAIN))
        assert isinstance(failed, Failed)
        assert failed.kind == "OutOfMemoryError"
        card.memory.total_bytes = total
        (*_, done) = engine.ask(Generate("one", "2", user_says("hello"), PLAIN))
        assert isinstance(done, GenerationDone)


def test_unloading_a_model_frees_its_memory(folders: Folders) -> None:
    with fake_cuda(graphs_pay=True) as card:
        engine = EngineOnCard()
        load(engine, folders["grouped"], "cuda")
        compare(engine)
        assert card.memory.taken_bytes > 0
        (freed,) = engine.ask(Unload("", "u"))
        assert isinstance(freed, Unloaded)
        assert card.memory.taken_bytes == 0
