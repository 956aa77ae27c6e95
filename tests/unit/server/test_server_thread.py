"""A server beside a window: one engine, and only what the window has loaded."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator

import httpx2
import pytest

from medusa_core.api import start_engine
from medusa_core.client import Client
from medusa_core.errors import MedusaError
from medusa_core.messages import Event, LoadModel, ModelLoaded, Unload, Unloaded
from medusa_core.server.limits import Limits
from medusa_core.server.request_log import RequestRecord
from medusa_core.server.server import Server
from medusa_core.server.server_options import ServerOptions
from medusa_core.server.server_thread import ServerThread
from medusa_core.server.shared_engine import SharedEngine, SleepingModel
from medusa_core.system.resources import demo_model_dir

WAIT_S = 240.0
HELLO = {"messages": [{"role": "user", "content": "Hello there"}], "max_tokens": 4}


class Window:
    """Owner of the engine, with a server beside it."""

    def __init__(self, limits: Limits) -> None:
        self._arrived = threading.Condition()
        self.events: list[Event] = []
        self.records: list[RequestRecord] = []
        self.failures: list[MedusaError] = []
        self.shared = SharedEngine(start_engine)
        self.engine = self.shared.start(self._hear)
        self._ready = threading.Event()
        options = ServerOptions(port=0, limits=limits)
        server = Server(
            options,
            lambda: Client(self.shared.join),
            SleepingModel(self.shared, self.submit_load),
            self.records.append,
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

    def wait_for_records(self, count: int) -> None:
        until = time.monotonic() + WAIT_S
        while len(self.records) < count and time.monotonic() < until:
            time.sleep(0.01)

    def submit_load(self) -> None:
        self.engine.submit(LoadModel("window", "load", demo_model_dir(), num_threads=1))

    def load(self) -> None:
        self.submit_load()
        self.wait_for(ModelLoaded)

    def ask(self, **fields: object) -> httpx2.Response:
        address = f"{self.address}/v1/chat/completions"
        return httpx2.post(address, json=HELLO | fields, timeout=WAIT_S)

    def close(self) -> None:
        self.thread.stop()
        self.engine.close()


@pytest.fixture
def window(request: pytest.FixtureRequest) -> Iterator[Window]:
    found = Window(getattr(request, "param", Limits()))
    yield found
    found.close()


def test_programs_use_the_model_loaded_in_the_window(window: Window) -> None:
    reply = window.ask()
    assert reply.status_code == 503
    assert "No model" in reply.json()["error"]["message"]
    window.load()
    answer = window.ask().json()
    assert answer["choices"][0]["message"]["content"]
    listed = httpx2.get(f"{window.address}/v1/models", timeout=WAIT_S).json()["data"]
    assert [one["id"] for one in listed] == [answer["model"]]
    assert window.ask(model="other").json()["model"] == answer["model"]
    window.wait_for_records(4)  # they are noted behind the replies
    assert [record.status for record in window.records] == [503, 200, 200, 200]
    assert window.records[1].answer_tokens == 4
    window.engine.submit(Unload("window", "unload"))
    window.wait_for(Unloaded)
    asleep = httpx2.get(f"{window.address}/v1/models", timeout=WAIT_S).json()["data"]
    assert [one["id"] for one in asleep] == [one["id"] for one in listed]
    assert window.ask(model=answer["model"]).status_code == 200  # the window loads it again
    window.thread.stop()
    assert not window.thread.is_alive
    assert window.engine.is_alive
    assert not window.failures


def test_a_port_in_use_is_reported_to_the_window(window: Window) -> None:
    port = int(window.address.rpartition(":")[2])
    failures: list[MedusaError] = []
    server = Server(
        ServerOptions(port=port),
        lambda: Client(window.shared.join),
        SleepingModel(window.shared, print),
        print,
    )
    thread = ServerThread(server, print, failures.append)
    thread.stop()
    assert [str(port) in error.message for error in failures] == [True]


IMPATIENT = Limits(head_s=0.5, body_s=0.5, send_s=0.5)
impatient = pytest.mark.parametrize("window", [IMPATIENT], indirect=True)


def request_text(window: Window, **fields: object) -> bytes:
    content = json.dumps(HELLO | fields).encode()
    host = window.address.removeprefix("http://")
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


def connect(window: Window) -> socket.socket:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 12)
    connection.settimeout(WAIT_S)
    connection.connect(("127.0.0.1", int(window.address.rpartition(":")[2])))
    return connection


@impatient
def test_an_incomplete_request_is_given_up(window: Window) -> None:
    text = request_text(window)
    for half in (b"", text[:20]):
        with connect(window) as connection:
            connection.sendall(half)
            assert connection.recv(1) == b""
    with connect(window) as connection:
        connection.sendall(text[:-5])
        assert b" 408 " in connection.recv(1 << 10)[:20]


@impatient
def test_a_pipelined_request_must_be_completed_too(window: Window) -> None:
    text = request_text(window)
    with connect(window) as connection:
        connection.sendall(text)
        assert b" 503 " in connection.recv(1 << 10)[:20]  # no model
        connection.sendall(text[:30])
        while connection.recv(1 << 10):
            pass  # what is left of the first reply, then the end


@impatient
def test_a_client_that_doesnt_read_is_disconnected_and_its_rows_are_freed(window: Window) -> None:
    window.load()
    endless = {"max_tokens": 900, "logit_bias": {"1": -100}, "stream": True}
    with connect(window) as connection:
        connection.sendall(request_text(window, **endless, n=4, logprobs=True, top_logprobs=20))
        until = time.monotonic() + WAIT_S
        while not window.records and time.monotonic() < until:
            time.sleep(0.02)
        assert [record.status for record in window.records] == [499]
    metrics = httpx2.get(f"{window.address}/metrics", timeout=WAIT_S).text
    assert "medusa_answers_running 0" in metrics
    assert window.ask().status_code == 200
