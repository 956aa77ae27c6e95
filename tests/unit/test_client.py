"""The engine for programs: requests by id, turns of a conversation, cancel by leaving."""

import asyncio
from collections.abc import Coroutine
from contextlib import aclosing
from pathlib import Path

import pytest

from medusa_core.client import Client
from medusa_core.errors import CheckpointError, RequestError
from medusa_core.messages import (
    Cancel,
    Event,
    Generate,
    GenerateSettings,
    GenerationDone,
    LoadModel,
    LoadOptions,
    Progress,
    StepDone,
    StepTrace,
    StopReason,
    Verify,
)
from tests.support.engine.laws import user_says

SETTINGS = GenerateSettings(max_new_tokens=40, banned=(1,))
Folders = dict[str, tuple[Path, Path]]


def run(work: Coroutine[None, None, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 240))


def load_command(folders: Folders) -> LoadModel:
    return LoadModel("", "load", *folders["grouped"], LoadOptions(dtype="float64"), num_threads=1)


async def answered(
    client: Client, session: str, words: str, settings: GenerateSettings = SETTINGS
) -> GenerationDone:
    async with aclosing(client.answer(session, user_says(words), settings)) as events:
        async for event in events:
            if isinstance(event, GenerationDone):
                return event
    raise AssertionError("it ended without an end")


def test_a_model_is_loaded_and_answers(folders: Folders) -> None:
    async def work() -> None:
        reported: list[Progress] = []
        async with Client() as client:
            loaded = await client.load(load_command(folders), reported.append)
            assert loaded.name == "grouped"
            assert reported
            answer = client.answer("chat", user_says("one"), SETTINGS, records=True)
            async with aclosing(answer) as events:
                kinds = [type(event) async for event in events]
            assert {StepDone, StepTrace, GenerationDone} <= set(kinds)
            assert kinds[-1] is GenerationDone
            verified = await client.verify(Verify("chat", "verify", text="one two"))
            assert verified.tokens
            assert (await client.calibrate()).step_s
            assert (await client.unload()).freed_bytes > 0

    run(work())


def test_concurrent_answers_equal_single_ones(
    folders: Folders,
) -> None:
    async def work() -> None:
        async with Client() as client:
            await client.load(load_command(folders))
            words = ("one", "two", "three")
            alone = [await answered(client, f"alone {word}", word) for word in words]
            order: list[str] = []
            client.listen(lambda event: order.append(event.session_id))
            together = await asyncio.gather(*(answered(client, word, word) for word in words))
            assert [d.token_ids for d in together] == [d.token_ids for d in alone]
            turns = [name for place, name in enumerate(order) if order[place - 1 : place] != [name]]
            assert len(turns) > 10, "they took turns"

    run(work())


def test_a_second_question_waits_for_the_answer_to_the_first(folders: Folders) -> None:
    async def work() -> None:
        async with Client() as client:
            await client.load(load_command(folders))
            ended: list[str] = []

            async def ask(words: str) -> None:
                await answered(client, "chat", words)
                ended.append(words)

            await asyncio.gather(ask("one"), ask("two"), ask("three"))
            assert ended == ["one", "two", "three"]
            await client.close_session("chat")

    run(work())


def test_a_conversation_closed_while_questions_wait_still_answers_in_turn(
    folders: Folders,
) -> None:
    async def work() -> None:
        async with Client() as client:
            await client.load(load_command(folders))
            closed = asyncio.Event()

            async def close() -> None:
                await client.close_session("chat")
                closed.set()

            async def ask_after_closing() -> None:
                await closed.wait()
                await answered(client, "chat", "three")

            await asyncio.gather(
                answered(client, "chat", "one"),
                close(),
                answered(client, "chat", "two"),
                ask_after_closing(),
            )

    run(work())


def test_leaving_an_answers_iterator_cancels_it(folders: Folders) -> None:
    async def work() -> None:
        endless = GenerateSettings(max_new_tokens=400, banned=(1,), drafter="none")
        async with Client() as client:
            await client.load(load_command(folders))
            ends: list[GenerationDone] = []
            has_ended = asyncio.Event()

            def note(event: Event) -> None:
                if isinstance(event, GenerationDone):
                    ends.append(event)
                    has_ended.set()

            client.listen(note)
            async with aclosing(client.answer("chat", user_says("one"), endless)) as events:
                async for event in events:
                    if isinstance(event, StepDone) and event.step == 3:
                        break
            await has_ended.wait()
            assert ends[0].stop_reason is StopReason.CANCELLED
            assert len(ends[0].token_ids) < 400
            # The conversation is free for the next question.
            assert (await answered(client, "chat", "two")).stop_reason is not StopReason.CANCELLED

    run(work())


def test_cancelling_a_coroutine_cancels_its_request(folders: Folders) -> None:
    async def work() -> None:
        endless = GenerateSettings(max_new_tokens=400, banned=(1,), drafter="none")
        async with Client() as client:
            await client.load(load_command(folders))
            started, ended = asyncio.Event(), asyncio.Event()

            def note(event: Event) -> None:
                started.set() if isinstance(event, StepDone) else None
                if isinstance(event, GenerationDone):
                    assert event.stop_reason is StopReason.CANCELLED
                    ended.set()

            client.listen(note)
            source_costs = asyncio.create_task(answered(client, "chat", "one", endless))
            await started.wait()
            source_costs.cancel()
            with pytest.raises(asyncio.CancelledError):
                await source_costs
            await ended.wait()

    run(work())


@pytest.mark.expects_errors
def test_failures_are_raised_as_their_own_error_class(folders: Folders, tmp_path: Path) -> None:
    async def work() -> None:
        async with Client() as client:
            with pytest.raises(RequestError, match="No model is loaded"):
                await answered(client, "chat", "one")
            with pytest.raises(CheckpointError) as missing:
                await client.load(LoadModel("", "none", tmp_path))
            assert missing.value.hint
            await client.load(load_command(folders))
            with pytest.raises(RequestError, match="makes no sense"):
                await answered(client, "chat", "one", GenerateSettings(max_new_tokens=-1))
            with pytest.raises(CheckpointError):  # and what was there before answers again
                await client.load(LoadModel("", "none", tmp_path))
            assert (await answered(client, "chat", "one")).token_ids

    run(work())


def test_listeners_get_all_events_until_they_are_removed(folders: Folders) -> None:
    async def work() -> None:
        async with Client() as client:
            received: tuple[list[Event], list[Event]] = ([], [])
            client.listen(received[0].append)
            stop = client.listen(received[1].append)
            await client.load(load_command(folders))
            assert received[0] == received[1] != []
            stop()
            stop()
            await answered(client, "chat", "one")
            assert len(received[0]) > len(received[1])

    run(work())


@pytest.mark.expects_errors
def test_a_listener_that_raises_affects_no_other(folders: Folders) -> None:
    def fail(_: Event) -> None:
        raise MemoryError

    async def work() -> None:
        async with Client() as client:
            received: list[Event] = []
            client.listen(fail)
            client.listen(received.append)
            loaded = await client.load(load_command(folders))
            done = await answered(client, "chat", "one")
            assert [event for event in received if event in (loaded, done)] == [loaded, done]

    run(work())


def test_commands_reach_the_engine_unchanged() -> None:
    class Silent:
        """An engine that never answers."""

        def __init__(self) -> None:
            self.commands: list[object] = []
            self.is_alive = True

        def submit(self, command: object) -> None:
            self.commands.append(command)

        def close(self, timeout_s: float = 10.0) -> None:
            """Do nothing."""

    async def work() -> None:
        engine = Silent()
        async with Client(lambda on_event: engine) as client:
            waiting = [asyncio.create_task(answered(client, "chat", word)) for word in "ab"]
            await asyncio.sleep(0)
            assert [type(command) for command in engine.commands] == [Generate]
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            # The second one was never handed over.
            assert [type(command) for command in engine.commands] == [Generate, Cancel]

    run(work())
