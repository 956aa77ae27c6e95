"""A started server: `medusa serve` in a process of its own, or in a thread of this one."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest

from medusa_core.cli import serve, serving
from medusa_core.cli.load_arguments import model_dirs
from medusa_core.client import Client
from medusa_core.errors import MedusaError
from medusa_core.server.installed_models import InstalledModels
from medusa_core.server.request_log import JsonLog
from medusa_core.server.server import Server
from medusa_core.server.server_thread import ServerThread

WAIT_S = 240.0
STOP_S = 120.0  # two servers may end with the last test, which has five minutes
ROOT = Path(__file__).resolve().parents[3]


class Served:
    """Address and keys of a running server.

    Attributes:
        log: Its JSON log.
        address: Scheme, host and port.
        key: The key that it made; empty where it made none.
        headers: Headers with the key.
        port: Port.
    """

    log: Path
    address: str
    key: str

    @property
    def headers(self) -> dict[str, str]:
        return {"x-api-key": self.key} if self.key else {}

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    @property
    def base_url(self) -> str:
        """Base URL for OpenAI's clients."""
        return f"http://127.0.0.1:{self.port}/v1"

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def post(self, path: str, body: Any, **headers: str) -> httpx2.Response:
        """Send JSON, or bytes as they are; with the key unless `headers` have another one."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = self.headers | headers
        return httpx2.post(self.url(path), content=content, headers=headers, timeout=240)

    def get(self, path: str, **headers: str) -> httpx2.Response:
        return httpx2.get(self.url(path), headers=self.headers | headers, timeout=240)

    def chat(self, text: str, **fields: Any) -> dict[str, Any]:
        """Request one answer."""
        body = {"messages": [{"role": "user", "content": text}], "temperature": 0, **fields}
        reply = self.post("/v1/chat/completions", body)
        assert reply.status_code == 200, reply.text
        found: dict[str, Any] = reply.json()
        return found

    def error(self, path: str, body: Any, status: int, **headers: str) -> dict[str, Any]:
        """The error of a request, in OpenAI's form."""
        reply = self.post(path, body, **headers)
        assert reply.status_code == status, reply.text
        found: dict[str, Any] = reply.json()["error"]
        assert {"message", "type", "param", "code"} <= set(found)
        return found

    def record(self, path: str, **fields: object) -> dict[str, Any]:
        """Wait until the log's newest record of a path has these fields, and return it.

        A line is written after its reply.
        """
        until = time.monotonic() + WAIT_S
        while True:
            lines = self.log.read_text(encoding="utf-8").splitlines(keepends=True)
            whole = [json.loads(line) for line in lines if line.endswith("\n")]
            found: dict[str, Any] = next((r for r in reversed(whole) if r["path"] == path), {})
            if found and fields.items() <= found.items():
                return found
            assert time.monotonic() < until, found
            time.sleep(0.01)

    def metric(self, name: str) -> float:
        """A figure of `/metrics`."""
        text = self.get("/metrics").text
        return float(re.search(rf"^medusa_{name} (\S+)$", text, re.MULTILINE).group(1))  # type: ignore[union-attr]

    def wait_for_running(self, count: int) -> None:
        """Wait until so many answers run at once."""
        until = time.monotonic() + WAIT_S
        while self.metric("answers_running") < count:
            assert time.monotonic() < until, "it never ran"
            time.sleep(0.005)

    def wait_until_idle(self) -> None:
        """Wait until no answer runs."""
        until = time.monotonic() + WAIT_S
        while self.metric("answers_running") or self.metric("answers_waiting"):
            assert time.monotonic() < until
            time.sleep(0.01)

    def connect(self) -> socket.socket:
        """A plain connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=240)

    def raw(self, text: bytes) -> bytes:
        """Send bytes and return the response until the server closes."""
        with self.connect() as connection:
            connection.sendall(text)
            received = b""
            while data := connection.recv(1 << 16):
                received += data
        return received


class ServedProcess(Served):
    """The process.

    Attributes:
        lines: What it has printed.
    """

    def __init__(
        self,
        folder: Path,
        *options: str,
        threads: int = 1,
        models: Sequence[Path] = (),
    ) -> None:
        """Start it.

        Args:
            folder: For its files.
            options: More of the command line.
            threads: Of the CPU.
            models: Folders of models that are installed.
        """
        (folder / "medusa-chat").mkdir(parents=True)
        listed = json.dumps({"folders": [str(model) for model in models]})
        (folder / "medusa-chat" / "folders.json").write_text(listed, encoding="utf-8")
        self.log = folder / "requests.jsonl"
        command = [sys.executable, "-m", "medusa_core", "serve", "--port", "0"]
        command += ["--threads", str(threads), "--no-learned", "--json-log", str(self.log)]
        self.process = subprocess.Popen(
            [*command, *options],
            cwd=ROOT,
            env=os.environ
            | {"MEDUSA_API_KEY": "", "XDG_DATA_HOME": str(folder), "HF_HOME": str(folder / "hf")}
            | {"XDG_STATE_HOME": str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if not self._ready.wait(WAIT_S):
            self.process.kill()
        assert "ready; Ctrl-C ends it" in self.lines, self.lines
        text = "\n".join(self.lines)
        self.address = re.search(r"http://\S+(?=/v1)", text).group()  # type: ignore[union-attr]
        made = re.search(r"made for this run: (\S+)", text)
        self.key = made.group(1) if made else ""

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            if line.startswith("ready"):
                self._ready.set()
        self._ready.set()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End it by a signal; returns its exit status."""
        self.process.send_signal(number)
        status = self.process.wait(WAIT_S)
        self._reader.join()
        return status

    def close(self) -> None:
        """End it, however it is."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(WAIT_S)
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()


class ServedThread(Served):
    """Server in a thread, which saves starting a process and importing torch."""

    def __init__(self, folder: Path, *options: str, models: Sequence[Path] = ()) -> None:
        """Start it.

        Args:
            folder: For its files.
            options: More of the command line.
            models: Folders of models that are installed.
        """
        self.log = folder / "requests.jsonl"
        words = ["--port", "0", "--threads", "1", "--no-learned", *options]
        parser = argparse.ArgumentParser()
        serve.add_arguments(parser)
        args = parser.parse_args(words)
        model_dir, _ = model_dirs(args)
        source = InstalledModels(
            model_dir, folder / "hf", lambda: tuple(models), serving._loading(args, model_dir)
        )
        made = serving._options(args)
        self.key = made.api_key
        self._ready = threading.Event()
        self._file = self.log.open("a", encoding="utf-8")
        self._server = Server(made, Client, source, JsonLog(self._file))
        self._failed: list[MedusaError] = []
        self._thread = ServerThread(self._server, self._announce, self._failed.append)
        assert self._ready.wait(WAIT_S), self._failed

    def _announce(self, address: str) -> None:
        self.address = address
        self._ready.set()

    def close(self) -> None:
        """End it."""
        self._thread.stop(STOP_S)
        self._file.close()
        if self._thread.is_alive:
            stacks = [traceback.format_stack(one) for one in sys._current_frames().values()]
            pytest.fail("the server runs on:\n" + "\n".join(map("".join, stacks)), pytrace=False)


def events_of(lines: Sequence[str]) -> list[dict[str, Any]]:
    """The JSON objects of a stream; `[DONE]` must be the last."""
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    assert data[-1] == "[DONE]"
    return [json.loads(one) for one in data[:-1]]
