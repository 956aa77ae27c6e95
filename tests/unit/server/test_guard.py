"""Who may speak to the server: hosts, origins, keys, sizes."""

from __future__ import annotations

import http.client
import json
import socket
import time
from contextlib import closing, suppress

import httpx2
import pytest
from starlette.datastructures import Headers

from medusa_core.api import start_engine
from medusa_core.client import Client
from medusa_core.errors import RequestError
from medusa_core.server.api_error import ApiError
from medusa_core.server.guard import Guard, is_loopback, known_hosts
from medusa_core.server.server import Server
from medusa_core.server.server_options import ServerOptions
from medusa_core.server.shared_engine import SharedEngine, SleepingModel
from tests.support.server.served import Served

PAGES = "https://pages.example"
GUARD = Guard(known_hosts("127.0.0.1", ()), 8642, frozenset({PAGES}), "the key")


def refused(guard: Guard, **headers: str) -> int:
    """The status under which a request is refused; 0 if it isn't."""
    named = {"host": "localhost:8642", "x-api-key": "the key"} | headers
    try:
        guard.check("POST", "/v1/chat/completions", Headers(named))
    except ApiError as error:
        return error.status
    return 0


def test_host_names_of_this_computer_are_accepted_and_others_refused() -> None:
    own = ("localhost:8642", "LOCALHOST:8642", "127.0.0.1:8642", "[::1]:8642", "localhost.:8642")
    others = (
        *("", "localhost", "localhost:80", "evil.example:8642", "localhost.evil.example:8642"),
        *("127.0.0.1.evil.example:8642", "user@localhost:8642", "localhost:8642/path", "[::1"),
        *("localhost:86x2", "localhost:8642:8642", "0.0.0.0:8642", "local\thost:8642"),
        *("localhost:8642#", "localhost:8642?", "localhost..:8642", "localhost:+8642"),
    )
    assert [host for host in own if refused(GUARD, host=host)] == []
    assert [host for host in others if refused(GUARD, host=host) != 403] == []


def test_own_and_allowed_origins_may_use_the_server_and_others_not() -> None:
    own = ("http://localhost:8642", "http://127.0.0.1:8642", "http://[::1]:8642", PAGES)
    others = (
        *("", "null", "https://evil.example", "http://localhost:3000", "https://localhost:8642"),
        *(PAGES + ".evil.example", PAGES + ":444", "http://localhost:8642@evil.example", "file://"),
    )
    assert [page for page in own if refused(GUARD, origin=page)] == []
    assert [page for page in others if refused(GUARD, origin=page) != 403] == []


def test_the_key_is_accepted_in_either_header() -> None:
    assert refused(GUARD, **{"x-api-key": "", "authorization": "Bearer the key"}) == 0
    assert refused(GUARD, **{"x-api-key": "", "authorization": "bearer the key"}) == 0
    for wrong in ({"x-api-key": "the kex"}, {"x-api-key": ""}, {"x-api-key": "ключ"}):
        assert (
            refused(
                GUARD, **{name: value.encode().decode("latin-1") for name, value in wrong.items()}
            )
            == 401
        )
    assert refused(GUARD, authorization="Basic dGhlIGtleQ==", **{"x-api-key": ""}) == 401


def test_two_host_headers_are_refused() -> None:
    raw = [(b"host", b"localhost:8642"), (b"host", b"localhost:8642"), (b"x-api-key", b"the key")]
    with pytest.raises(ApiError):
        GUARD.check("GET", "/v1/models", Headers(raw=raw))


def test_two_origins_must_both_be_allowed() -> None:
    raw = [(b"host", b"localhost:8642"), (b"x-api-key", b"the key")]
    origins = [(b"origin", b"http://localhost:8642"), (b"origin", b"https://evil.example")]
    with pytest.raises(ApiError, match="origin"):
        GUARD.check("GET", "/v1/models", Headers(raw=raw + origins))


def test_a_body_of_two_lengths_is_refused_and_the_connection_closed(served: Served) -> None:
    head = f"POST /tokenize HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n"
    lengths = "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
    hidden = f"0\r\n\r\nGET /health HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n\r\n"
    reply = served.raw(f"{head}{lengths}{hidden}".encode())
    assert reply.startswith(b"HTTP/1.1 400 ")
    assert reply.count(b"HTTP/1.1") == 1
    assert b"both Content-Length" in reply


def test_a_wildcard_address_means_the_addresses_of_this_computer() -> None:
    own = ("Tower", "192.168.7.9")
    assert known_hosts("0.0.0.0", own) >= {"tower", "192.168.7.9", "localhost"}
    assert "tower" not in known_hosts("127.0.0.1", own)
    assert "192.168.7.9" not in known_hosts("10.0.0.1", own)
    assert is_loopback("127.8.9.1")
    assert is_loopback("::1")
    assert not is_loopback("0.0.0.0")
    assert not is_loopback("tower")


def test_other_computers_are_not_served_without_a_key() -> None:
    nothing = SleepingModel(SharedEngine(start_engine), print)
    with pytest.raises(RequestError, match="no key"):
        Server(ServerOptions("0.0.0.0"), Client, nothing, print)


def test_a_rebound_name_is_refused(served: Served, guarded: Served) -> None:
    for server in (served, guarded):
        reply = server.get("/v1/models", host=f"evil.example:{server.port}")
        assert reply.status_code == 403
        assert reply.json()["error"]["code"] == "host_refused"


def test_a_foreign_origin_is_refused_and_gets_no_cors_headers(served: Served) -> None:
    reply = served.get("/v1/models", origin="https://evil.example")
    assert reply.status_code == 403
    assert "access-control-allow-origin" not in reply.headers
    own = served.get("/v1/models", origin=f"http://127.0.0.1:{served.port}")
    assert own.status_code == 200
    assert "access-control-allow-origin" not in own.headers


def test_an_allowed_origin_gets_cors_headers_and_a_preflight(served: Served) -> None:
    reply = served.get("/v1/models", origin=PAGES)
    assert reply.headers["access-control-allow-origin"] == PAGES
    assert reply.headers["vary"] == "Origin"
    asked = (
        f"OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n"
        f"Origin: {PAGES}\r\nAccess-Control-Request-Method: POST\r\n"
        "Access-Control-Request-Headers: authorization,content-type\r\nConnection: close\r\n\r\n"
    )
    answer = served.raw(asked.encode()).decode().lower()
    assert answer.startswith("http/1.1 204")
    assert f"access-control-allow-origin: {PAGES}" in answer
    assert "access-control-allow-headers: authorization,content-type" in answer
    foreign = served.raw(asked.replace(PAGES, "https://evil.example").encode()).decode().lower()
    assert foreign.startswith("http/1.1 403")


def test_on_other_addresses_a_key_is_made_printed_and_required(guarded: Served) -> None:
    assert len(guarded.key) >= 30
    without = {"x-api-key": ""}
    assert guarded.get("/v1/models", **without).status_code == 401
    assert guarded.get("/v1/models", **{"x-api-key": guarded.key + "x"}).status_code == 401
    assert guarded.get("/v1/models").status_code == 200
    bearer = {"authorization": f"Bearer {guarded.key}"}
    assert guarded.get("/v1/models", **without, **bearer).status_code == 200
    error = guarded.error("/v1/chat/completions", {}, 401, **without)
    assert error["type"] == "authentication_error"
    assert guarded.get("/health", **without).status_code == 200


def test_the_machines_own_name_is_accepted_on_a_wildcard_address(guarded: Served) -> None:
    host = f"{socket.gethostname()}:{guarded.port}"
    assert guarded.get("/v1/models", host=host).status_code == 200


def test_a_body_that_is_too_large_is_refused_before_it_is_read(served: Served) -> None:
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n"
        "Content-Length: 99999999999\r\n\r\n"
    )
    assert b" 413 " in served.raw(head.encode())[:20]
    assert b" 400 " in served.raw(head.replace("99999999999", "many").encode())[:20]


def test_a_chunked_body_that_is_too_large_is_refused(served: Served) -> None:
    def chunks() -> object:
        for _ in range(9):
            yield b" " * (1 << 20)

    reply = httpx2.post(served.url("/tokenize"), content=chunks(), timeout=30)
    assert reply.status_code == 413


def test_a_client_that_sends_everything_before_reading_learns_why_it_is_refused(
    served: Served, guarded: Served
) -> None:
    for server, path, num_bytes, status in (
        (served, "/v1/chat/completions", (8 << 20) + 1, 413),
        (served, "/v1/chat/completions", 20 << 20, 413),
        (served, "/nowhere", 7 << 20, 404),
        (served, "/health", 7 << 20, 405),
        (guarded, "/v1/chat/completions", 7 << 20, 401),  # without a key
    ):
        assert (path, status_behind(server, path, num_bytes)) == (path, status)
        assert server.get("/health").status_code == 200


def status_behind(server: Served, path: str, num_bytes: int) -> int:
    """The status of a reply that is read once all of a body is sent."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    with closing(connection):
        connection.request("POST", path, b" " * num_bytes)
        reply = connection.getresponse()
        assert b"message" in reply.read()
        return reply.status


def test_a_body_of_too_many_parts_is_refused_quickly(served: Served) -> None:
    for part in ("[]", "{}", '""', '{"a":1}'):
        body = f'{{"a":[{",".join([part] * (7 * (1 << 20) // (len(part) + 1)))}]}}'
        began_s = time.monotonic()
        reply = served.post("/tokenize", body.encode())
        assert (part, reply.status_code) == (part, 400)
        assert "too many parts" in reply.text
        assert time.monotonic() - began_s < 20  # parsed, it would be some seconds of the processor


def test_brackets_within_strings_count_as_no_parts(served: Served) -> None:
    for text in ("x, [{ ", '\\"', "\\\\"):
        body = json.dumps({"content": text * 100_000, "add_special": False, "more": []}).encode()
        assert "parts" not in served.post("/tokenize", body).text
        assert "JSON" in served.post("/tokenize", body[:-20]).text


def test_too_large_a_request_head_is_refused(served: Served) -> None:
    head = f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nX-More: {'x' * (1 << 17)}"
    with suppress(ConnectionResetError):  # it may be closed while we write
        assert b" 400 " in served.raw(head.encode())[:20]
    assert served.get("/health").status_code == 200
