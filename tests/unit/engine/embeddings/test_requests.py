"""Embeddings beside answers: turns, order, cancelling, errors, and the model's memory."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from medusa_core.engine.embeddings.requests import Embedding
from medusa_core.engine.model_slot import ModelSlot
from medusa_core.messages import (
    Cancel,
    Embed,
    Embedded,
    EmbedderUnloaded,
    Event,
    Failed,
    Generate,
    GenerateSettings,
    GenerationDone,
    LoadModel,
    LoadOptions,
    ModelLoaded,
    Purpose,
    StepDone,
    Unload,
    Unloaded,
    UnloadEmbedder,
)
from tests.support.engine.harness import EngineHarness
from tests.support.engine.laws import user_says
from tests.support.models.embedding_files import write_qwen3_embedding

SETTINGS = GenerateSettings(drafter="medusa", rule="sample", seed=3, max_new_tokens=200)
DOCUMENT = "thirteen hands heard it and ran on the sand " * 8  # several passes
Folders = dict[str, tuple[Path, Path]]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_qwen3_embedding(tmp_path_factory.mktemp("qwen3") / "qwen3-embedding")


@pytest.fixture(scope="module")
def harness(folders: Folders) -> Iterator[EngineHarness]:
    found = EngineHarness()
    assert isinstance(load_chat(found, folders), ModelLoaded)
    yield found
    found.close()


def load_chat(harness: EngineHarness, folders: Folders, reserved: int = 0) -> ModelLoaded | Failed:
    options = LoadOptions("float64", "cpu", reserved_bytes=reserved)
    return harness.load(LoadModel("", harness.name_request(), *folders["grouped"], options))


def submit(harness: EngineHarness, model: Path, *texts: str, purpose: Purpose = Purpose.ANY) -> str:
    request_id = harness.name_request()
    harness.submit(Embed("e", request_id, model, texts, purpose=purpose, device="cpu"))
    return request_id


def vectors(harness: EngineHarness, request_id: str) -> np.ndarray:
    event = harness.wait(request_id, Embedded, Failed)
    assert isinstance(event, Embedded), event
    return np.frombuffer(event.vectors, np.float32).reshape(-1, event.width)


def test_an_answer_goes_on_while_documents_are_embedded(
    harness: EngineHarness, model: Path
) -> None:
    alone = harness.answer("words", SETTINGS, "alone")
    expected = vectors(harness, submit(harness, model, DOCUMENT, "the cat"))
    assert np.abs(np.linalg.norm(expected, axis=1) - 1).max() < 1e-6
    answer = Generate("beside", harness.name_request(), user_says("words"), SETTINGS)
    harness.submit(answer)
    harness.wait(answer.request_id, StepDone)
    request_id = submit(harness, model, DOCUMENT, "the cat")
    assert (vectors(harness, request_id) == expected).all()
    done = harness.wait(answer.request_id, GenerationDone, Failed)
    assert isinstance(alone, GenerationDone)
    assert isinstance(done, GenerationDone)
    assert done.text == alone.text
    order = [event for event in harness.events if event.request_id in (*answer.ids, request_id)]
    kinds = [type(event) for event in order]
    assert Embedded in kinds[: kinds.index(GenerationDone)]  # neither waited for the other
    assert kinds[: kinds.index(Embedded)].count(StepDone) > 5


def test_embedding_takes_its_share_of_the_answers_time(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[Event] = []
    embedding = Embedding(
        ModelSlot(events.append, lambda _: False, lambda: False),
        events.append,
        lambda command, error: None,
    )
    embedding.handle(Embed("e", "r", Path("m"), ("text",)))
    now, rows = [0.0], list[int]()

    def step(max_rows: int = 0) -> None:
        rows.append(max_rows)
        now[0] += 0.1

    monkeypatch.setattr(embedding, "step", step)
    monkeypatch.setattr("medusa_core.engine.embeddings.requests.time.perf_counter", lambda: now[0])
    for _ in range(100):
        embedding.step_between(0.05)
    assert 0.2 < len(rows) * 0.1 / (100 * 0.05) < 0.3  # a quarter
    assert set(rows) == {16}


def test_a_model_whose_request_was_cancelled_while_it_loaded_is_freed(model: Path) -> None:
    embedding = Embedding(
        ModelSlot(lambda event: None, lambda _: False, lambda: False),
        lambda event: None,
        lambda command, error: None,
    )
    request = Embed("e", "r", model, ("the cat",), device="cpu")
    embedding.handle(request)
    embedding.step(1)
    loading = embedding._loading
    assert loading is not None
    loading.join()
    embedding.cancel(Cancel("e", "r"))
    assert not embedding.has_work
    assert embedding.unload() > 0


def test_a_query_overtakes_documents(harness: EngineHarness, model: Path) -> None:
    documents = submit(harness, model, *[DOCUMENT] * 12)
    query = submit(harness, model, "the cat", purpose=Purpose.QUERY)
    found = vectors(harness, query)
    assert not harness.of(documents, Embedded)
    assert len(vectors(harness, documents)) == 12
    assert (
        found == vectors(harness, submit(harness, model, "the cat", purpose=Purpose.QUERY))
    ).all()


def test_requests_take_turns(harness: EngineHarness, model: Path) -> None:
    documents = submit(harness, model, *[DOCUMENT] * 12)
    other = submit(harness, model, "the dog", "the cat")
    vectors(harness, other)
    assert not harness.of(documents, Embedded)
    vectors(harness, documents)


def test_a_cancelled_request_ends_and_the_next_one_is_right(
    harness: EngineHarness, model: Path
) -> None:
    expected = vectors(harness, submit(harness, model, DOCUMENT))
    documents = submit(harness, model, *[DOCUMENT] * 50)
    harness.submit(Cancel("e", documents))
    again = submit(harness, model, DOCUMENT)
    failed = harness.wait(documents, Failed, Embedded)
    assert isinstance(failed, Failed)
    assert failed.kind == "Cancelled"
    assert (vectors(harness, again) == expected).all()


@pytest.mark.expects_errors
def test_errors_end_their_request_alone(harness: EngineHarness, model: Path) -> None:
    requests = {
        "RequestError": submit(harness, model, "the cat", "a b " * 999),
        "CheckpointError": submit(harness, model.parent / "missing", "the cat"),
    }
    beside = submit(harness, model, "the cat")
    for kind, request_id in requests.items():
        failed = harness.wait(request_id, Failed, Embedded)
        assert isinstance(failed, Failed)
        assert failed.kind == kind
    assert len(vectors(harness, beside)) == 1
    assert isinstance(harness.answer("words", SETTINGS, "after"), GenerationDone)


def test_another_model_replaces_the_first(
    harness: EngineHarness, model: Path, tmp_path: Path
) -> None:
    other = write_qwen3_embedding(tmp_path / "other", "mean_tokens")
    requests = [submit(harness, path, DOCUMENT, DOCUMENT) for path in (model, other) * 2]
    first, second, third, fourth = (vectors(harness, request_id) for request_id in requests)
    assert (first == third).all()
    assert (second == fourth).all()
    assert np.abs(first - second).max() > 0.01


@pytest.mark.expects_errors
def test_a_cancelled_load_fails_no_later_request(harness: EngineHarness, model: Path) -> None:
    missing = submit(harness, model.parent / "missing", "the cat")
    harness.submit(Cancel("e", missing))
    assert len(vectors(harness, submit(harness, model, "the cat"))) == 1
    failed = harness.wait(missing, Failed, Embedded)
    assert isinstance(failed, Failed)


def test_the_model_is_unloaded_on_request_and_before_another_chat_model(
    harness: EngineHarness, model: Path, folders: Folders
) -> None:
    def unload() -> int:
        request_id = harness.name_request()
        harness.submit(UnloadEmbedder("e", request_id))
        event = harness.wait(request_id, EmbedderUnloaded)
        assert isinstance(event, EmbedderUnloaded)
        return event.freed_bytes

    before = vectors(harness, submit(harness, model, "the cat"))
    assert unload() > 0
    assert unload() == 0
    assert (vectors(harness, submit(harness, model, "the cat")) == before).all()
    request_id = harness.name_request()
    harness.submit(Unload("", request_id))
    harness.wait(request_id, Unloaded)
    assert unload() == 0
    reserved = 64 << 20
    loaded = load_chat(harness, folders, reserved)
    assert isinstance(loaded, ModelLoaded)
    assert loaded.plan.reserved_bytes == reserved
    assert unload() == 0
    assert (vectors(harness, submit(harness, model, "the cat")) == before).all()


def test_a_chat_model_leaves_room_for_it(harness: EngineHarness, folders: Folders) -> None:
    failed = load_chat(harness, folders, 1 << 50)
    assert isinstance(failed, Failed)
    assert failed.kind == "PlanError"
    assert "kept for another model" in failed.message
