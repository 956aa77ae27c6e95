"""Whose turn it is, which session a request gets, and several answers at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from medusa_core.api import EventSink
from medusa_core.client import Client
from medusa_core.messages import (
    Calibrate,
    Calibrated,
    ChatMessage,
    Command,
    EngineLost,
    Failed,
    GenerateSettings,
    LoadModel,
    ModelLoaded,
    Role,
)
from medusa_core.server.answer_queue import AnswerQueue
from medusa_core.server.answering import Answering
from medusa_core.server.api_error import ApiError
from medusa_core.server.chat import ChatRequest
from medusa_core.server.limits import Limits
from medusa_core.server.reply import merge
from medusa_core.server.served_models import ServedModel, ServedModels
from medusa_core.server.session_pool import SessionPool
from tests.support.messages import EXAMPLES

LOADED = next(one for one in EXAMPLES if isinstance(one, ModelLoaded))
ONE, TWO, BAD = (ServedModel(name, Path(name)) for name in ("one", "two", "bad"))


class LoadingEngine:
    """Engine that loads every model except `bad` at once and records it."""

    is_alive = True

    def __init__(self, send: EventSink) -> None:
        self._send = send
        self.loaded: list[str] = []

    def submit(self, command: Command) -> None:
        ids = (command.session_id, command.request_id)
        if isinstance(command, LoadModel) and command.model_dir.name == "bad":
            self._send(Failed(*ids, "PlanError", "It doesn't fit.", "Take a smaller one."))
        elif isinstance(command, LoadModel):
            self.loaded.append(command.model_dir.name)
            name = command.model_dir.name
            self._send(replace(LOADED, session_id=ids[0], request_id=ids[1], name=name))
        elif isinstance(command, Calibrate):
            self._send(Calibrated(*ids, (), 0.0))

    def fail_device(self) -> None:
        """Report the loss of the engine's device."""
        self._send(EngineLost("server", "none", "EngineError", "The card is gone.", ""))

    def close(self, timeout_s: float = 10.0) -> None:
        self.is_alive = False


class ThreeModels:
    """A source of models."""

    def models(self) -> tuple[ServedModel, ...]:
        return ONE, TWO, BAD

    def load_command(self, model: ServedModel) -> LoadModel:
        assert model.path is not None
        return LoadModel("server", f"load {model.model_id}", model.path)


class Stage:
    """A queue over a scripted engine."""

    def __init__(
        self, client: Client, models: ServedModels, engine: LoadingEngine, queue: AnswerQueue
    ) -> None:
        self.client, self.models, self.engine, self.queue = client, models, engine, queue
        self.begun: list[str] = []

    async def answer(self, name: str, model: ServedModel, until: asyncio.Event) -> None:
        async with self.queue.turn(model):
            self.begun.append(name)
            await until.wait()

    async def run_until_idle(self) -> None:
        """Run the event loop until nothing happens any more."""
        for _ in range(20):
            await asyncio.sleep(0.001)


def run(test: Callable[[Stage], Awaitable[None]], running: int = 2, waiting: int = 8) -> None:
    async def play() -> None:
        engines: list[LoadingEngine] = []

        def start(send: EventSink) -> LoadingEngine:
            engines.append(LoadingEngine(send))
            return engines[-1]

        async with Client(start) as client:
            models = ServedModels(client, ThreeModels())
            await models.load(ONE)
            queue = AnswerQueue(models, running, waiting)
            await test(Stage(client, models, engines[0], queue))
            await queue.close()

    asyncio.run(play())


def test_a_limited_number_of_answers_runs_and_others_follow_in_order() -> None:
    async def play(stage: Stage) -> None:
        ends = [asyncio.Event() for _ in range(4)]
        tasks = [asyncio.create_task(stage.answer(str(n), ONE, ends[n])) for n in range(4)]
        await stage.run_until_idle()
        assert stage.begun == ["0", "1"]
        assert (stage.queue.num_running, stage.queue.num_waiting) == (2, 2)
        ends[1].set()
        await stage.run_until_idle()
        assert stage.begun == ["0", "1", "2"]
        for end in ends:
            end.set()
        await asyncio.gather(*tasks)
        assert stage.queue.num_running == 0

    run(play)


def test_a_full_queue_refuses_one_more() -> None:
    async def play(stage: Stage) -> None:
        end = asyncio.Event()
        tasks = [asyncio.create_task(stage.answer(str(n), ONE, end)) for n in range(3)]
        await stage.run_until_idle()
        with pytest.raises(ApiError) as refused:
            await stage.answer("too much", ONE, end)
        assert refused.value.status == 429
        assert refused.value.retry_after_s > 0
        end.set()
        await asyncio.gather(*tasks)
        await stage.answer("later", ONE, end)

    run(play, running=2, waiting=1)


def test_leaving_the_queue_leaves_no_gap() -> None:
    async def play(stage: Stage) -> None:
        end = asyncio.Event()
        first = asyncio.create_task(stage.answer("first", ONE, end))
        await stage.run_until_idle()
        leaving = asyncio.create_task(stage.answer("leaving", ONE, end))
        last = asyncio.create_task(stage.answer("last", ONE, end))
        await stage.run_until_idle()
        leaving.cancel()
        await stage.run_until_idle()
        assert stage.queue.num_waiting == 1
        first.cancel()
        await stage.run_until_idle()
        assert stage.begun == ["first", "last"]
        end.set()
        await last
        assert stage.queue.num_running == 0

    run(play, running=1)


def test_leaving_the_queue_when_its_turn_comes_leaves_no_gap() -> None:
    async def play(stage: Stage) -> None:
        end = asyncio.Event()

        async def answer_first() -> None:
            await stage.answer("first", ONE, end)
            second.cancel()  # it was granted its turn in this moment, and hasn't gone on yet

        first = asyncio.create_task(answer_first())
        await stage.run_until_idle()
        second = asyncio.create_task(stage.answer("second", ONE, end))
        await stage.run_until_idle()
        end.set()
        await first
        await asyncio.gather(second, return_exceptions=True)
        assert stage.begun == ["first"]
        assert stage.queue.num_running == 0

    run(play, running=1)


def test_a_request_for_another_model_waits_for_the_last_answer_and_later_ones_wait_for_it() -> None:
    async def play(stage: Stage) -> None:
        ends = {name: asyncio.Event() for name in ("a", "b", "c")}
        a = asyncio.create_task(stage.answer("a", ONE, ends["a"]))
        await stage.run_until_idle()
        b = asyncio.create_task(stage.answer("b", TWO, ends["b"]))
        c = asyncio.create_task(stage.answer("c", ONE, ends["c"]))
        await stage.run_until_idle()
        assert stage.begun == ["a"]
        assert stage.engine.loaded == ["one"]
        ends["a"].set()
        await stage.run_until_idle()
        assert stage.begun == ["a", "b"]
        assert stage.engine.loaded == ["one", "two"]
        ends["b"].set()
        ends["c"].set()
        await asyncio.gather(a, b, c)
        assert stage.engine.loaded == ["one", "two", "one"]

    run(play)


def test_a_model_that_doesnt_fit_is_reported_and_other_requests_continue() -> None:
    async def play(stage: Stage) -> None:
        end = asyncio.Event()
        end.set()
        bad = asyncio.create_task(stage.answer("bad", BAD, end))
        good = asyncio.create_task(stage.answer("good", ONE, end))
        with pytest.raises(ApiError, match="doesn't fit") as refused:
            await bad
        assert refused.value.status == 503
        await good
        assert stage.begun == ["good"]

    run(play)


def test_a_lost_engine_answers_no_requests() -> None:
    async def play(stage: Stage) -> None:
        answering = Answering(stage.client, stage.models, stage.queue, SessionPool(4), Limits())
        stage.engine.fail_device()
        await stage.run_until_idle()
        assert stage.models.is_lost
        with pytest.raises(ApiError) as refused:
            await anext(answering.answer(ChatRequest("", say("a"), GenerateSettings())))
        assert refused.value.status == 503

    run(play)


def say(*texts: str) -> tuple[ChatMessage, ...]:
    roles = (Role.USER, Role.ASSISTANT)
    return tuple(ChatMessage(roles[place % 2], text) for place, text in enumerate(texts))


def test_a_continued_conversation_gets_its_session_and_tokens_again() -> None:
    pool = SessionPool(4)
    with pool.lease(say("a"), ()) as first:
        first.update((*say("a"), ChatMessage(Role.ASSISTANT, "b", (7, 8))))
    with pool.lease(say("x"), ()) as other:
        assert other.session_id != first.session_id
        other.update(say("x", "y"))
    with pool.lease(say("a", "b", "c"), ()) as again:
        assert again.session_id == first.session_id
        assert [message.token_ids for message in again.messages] == [(), (7, 8), ()]
    with pool.lease(say("a", "changed", "c"), ()) as changed:
        assert changed.session_id not in (first.session_id, other.session_id)
        assert all(not message.token_ids for message in changed.messages)


def test_a_repeated_question_gets_its_session() -> None:
    pool = SessionPool(4)
    with pool.lease(say("a"), ()) as first:
        first.update(say("a", "b"))
    with pool.lease(say("a"), ()) as again:
        assert again.session_id == first.session_id
        with pool.lease(say("a"), ()) as beside:  # it is busy
            assert beside.session_id != first.session_id


def test_a_full_pool_reuses_the_session_idle_longest() -> None:
    pool = SessionPool(2)
    sessions = []
    for text in ("a", "b", "c", "d"):
        with pool.lease(say(text), ()) as lease:
            sessions.append(lease.session_id)
            lease.update(say(text, "answer"))
    assert sessions[2:] == sessions[:2]


def test_prompts_of_tokens_are_distinguished_like_messages() -> None:
    pool = SessionPool(4)
    with pool.lease((), (1, 2, 3)) as first:
        first.update((1, 2, 3, 4, 5))
    with pool.lease((), (1, 2, 3, 4, 5, 6)) as longer:
        assert longer.session_id == first.session_id
    with pool.lease((), (1, 9)) as other:
        assert other.session_id != first.session_id


async def counting(name: str, count: int, closed: list[str]) -> AsyncGenerator[str, None]:
    try:
        for number in range(count):
            await asyncio.sleep(0)
            yield f"{name}{number}"
            if name == "bad":
                raise ApiError(503, "It failed.")
    finally:
        closed.append(name)


def test_answers_are_interleaved_and_a_failed_one_ends_all() -> None:
    async def play() -> None:
        closed: list[str] = []
        found = [item async for item in merge([counting(n, 3, closed) for n in "ab"])]
        assert [text for place, text in found if place == 1] == ["b0", "b1", "b2"]
        assert sorted(closed) == ["a", "b"]
        closed.clear()
        failing = merge([counting("bad", 2, closed), counting("long", 10**9, closed)])
        with pytest.raises(ApiError):
            await drained(failing)
        assert sorted(closed) == ["bad", "long"]

    asyncio.run(play())


async def drained(items: AsyncGenerator[object, None]) -> None:
    async with aclosing(items) as found:
        async for _ in found:
            pass
