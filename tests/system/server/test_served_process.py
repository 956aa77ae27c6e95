"""The process: clients that leave, other models, the log, and its end."""

from __future__ import annotations

import json
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import httpx2
import pytest

from medusa_core.__main__ import main
from medusa_core.cli.serving import _origin
from medusa_core.errors import RequestError
from medusa_core.system.running_models import running_models
from tests.support.server.served import Served, ServedProcess

LONG = {
    "messages": [{"role": "user", "content": "Write a long story about a cat."}],
    "max_tokens": 900,
    "logit_bias": {"1": -100},  # it doesn't end by itself
    "temperature": 1.0,
}


def request_text(served: Served, body: dict[str, object]) -> bytes:
    content = json.dumps(body).encode()
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


@pytest.mark.parametrize("streams", [True, False])
def test_disconnecting_a_client_ends_its_answer(served: Served, streams: bool) -> None:
    connection = served.connect()
    connection.sendall(request_text(served, {**LONG, "stream": streams, "n": 8}))
    served.wait_for_running(8)
    connection.close()
    served.wait_until_idle()
    # No answer was complete.
    assert served.record("/v1/chat/completions", status=499)["answer_tokens"] == 0
    assert served.chat("Hello there", max_tokens=3)["choices"]


def test_concurrent_answers_equal_single_ones(served: Served) -> None:
    questions = [
        f"Write a short story about a {animal}." for animal in ["cat", "dog", "bird", "fish"]
    ]
    alone = [served.chat(question, max_tokens=30)["choices"] for question in questions]
    with ThreadPoolExecutor(12) as pool:
        asked = [pool.submit(served.chat, question, max_tokens=30) for question in questions * 3]
        together = [one.result()["choices"] for one in asked]
    assert together == alone * 3


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_a_full_queue_says_when_to_retry_and_a_signal_ends_all(tmp_path: Path, number: int) -> None:
    process = ServedProcess(tmp_path, "--queue", "1")
    running = tmp_path / "medusa-chat" / "loaded"
    (listed,) = running_models(running)
    assert (listed.program, listed.model) == ("serve", "llama-pebble")
    assert listed.address == process.address
    try:
        with ExitStack() as connections:
            for _ in range(17):  # sixteen run and one waits
                connection = connections.enter_context(process.connect())
                connection.sendall(request_text(process, {**LONG, "stream": True}))
            process.wait_for_running(16)
            reply = process.post("/v1/chat/completions", LONG)
            assert reply.status_code == 429
            assert int(reply.headers["retry-after"]) > 0
            assert reply.json()["error"]["type"] == "rate_limit_error"
            started = time.monotonic()
            assert process.stop(number) == 0
            assert time.monotonic() - started < 60  # not the end of what it writes
            waiting = b"".join(iter(partial(connection.recv, 1 << 16), b""))
            assert waiting.startswith(b"HTTP/1.1 503 ")
            assert b"The server is stopping" in waiting
        assert running_models(running) == ()
        assert not any("Traceback" in line for line in process.lines)
    finally:
        process.close()


def test_a_request_may_name_another_installed_model(guarded: Served) -> None:
    listed = [one["id"] for one in guarded.get("/v1/models").json()["data"]]
    assert {"llama-pebble", "tiny-target"} <= set(listed)
    for model in ("tiny-target", "llama-pebble", "TINY-target", "llama-pebble"):
        body = {"model": model, "messages": LONG["messages"], "max_tokens": 4}
        reply = guarded.post("/v1/chat/completions", body)
        assert reply.status_code == 200, reply.text
        assert reply.json()["model"] == model.lower()


@pytest.mark.expects_errors
def test_a_model_that_cant_be_loaded_leaves_the_loaded_one(guarded: Served) -> None:
    body = {"model": "broken-target", "messages": LONG["messages"], "max_tokens": 4}
    reply = guarded.post("/v1/chat/completions", body)
    assert reply.status_code in (404, 500, 503), reply.text
    assert reply.json()["error"]["message"]
    again = guarded.post("/v1/chat/completions", {**body, "model": ""})
    assert again.status_code == 200, again.text


def test_the_log_has_a_line_for_each_request_and_no_text(served: Served) -> None:
    served.chat("A secret: xyzzy", max_tokens=3)
    served.get("/health")
    served.record("/health", status=200)
    last = served.record("/v1/chat/completions", status=200, model="llama-pebble", answer_tokens=3)
    assert "xyzzy" not in served.log.read_text(encoding="utf-8")
    assert last["seconds"] > 0
    assert last["tokens_per_s"] > 0


def test_a_disconnected_client_is_logged(served: Served) -> None:
    with served.connect() as connection:
        connection.sendall(request_text(served, {**LONG, "stream": False}))
        served.wait_for_running(1)
    served.record("/v1/chat/completions", status=499)


def test_an_address_in_use_is_reported(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--port", str(served.port)]) == 1
    assert str(served.port) in capsys.readouterr().err


def test_senseless_numbers_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in (("--port", "70000"), ("--queue", "-1")):
        assert main(["serve", *wrong]) == 1
        assert "out of range" in capsys.readouterr().err


def test_a_half_open_connection_blocks_nobody(served: Served) -> None:
    halves = []
    for text in (b"", b"GET", b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1"):
        halves.append(served.connect())
        halves[-1].sendall(text)
    assert served.chat("Hello there", max_tokens=2)["choices"]
    for half in halves:
        half.close()


def test_two_requests_may_be_pipelined(served: Served) -> None:
    with served.connect() as connection:
        one = request_text(served, {"messages": LONG["messages"], "max_tokens": 2})
        connection.sendall(one + one)
        received = b""
        while received.count(b'"finish_reason"') < 2:
            data = connection.recv(1 << 16)
            assert data
            received += data


def test_a_head_request_has_no_body(served: Served) -> None:
    reply = httpx2.head(served.url("/health"), timeout=240)
    assert reply.status_code == 200
    assert reply.content == b""


def test_a_key_that_no_header_can_contain_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for key in ("schlüssel", " key", "a\tb"):
        assert main(["serve", "--port", "0", "--api-key", key]) != 0
        assert "can't be sent in a header" in capsys.readouterr().err


def test_an_origin_is_parsed_as_browsers_write_it() -> None:
    for typed, origin in (
        ("https://Pages.Example/", "https://pages.example"),
        ("https://pages.example:443", "https://pages.example"),
        ("http://[::1]:3000", "http://[::1]:3000"),
        ("app://obsidian.md", "app://obsidian.md"),
    ):
        assert _origin(typed) == origin


def test_an_invalid_origin_is_refused() -> None:
    for typed in ("*", "null", "", "pages.example", "https://*.example", "https://a.example/path"):
        with pytest.raises(RequestError, match="no origin"):
            _origin(typed)
