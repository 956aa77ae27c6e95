"""Servers that are addresses: calls, secrets in headers, limits, and what is never reached."""

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from medusa_core.tools.servers import ToolServer
from medusa_core.tools.status import ServerState
from medusa_core.tools.toolbox import Toolbox
from tests.support.toolboxes import QUICK, offered, opened, result_of, settled, status

TOOL = {"name": "echo", "description": "Returns its text.", "inputSchema": {"type": "object"}}
RESULTS: dict[str, Any] = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "tests", "version": "1"},
    },
    "tools/list": {"tools": [TOOL]},
    "tools/call": {"content": [{"type": "text", "text": "tea"}]},
}


EVENT = (
    b'event: message\ndata: {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}\n\n'
)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "Server"

    def do_GET(self) -> None:
        self.answer(405, b"")

    def do_DELETE(self) -> None:
        self.answer(405, b"")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.heard.append((body, dict(self.headers)))
        method, behaviour = body["method"], self.server.behaviour
        if "id" not in body:
            self.answer(202, b"")
        elif behaviour == "key" and self.headers.get("Authorization") != "Bearer tea":
            self.answer(401, b"")
        elif behaviour == "error":
            text = f"no access with {self.path} and {self.headers['Authorization']}"
            error = {"code": -32000, "message": text}
            reply = {"jsonrpc": "2.0", "id": body["id"], "error": error}
            self.answer(200, json.dumps(reply).encode())
        elif behaviour == "redirect":
            self.answer(307, b"", Location=self.server.elsewhere)
        elif behaviour == "zip" and method == "tools/list":
            self.answer(200, b"1f8b", **{"Content-Encoding": "gzip"})
        elif behaviour == "page":
            self.answer(200, b"<html>", kind="text/html")
        elif behaviour in ("long", "events") and method == "tools/list":
            self.endless(behaviour)
        else:
            reply = {"jsonrpc": "2.0", "id": body["id"], "result": RESULTS[method]}
            self.answer(200, json.dumps(reply).encode())

    def answer(self, code: int, body: bytes, kind: str = "application/json", **more: str) -> None:
        self.send_response(code)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **more}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def endless(self, behaviour: str) -> None:
        self.send_response(200)
        kind = "application/json" if behaviour == "long" else "text/event-stream"
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.close_connection = True
        piece = b" " * 65536 if behaviour == "long" else EVENT * 2000
        try:
            while True:
                self.wfile.write(piece)
        except OSError:
            return  # the client has had enough

    def log_message(self, *_: object) -> None:
        return


class Server(ThreadingHTTPServer):
    daemon_threads = True
    behaviour = ""
    elsewhere = ""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.heard: list[tuple[Any, dict[str, str]]] = []
        self.url = f"http://127.0.0.1:{self.server_port}/mcp"


@contextmanager
def serving(behaviour: str = "") -> Iterator[Server]:
    server = Server()
    server.behaviour = behaviour
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def at(server: Server, **more: Any) -> ToolServer:
    return ToolServer("tea", url=server.url, is_enabled=True, **more)


def test_tools_are_called_and_nothing_is_reached_before(tmp_path: Path) -> None:
    with serving() as server, opened(tmp_path, replace(at(server), is_enabled=False)) as toolbox:
        assert status(toolbox, "tea").state is ServerState.OFF
        assert server.heard == []
        toolbox.set_enabled("tea", on=True)
        assert result_of(toolbox, offered(toolbox, "tea/echo"), text="a").text == "tea"
        methods = [body["method"] for body, _ in server.heard]
        assert methods == ["initialize", "notifications/initialized", "tools/list", "tools/call"]
        assert server.heard[-1][0]["params"] == {"name": "echo", "arguments": {"text": "a"}}


def test_offline_mode_forbids_servers_of_other_machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving() as server, opened(tmp_path, at(server)) as toolbox:
        toolbox.set_offline(True)  # this computer is none of them
        assert settled(toolbox, "tea").state is ServerState.READY
        monkeypatch.setattr("medusa_core.tools.toolbox.is_loopback_url", lambda _: False)
        toolbox.set_offline(True)
        num_heard = len(server.heard)
        assert "Offline mode" in status(toolbox, "tea").reason
        assert toolbox.all_tools() == ()
        again = Toolbox(tmp_path, QUICK, is_offline=True)
        assert again.servers()[0].state is ServerState.FAILED
        again.close()
        assert len(server.heard) == num_heard
        toolbox.set_offline(False)
        assert settled(toolbox, "tea").state is ServerState.READY


def test_a_secret_is_in_the_keyring_and_reaches_its_own_server_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("medusa_core.system.key_store._system_keyring", Keyring)
    with serving("key") as server, opened(tmp_path) as toolbox:
        reference = toolbox.save_secret("tea", "Authorization", "tea")
        header = (("Authorization", f"Bearer {reference}"),)
        toolbox.add(at(server, headers=header), replace(at(server, headers=header), name="thief"))
        assert result_of(toolbox, offered_by(toolbox, "tea"), text="a").text == "tea"
        assert "isn't in the keyring" in settled(toolbox, "thief").reason
        assert "Bearer tea" not in (tmp_path / "mcp.json").read_text(encoding="utf-8")
        toolbox.remove("thief")
        toolbox.replace("tea", replace(at(server, headers=header), name="green tea"))
        assert settled(toolbox, "green tea").state is ServerState.READY
        both = (*header, ("Other", toolbox.save_secret("green tea", "Other", "milk")))
        toolbox.replace("green tea", replace(at(server, headers=both), name="green tea"))
        assert len(Keyring.saved) == 2
        toolbox.replace("green tea", replace(at(server, headers=header), name="green tea"))
        assert list(Keyring.saved.values()) == ["tea"], "nothing refers to the other any more"
        toolbox.remove("green tea")
        assert Keyring.saved == {}
        toolbox.add(at(server))
        found = settled(toolbox, "tea")
        assert found.state is ServerState.FAILED
        assert found.reason == "The server refuses access (HTTP 401)."


def offered_by(toolbox: Toolbox, name: str) -> Any:
    return settled(toolbox, name).tools[0]


class Keyring:
    saved: ClassVar[dict[str, str]] = {}

    def get_password(self, service: str, name: str) -> str | None:
        return self.saved.get(name)

    def set_password(self, service: str, name: str, value: str) -> None:
        self.saved[name] = value

    def delete_password(self, service: str, name: str) -> None:
        del self.saved[name]


HOSTILE = {
    "long": "more than 2 MiB",
    "events": "writes without end",
    "zip": "compressed",
    "page": "text/html",
}


@pytest.mark.parametrize("behaviour", HOSTILE)
def test_a_hostile_address_fails_with_a_reason(tmp_path: Path, behaviour: str) -> None:
    with serving(behaviour) as server, opened(tmp_path, at(server)) as toolbox:
        found = settled(toolbox, "tea")
        assert found.state is ServerState.FAILED
        assert HOSTILE[behaviour] in found.reason


def test_a_redirect_to_another_address_is_not_followed(tmp_path: Path) -> None:
    with serving("redirect") as server, serving() as other:
        server.elsewhere = other.url
        key = (("Authorization", "Bearer secret"),)
        with opened(tmp_path, at(server, headers=key)) as toolbox:
            found = settled(toolbox, "tea")
            assert found.state is ServerState.FAILED
            assert "not followed" in found.reason
        assert other.heard == []


def test_an_address_without_a_server_is_named(tmp_path: Path) -> None:
    with serving() as server:
        closed = at(server)
    with opened(tmp_path, closed, limits=replace(QUICK, start_s=10)) as toolbox:
        found = settled(toolbox, "tea")
        assert found.state is ServerState.FAILED
        assert "connect" in found.reason.lower()


@pytest.mark.parametrize("behaviour", ["", "error", "page", "redirect", "closed"])
def test_secrets_of_an_address_are_in_no_log_and_no_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, behaviour: str
) -> None:
    caplog.set_level(logging.DEBUG)
    with serving(behaviour) as server:
        server.elsewhere = f"{server.url}?key=s3cret%2Dquery"
        address = server.url.replace("//", "//me:s3cret-user@")
        tea = at(server, headers=(("Authorization", "Bearer s3cret-header"),))
        tea = replace(tea, url=f"{address}?mode=long&key=s3cret%2Dquery")
        if behaviour == "closed":
            server.shutdown()
            server.server_close()
        with opened(tmp_path, tea) as toolbox:
            found = settled(toolbox, "tea")
            if behaviour == "":
                assert result_of(toolbox, offered(toolbox, "tea/echo"), text="a").text == "tea"
        assert (found.state is ServerState.READY) == (behaviour == "")
    for text in (caplog.text, found.reason, found.hint, *found.log):
        assert "s3cret" not in text
    if behaviour == "":
        assert f"{server.url}?mode=…&key=…" in caplog.text, "requests are logged"
    if behaviour == "error":
        assert found.reason == "no access with /mcp?mode=long&key=… and Basic …"
