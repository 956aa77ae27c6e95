"""Which engine answers: that of this computer's models, or that of other machines'."""

from collections.abc import Callable
from dataclasses import replace

from medusa_core.api import demo_model, start_engine
from medusa_core.client import Client
from medusa_core.errors import EndpointUnreachableError
from medusa_core.messages import (
    Cancel,
    Command,
    EndpointModel,
    Event,
    Failed,
    Generate,
    GenerateSettings,
    GenerationDone,
    LoadModel,
    LoadRemote,
    ModelLoaded,
    StepDone,
    Unload,
    Unloaded,
)
from medusa_core.remote.router import EngineRouter
from tests.support.remote.fake_endpoint import FakeEndpoint
from tests.support.remote.fixtures import asks, done_of, load_of, run

LOCAL = LoadModel("model", "local", demo_model()[0])
REMOTE = LoadRemote("model", "remote", EndpointModel("http://nowhere/v1", "small", "the lab"))


class Recorder:
    """Engine that only records its commands."""

    def __init__(self, name: str, loaded: ModelLoaded) -> None:
        self.name, self.loaded = name, loaded
        self.commands: list[Command] = []
        self.is_alive = True
        self.send: Callable[[Event], None]

    def start(self, on_event: Callable[[Event], None]) -> "Recorder":
        self.send = on_event
        return self

    def submit(self, command: Command) -> None:
        self.commands.append(command)

    def close(self, timeout_s: float = 10.0) -> None:
        self.is_alive = False

    def load(self, command: Command) -> ModelLoaded:
        """Report a load as done."""
        loaded = replace(self.loaded, session_id=command.session_id, request_id=command.request_id)
        self.send(loaded)
        return loaded

    def fail(self, command: Command) -> Failed:
        """Report a command as failed."""
        failed = Failed(command.session_id, command.request_id, "EndpointError", "No.", "")
        self.send(failed)
        return failed

    @property
    def seen(self) -> list[str]:
        """Return the types of the recorded commands."""
        return [type(command).__name__ for command in self.commands]


class Routed:
    """A router over two recorders."""

    def __init__(self, loaded: ModelLoaded) -> None:
        self.local, self.remote = Recorder("local", loaded), Recorder("remote", loaded)
        self.events: list[Event] = []
        self.router = EngineRouter(self.events.append, self.local.start, self.remote.start)
        self.submit = self.router.submit


def loaded_by_nobody() -> ModelLoaded:
    """Return a recorder's ModelLoaded event."""
    from medusa_core.messages import NO_PLAN

    return ModelLoaded("", "", "m", 0, 0, 0, 0, "", "", NO_PLAN, "", (), (), (), 0.0)


def test_local_models_concern_only_the_local_engine() -> None:
    routed = Routed(loaded_by_nobody())
    for command in (LOCAL, asks(), Cancel("chat", "ask"), LOCAL, Unload("model", "u")):
        routed.submit(command)
    assert routed.local.seen == ["LoadModel", "Generate", "Cancel", "LoadModel", "Unload"]
    assert routed.remote.commands == []
    assert routed.router.is_alive


def test_a_question_during_a_remote_load_is_answered_by_the_remote_model() -> None:
    routed = Routed(loaded_by_nobody())
    routed.submit(LOCAL)
    routed.local.load(LOCAL)
    routed.submit(REMOTE)
    routed.submit(asks())
    assert routed.remote.seen == ["LoadRemote"]
    routed.remote.load(REMOTE)
    assert routed.remote.seen == ["LoadRemote", "Generate"]
    assert routed.local.seen == ["LoadModel", "Unload"], "its memory is free"
    unload = routed.local.commands[-1]
    routed.local.send(Unloaded(unload.session_id, unload.request_id, 5))
    assert not any(isinstance(event, Unloaded) for event in routed.events), "nobody asked for that"


def test_if_a_remote_load_fails_the_previous_model_answers() -> None:
    routed = Routed(loaded_by_nobody())
    routed.submit(LOCAL)
    before = routed.local.load(LOCAL)
    routed.submit(REMOTE)
    routed.submit(asks())
    failed = routed.remote.fail(REMOTE)
    assert routed.events == [before, failed, before]
    assert routed.local.seen == ["LoadModel", "Generate"]


def test_if_a_local_load_fails_the_remote_model_answers_again() -> None:
    routed = Routed(loaded_by_nobody())
    routed.submit(REMOTE)
    before = routed.remote.load(REMOTE)
    routed.submit(LOCAL)
    routed.submit(asks())
    failed = routed.local.fail(LOCAL)
    assert routed.events == [before, failed, before]
    assert routed.remote.seen == ["LoadRemote", "Generate"]


def test_a_loaded_local_model_ends_the_remote_connection() -> None:
    routed = Routed(loaded_by_nobody())
    routed.submit(REMOTE)
    routed.remote.load(REMOTE)
    routed.submit(LOCAL)
    routed.local.load(LOCAL)
    routed.submit(asks())
    assert routed.remote.seen == ["LoadRemote", "Unload"]
    assert routed.local.seen == ["LoadModel", "Generate"]


def test_loading_and_requests_waiting_for_it_can_be_cancelled() -> None:
    routed = Routed(loaded_by_nobody())
    routed.submit(REMOTE)
    routed.submit(asks())
    routed.submit(Cancel("chat", "ask"))
    routed.submit(Cancel("model", "remote"))
    assert routed.remote.seen == ["LoadRemote", "Cancel"]
    failed = routed.remote.fail(REMOTE)
    assert routed.events[0] == failed
    assert isinstance(routed.events[1], Failed)
    assert routed.events[1].kind == "Cancelled"
    assert "Generate" not in (*routed.local.seen, *routed.remote.seen)


def test_of_two_consecutive_loads_the_last_one_answers() -> None:
    routed = Routed(loaded_by_nobody())
    later = replace(LOCAL, request_id="later")
    for command in (REMOTE, later, asks()):
        routed.submit(command)
    routed.remote.load(REMOTE)
    assert routed.local.seen == ["LoadModel"]
    routed.local.load(later)
    assert routed.local.seen == ["LoadModel", "Generate"]


def test_the_router_is_dead_if_one_engine_is() -> None:
    routed = Routed(loaded_by_nobody())
    routed.submit(REMOTE)
    routed.remote.is_alive = False
    assert not routed.router.is_alive


def test_a_conversation_moves_between_local_and_remote_models(
    endpoint: FakeEndpoint,
) -> None:
    freed: list[Event] = []

    async def work() -> None:
        async with Client(start_engine) as client:
            client.listen(lambda e: freed.append(e) if isinstance(e, Unloaded) else None)
            model, heads = demo_model()
            load = LoadModel("", "load", model, heads, num_threads=1)
            settings = GenerateSettings(drafter="medusa", max_new_tokens=8)
            request = Generate("chat", "ask", asks().messages, settings)
            assert not (await client.load(load)).is_remote
            first = await done_of(client, request)
            assert (await client.load(load_of(endpoint))).is_remote
            second = await done_of(client, request)
            assert second.text == "One two three."
            assert await client.unload()
            await client.load(load)
            third = await done_of(client, request)
            assert third.text == first.text
            assert not third.is_remote
            assert third.num_steps

    run(work())
    assert len(freed) == 1


def test_a_remote_failure_keeps_the_local_model_loaded() -> None:
    found: list[ModelLoaded] = []
    with FakeEndpoint() as gone:
        pass

    async def work() -> None:
        async with Client(start_engine) as client:
            client.listen(lambda e: found.append(e) if isinstance(e, ModelLoaded) else None)
            load = LoadModel("", "load", demo_model()[0], num_threads=1)
            loaded = await client.load(load)
            try:
                await client.load(replace(load_of(gone), request_id="remote"))
            except EndpointUnreachableError:
                request = Generate("chat", "ask", asks().messages, GenerateSettings())
                done = await done_of(client, request)
            assert done.token_ids
            assert found == [loaded, loaded]

    run(work())


def test_steps_of_the_local_engine_pass_unchanged() -> None:
    routed = Routed(loaded_by_nobody())
    step = StepDone("chat", "ask", 0, (), (), (), 0, 0, (), (0.0, 0.0, 0.0, 0.0), 0.0, 0)
    routed.local.send(step)
    assert routed.events == [step]
    assert not any(isinstance(event, GenerationDone) for event in routed.events)
