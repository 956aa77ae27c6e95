"""A server beside a window: one engine, and only what the window has loaded."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import httpx2
import pytest

from medusa_core.api import start_engine
from medusa_core.client import Client
from medusa_core.errors import MedusaError
from medusa_core.messages import Event, LoadModel, ModelLoaded, Unload, Unloaded
from medusa_core.server.request_log import RequestRecord
from medusa_core.server.served_models import LoadedOnly
from medusa_core.server.server import Server, ServerOptions
from medusa_core.server.server_thread import ServerThread
from medusa_core.server.shared_engine import SharedEngine
from medusa_core.system.resources import demo_model_dir

WAIT_S = 60.0
HELLO = {"messages": [{"role": "user", "content": "Hello there"}], "max_tokens": 4}


class Window:
    """What owns the engine, and the server beside it."""

    def __init__(self) -> None:
        self._arrived = threading.Condition()
        self.events: list[Event] = []
        self.records: list[RequestRecord] = []
        self.failures: list[MedusaError] = []
        self.shared = SharedEngine(start_engine)
        self.engine = self.shared.start(self._hear)
        self._ready = threading.Event()
        options = ServerOptions(port=0)
        server = Server(
            options, lambda: Client(self.shared.join), LoadedOnly(), self.records.append
        )
        self.thread = ServerThread(server, self._announce, self.failures.append)
        assert self._ready.wait(WAIT_S)

    def _announce(self, address: str) -> None:
        self.address = address
        self._ready.set()

    def _hear(self, event: Event) -> None:
        with self._arrived:
            self.events.append(event)
            self._arrived.notify_all()

    def wait_for(self, kind: type[Event]) -> None:
        with self._arrived:
            has_come = self._arrived.wait_for(
                lambda: any(isinstance(event, kind) for event in self.events), WAIT_S
            )
        assert has_come

    def load(self) -> None:
        self.engine.submit(LoadModel("window", "load", demo_model_dir(), num_threads=1))
        self.wait_for(ModelLoaded)

    def ask(self, **fields: object) -> httpx2.Response:
        address = f"{self.address}/v1/chat/completions"
        return httpx2.post(address, json=HELLO | fields, timeout=WAIT_S)

    def close(self) -> None:
        self.thread.stop()
        self.engine.close()


@pytest.fixture
def window() -> Iterator[Window]:
    found = Window()
    yield found
    found.close()


def test_programs_use_what_the_window_has_loaded(window: Window) -> None:
    reply = window.ask()
    assert reply.status_code == 503
    assert "No model" in reply.json()["error"]["message"]
    window.load()
    answer = window.ask().json()
    assert answer["choices"][0]["message"]["content"]
    listed = httpx2.get(f"{window.address}/v1/models").json()["data"]
    assert [one["id"] for one in listed] == [answer["model"]]
    assert window.ask(model="other").status_code == 404
    assert [record.status for record in window.records] == [503, 200, 200, 404]
    assert window.records[1].answer_tokens == 4
    window.engine.submit(Unload("window", "unload"))
    window.wait_for(Unloaded)
    assert window.ask().status_code == 503
    window.thread.stop()
    assert not window.thread.is_alive
    assert window.engine.is_alive
    assert not window.failures


def test_an_address_that_is_taken_is_told_to_the_window(window: Window) -> None:
    port = int(window.address.rpartition(":")[2])
    failures: list[MedusaError] = []
    server = Server(
        ServerOptions(port=port), lambda: Client(window.shared.join), LoadedOnly(), print
    )
    thread = ServerThread(server, print, failures.append)
    thread.stop()
    assert [str(port) in error.message for error in failures] == [True]
