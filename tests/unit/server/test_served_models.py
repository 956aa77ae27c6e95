"""What programs may use: models of this computer, never the window's way to another machine."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from medusa_core.api import Engine, EventSink
from medusa_core.client import Client
from medusa_core.messages import NO_PLAN, Command, Event, LoadModel, LoadRemote, ModelLoaded
from medusa_core.messages import EndpointModel as Model
from medusa_core.server.api_error import ApiError
from medusa_core.server.served_models import ServedModels
from medusa_core.server.shared_engine import SharedEngine, SleepingModel

HERE = LoadModel("model", "here", Path("m"))
THERE = LoadRemote("model", "there", Model("http://host/v1", "small", "the lab"))


class Loader:
    """Engine that loads every requested model."""

    is_alive = True

    def __init__(self, send: Callable[[Event], None]) -> None:
        self._send = send

    def submit(self, command: Command) -> None:
        if isinstance(command, LoadModel | LoadRemote):
            self._send(loaded_by(command))

    def close(self, timeout_s: float = 10.0) -> None:
        pass


def start(on_event: EventSink) -> Engine:
    return Loader(on_event)


def loaded_by(command: LoadModel | LoadRemote) -> ModelLoaded:
    found = ModelLoaded(
        *(command.session_id, command.request_id, "small", 0, 0, 0, 0, "", "", NO_PLAN),
        *("", (), (), (), 0.0),
    )
    return replace(found, place="the lab") if isinstance(command, LoadRemote) else found


def test_a_remote_model_isnt_offered_to_programs() -> None:
    async def work() -> None:
        shared = SharedEngine(start)
        window = shared.start(lambda _event: None)
        async with Client(shared.join) as client:
            models = ServedModels(client, SleepingModel(shared, lambda: None))
            window.submit(HERE)
            while models.loaded is None:
                await asyncio.sleep(0.001)
            assert (await models.find("small")).model_id == "small"
            window.submit(THERE)
            while models.loaded is not None:
                await asyncio.sleep(0.001)
            assert await models.all() == ()
            for name in ("", "small"):
                with pytest.raises(ApiError, match="model"):
                    await models.find(name)

    asyncio.run(work())


def test_a_suspended_remote_model_isnt_resumed_by_programs() -> None:
    shared = SharedEngine(start)
    window = shared.start(lambda _event: None)
    source = SleepingModel(shared, lambda: None)
    window.submit(THERE)
    shared.loaded = None  # as an `Unloaded` leaves it
    assert shared.last_loaded is not None
    assert source.models() == ()
