"""Background coroutines: kept, cancelled, and their failures reported."""

import asyncio
import gc
import sys

import pytest
from PySide6.QtCore import QObject
from shiboken6 import delete

from app.state.tasks import Tasks


def test_coroutines_are_referenced_until_they_end() -> None:
    async def run() -> None:
        tasks, done = Tasks(), list[str]()

        async def work(name: str) -> None:
            await asyncio.sleep(0)
            gc.collect(1)
            await asyncio.sleep(0)
            done.append(name)
            if name == "first":
                tasks.start(work("third"))

        tasks.start(work("first"), lambda: done.append(f"ended, {tasks.is_running}"))
        tasks.start(work("second"))
        assert tasks.is_running
        await tasks.wait()
        assert done[:2] == ["first", "second"]
        assert sorted(done[2:]) == ["ended, True", "third"]
        assert not tasks.is_running

    asyncio.run(run())


def test_cancel_ends_all_coroutines_and_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[BaseException] = []
    monkeypatch.setattr(sys, "excepthook", lambda _kind, error, _trace: failures.append(error))

    async def run() -> None:
        tasks, ended = Tasks(), list[int]()
        for number in range(3):
            tasks.start(asyncio.sleep(60, None), lambda number=number: ended.append(number))  # type: ignore[misc]
        tasks.cancel()
        await asyncio.wait_for(tasks.wait(), 50)
        await asyncio.sleep(0)
        assert sorted(ended) == [0, 1, 2]

    asyncio.run(run())
    assert failures == []


def test_coroutines_of_a_deleted_owner_are_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[BaseException] = []
    monkeypatch.setattr(sys, "excepthook", lambda _kind, error, _trace: failures.append(error))

    async def run() -> None:
        owner = QObject()
        tasks, done = Tasks(owner), list[str]()

        async def work() -> None:
            await asyncio.sleep(0)
            done.append(owner.objectName())  # fails once it is deleted

        tasks.start(work())
        delete(owner)
        await asyncio.wait_for(tasks.wait(), 50)
        assert done == []

    asyncio.run(run())
    assert failures == []


def test_a_failure_is_reported_at_once_and_stops_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failures: list[BaseException] = []
    monkeypatch.setattr(sys, "excepthook", lambda _kind, error, _trace: failures.append(error))

    async def run() -> None:
        tasks, done = Tasks(), list[bool]()

        async def fail() -> None:
            raise ValueError("no")

        async def work() -> None:
            await asyncio.sleep(0.01)
            done.append(True)

        tasks.start(fail())
        tasks.start(work())
        await tasks.wait()
        assert done == [True]

    asyncio.run(run())
    assert [str(error) for error in failures] == ["no"]


def test_coroutines_of_a_closed_loop_are_left_alone() -> None:
    """Qt deletes the windows after the loop has been closed."""
    tasks, loop = Tasks(), asyncio.new_event_loop()

    async def run() -> None:
        tasks.start(asyncio.sleep(60))
        await asyncio.sleep(0)

    loop.run_until_complete(run())
    loop.close()
    tasks.cancel()
    assert tasks.is_running
