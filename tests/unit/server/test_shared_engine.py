"""One engine for the window and for programs: whose events go where, and who ends what."""

from dataclasses import dataclass, field

import pytest

from medusa_core.api import EventSink
from medusa_core.messages import (
    Cancel,
    ChatMessage,
    CloseSession,
    Command,
    Count,
    Event,
    Failed,
    Generate,
    ModelLoaded,
    Progress,
    Role,
    Unloaded,
)
from medusa_core.server.shared_engine import SharedEngine
from tests.support.messages import EXAMPLES

HELLO = (ChatMessage(Role.USER, "hello"),)
LOADED = next(example for example in EXAMPLES if isinstance(example, ModelLoaded))


@dataclass
class ScriptedEngine:
    """Notes commands, and sends what the test wants."""

    send: EventSink
    commands: list[Command] = field(default_factory=list)
    is_alive: bool = True

    def submit(self, command: Command) -> None:
        self.commands.append(command)

    def close(self, timeout_s: float = 10.0) -> None:
        self.is_alive = False


class Stage:
    """A shared engine, its owner's events, and a guest's."""

    def __init__(self) -> None:
        self.engines: list[ScriptedEngine] = []
        self.owner_events: list[Event] = []
        self.guest_events: list[Event] = []
        self.shared = SharedEngine(self._start)
        self.owned = self.shared.start(self.owner_events.append)
        self.guest = self.shared.join(self.guest_events.append)

    def _start(self, send: EventSink) -> ScriptedEngine:
        self.engines.append(ScriptedEngine(send))
        return self.engines[-1]


def asks(session: str) -> Generate:
    return Generate(session, "r", HELLO)


def test_every_user_gets_the_events_of_its_own_sessions() -> None:
    stage = Stage()
    stage.owned.submit(asks("window"))
    stage.guest.submit(asks("program"))
    stage.engines[0].send(Progress("window", "r", "prefill", 0.5, "reading"))
    stage.engines[0].send(Progress("program", "r", "prefill", 0.5, "reading"))
    assert [event.session_id for event in stage.owner_events] == ["window"]
    assert [event.session_id for event in stage.guest_events] == ["program"]


def test_all_users_learn_which_model_is_loaded_even_if_they_join_later() -> None:
    stage = Stage()
    stage.engines[0].send(LOADED)
    later: list[Event] = []
    stage.shared.join(later.append)
    assert stage.owner_events == stage.guest_events == later == [LOADED]
    stage.engines[0].send(Unloaded("", "u", 1))
    assert stage.shared.loaded is None
    assert stage.guest_events[-1] == stage.owner_events[-1] == later[-1]
    latest: list[Event] = []
    stage.shared.join(latest.append)
    assert not latest


@pytest.mark.expects_errors
def test_a_user_that_fails_at_an_event_affects_no_other() -> None:
    def fail(_: Event) -> None:
        raise MemoryError

    stage = Stage()
    stage.shared._owner = fail
    stage.engines[0].send(LOADED)
    assert LOADED in stage.guest_events


def test_a_leaving_user_cancels_only_its_own_answers() -> None:
    stage = Stage()
    stage.owned.submit(asks("window"))
    stage.guest.submit(asks("program"))
    stage.guest.submit(Count("program", "ended", HELLO))
    stage.engines[0].send(Failed("program", "ended", "EngineError", "what", "do"))
    stage.guest.close()
    assert stage.engines[0].commands[3:] == [
        Cancel("program", "r"),
        CloseSession("program", "close"),
    ]
    assert stage.owned.is_alive
    stage.engines[0].send(LOADED)
    assert LOADED not in stage.guest_events


def test_a_request_fails_with_an_engine_that_died() -> None:
    stage = Stage()
    stage.guest.submit(asks("program"))
    stage.owned.close()
    assert not stage.guest.is_alive
    stage.shared.start(stage.owner_events.append)
    (failed,) = stage.guest_events
    assert isinstance(failed, Failed)
    assert (failed.session_id, failed.request_id) == ("program", "r")
    stage.guest.submit(asks("program"))
    assert stage.engines[1].commands == [asks("program")]
