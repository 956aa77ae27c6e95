"""Texts that background threads embed by the engine."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.engine.bridge import EngineBridge
from app.engine.embedding import EngineEmbedding
from app.state.documents import DocumentsState
from medusa_core.api import Collections, PassageRoom, Retrieved
from medusa_core.errors import Cancelled, MedusaError, ModelError
from medusa_core.messages import (
    Cancel,
    Command,
    Embed,
    Embedded,
    Event,
    Failed,
    Purpose,
    UnloadEmbedder,
)
from tests.support.window.library_fixtures import Run, run

__all__ = ["run"]


class EmbeddingEngine:
    """An engine that embeds texts by their length, fails, or is silent."""

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.problem = ""
        self.is_silent = False
        self.is_alive = True

    def start(self, on_event: Callable[[Event], None]) -> "EmbeddingEngine":
        self._tell = on_event
        return self

    def submit(self, command: Command) -> None:
        self.commands.append(command)
        if not isinstance(command, Embed) or self.is_silent:
            return
        if self.problem:
            self._tell(Failed(*command.ids, "ModelError", self.problem, "Choose another one."))
            return
        vectors = np.array([[len(text), 1] for text in command.texts], np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        num_tokens = (1,) * len(command.texts)
        self._tell(Embedded(*command.ids, vectors.tobytes(), 2, num_tokens))

    def close(self, timeout_s: float = 10.0) -> None:
        self.is_alive = False


@pytest.fixture
def engine() -> EmbeddingEngine:
    return EmbeddingEngine()


@pytest.fixture
def bridge(qapp: object, engine: EmbeddingEngine) -> EngineBridge:
    made = EngineBridge(engine.start)
    made.start()
    return made


def test_a_thread_gets_the_vectors_of_its_texts(
    run: Run, bridge: EngineBridge, engine: EmbeddingEngine
) -> None:
    async def work() -> None:
        embed = EngineEmbedding(bridge, Path("/models/mini"), lambda: False)
        assert embed.name == "mini"
        vectors = await asyncio.to_thread(embed, ["abc", ""], False)
        assert vectors.shape == (2, 2)
        assert np.allclose(vectors[1], [0, 1])
        await asyncio.to_thread(embed, ["q"], True)
        sent = [command for command in engine.commands if isinstance(command, Embed)]
        assert [one.purpose for one in sent] == [Purpose.DOCUMENT, Purpose.QUERY]
        assert sent[0].model_dir == Path("/models/mini")
        assert all(one.truncates for one in sent)  # chunks may exceed a model's context
        engine.problem = "It is no embedding model."
        with pytest.raises(ModelError, match="no embedding model"):
            await asyncio.to_thread(embed, ["q"], True)

    run(work)
    bridge.close()


def test_a_stop_or_a_late_query_ends_the_wait_and_the_request(
    run: Run, bridge: EngineBridge, engine: EmbeddingEngine
) -> None:
    engine.is_silent = True

    async def work() -> None:
        stop = threading.Event()
        embed = EngineEmbedding(bridge, Path("/models/mini"), stop.is_set, most_query_s=0.2)
        with pytest.raises(ModelError, match="takes too long"):
            await asyncio.to_thread(embed, ["q"], True)
        waiting = asyncio.ensure_future(asyncio.to_thread(embed, ["text"], False))
        await asyncio.sleep(0.3)  # longer than a query may take
        assert not waiting.done()
        stop.set()
        with pytest.raises(Cancelled):
            await waiting
        while sum(isinstance(command, Cancel) for command in engine.commands) < 2:
            await asyncio.sleep(0.01)

    run(work)
    bridge.close()


def test_documents_are_embedded_and_searched_without_a_model_that_fails(
    run: Run, bridge: EngineBridge, engine: EmbeddingEngine, tmp_path: Path
) -> None:
    file = tmp_path / "birds.txt"
    file.write_text("Herons wait.")
    tight = PassageRoom(0, 500)

    async def work() -> None:
        state = DocumentsState(tmp_path / "index", bridge)
        state.embedding_model = Path("/models/mini")
        made = await state.create("Birds", [file])
        await state.tasks.wait()
        assert state.collections[0].embedding_model == "mini"
        assert state.collections[0].num_embedded == 1
        found: list[Retrieved | MedusaError] = []
        state.retrieve([made.id], ["What do herons do?"], (), tight, 4, found.append)
        await state.tasks.wait()
        engine.problem = "It is gone."
        state.retrieve([made.id], ["What do herons do?"], (), tight, 1, found.append)
        await state.tasks.wait()
        with_vectors, without = found
        assert isinstance(with_vectors, Retrieved)
        assert isinstance(without, Retrieved)
        assert [(one.number, one.vector_rank) for one in with_vectors.passages] == [(4, 1)]
        assert [(one.bm25_rank, one.vector_rank) for one in without.passages] == [(1, None)]
        assert "It is gone." in str(without.problem)
        state.embedding_model = None
        assert isinstance(engine.commands[-1], UnloadEmbedder)
        state.close()

    run(work)
    bridge.close()


def test_a_dropped_retrieval_tells_nobody(run: Run, bridge: EngineBridge, tmp_path: Path) -> None:
    async def work() -> None:
        state = DocumentsState(tmp_path / "index", bridge)
        told: list[object] = []
        pending = state.retrieve(["x"], ["Why?"], (), PassageRoom(9, 9), 1, told.append)
        assert not pending.is_done
        pending.drop()
        cancelled = state.retrieve(["x"], ["Why?"], (), PassageRoom(9, 9), 1, told.append)
        cancelled.cancel()
        cancelled.cancel()
        await state.tasks.wait()
        assert [type(one) for one in told] == [Cancelled]
        state.close()
        with closing(Collections(tmp_path / "index")) as collections:
            assert collections.all() == ()

    run(work)
    bridge.close()


def test_files_that_have_changed_are_read_again_before_a_prompt(
    run: Run, bridge: EngineBridge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.state.documents._RESCAN_S", 0.0)
    monkeypatch.setattr("app.state.documents._MOST_RESCAN_S", 30.0)
    file = tmp_path / "birds.txt"
    file.write_text("Herons wait.")

    async def work() -> None:
        state = DocumentsState(tmp_path / "index", bridge)
        made = await state.create("Birds", [file])
        await state.tasks.wait()
        file.write_text("Storks clap, and herons wait.")
        found: list[Retrieved | MedusaError] = []
        state.retrieve([made.id], ["Who claps?"], (), PassageRoom(100, 100), 1, found.append)
        await state.tasks.wait()
        file.unlink()  # or its drive isn't mounted
        state.retrieve([made.id], ["Who claps?"], (), PassageRoom(100, 100), 1, found.append)
        await state.tasks.wait()
        for one in found:
            assert isinstance(one, Retrieved)
            assert [part.text for part in one.passages] == ["Storks clap, and herons wait."]
        state.close()

    run(work)
    bridge.close()


def test_a_collection_that_is_removed_while_it_is_read_is_no_error(
    run: Run, bridge: EngineBridge, tmp_path: Path
) -> None:
    for number in range(8):
        (tmp_path / f"{number}.txt").write_text(f"heron {number}")

    async def work() -> None:
        state = DocumentsState(tmp_path / "index", bridge)
        told: list[object] = []
        state.failed.connect(lambda *error: told.append(error))
        made = await state.create("Birds")
        begun = asyncio.Event()
        state.progressed.connect(lambda *_: begun.set())
        await state.add(made.id, [tmp_path / f"{number}.txt" for number in range(8)])
        await begun.wait()
        await state.remove(made.id)
        await state.tasks.wait()
        assert told == []
        assert state.collections == ()
        state.close()

    run(work)
    bridge.close()


def test_files_that_are_added_while_others_are_read_are_read_after_them(
    run: Run, bridge: EngineBridge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(f"heron {name}")
    has_read, may_end, update = threading.Event(), threading.Event(), Collections.update

    def slow(*arguments: Any, **named: bool) -> None:
        update(*arguments, **named)
        has_read.set()
        may_end.wait(60)

    monkeypatch.setattr(Collections, "update", slow)

    async def work() -> None:
        state = DocumentsState(tmp_path / "index", bridge)
        made = await state.create("Birds", [tmp_path / "a.txt"])
        await asyncio.to_thread(has_read.wait, 60)
        await state.add(made.id, [tmp_path / "b.txt"])
        may_end.set()
        await state.tasks.wait()
        assert [one.name for one in await state.documents(made.id)] == ["a.txt", "b.txt"]
        state.close()

    run(work)
    bridge.close()


def test_an_unexpected_error_gives_the_prompt_back(
    run: Run, bridge: EngineBridge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_collections: Collections, _ids: object) -> None:
        raise ValueError("a fault")

    monkeypatch.setattr(Collections, "existing", fail)
    reported: list[object] = []
    monkeypatch.setattr("sys.excepthook", lambda *error: reported.append(error[1]))

    async def work() -> None:
        state = DocumentsState(tmp_path / "index", bridge)
        told: list[object] = []
        state.retrieve(["x"], ["Why?"], (), PassageRoom(9, 9), 1, told.append)
        await state.tasks.wait()
        assert [type(one) for one in told] == [Cancelled]
        assert [str(one) for one in reported] == ["a fault"]
        state.close()

    run(work)
    bridge.close()
