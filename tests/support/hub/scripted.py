"""A Hub that answers what a test says, however odd: bytes, statuses, and functions that write them.

It runs in threads of the test; `publish` gives it repositories that are in order.
"""

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.support.hub.installed import blob_id

SHA = "c" * 40
LARGE = (".safetensors", ".bin", ".pt")


@dataclass(frozen=True)
class Answer:
    """Response to a request."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


Script = Callable[[BaseHTTPRequestHandler], None]


class ScriptedHub:
    """A server whose answers are given by their paths.

    Attributes:
        endpoint: Its address.
        answers: What it answers; all else is 404.
        requested: Paths of all requests so far.
        over: Set when it ends; a script that waits waits for this.
    """

    def __init__(self) -> None:
        self.answers: dict[str, Answer | Script] = {}
        self.requested: list[str] = []
        self.over = threading.Event()
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                path = unquote(urlsplit(self.path).path)
                hub.requested.append(path)
                answer = hub.answers.get(path, Answer(status=404))
                if isinstance(answer, Answer):
                    send(self, answer)
                else:
                    answer(self)

            def log_message(self, *args: Any) -> None:
                """Print nothing."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"

    def publish(self, repo: str, files: dict[str, bytes]) -> dict[str, Any]:
        """Publish a repository; returns its listing, which a test may change."""
        for name, data in files.items():
            self.answers[f"/{repo}/resolve/{SHA}/{name}"] = file_script(data)
        listing = listing_of(files)
        self.list(repo, listing)
        return listing

    def list(self, repo: str, listing: object) -> None:
        """Set the listing of a repository."""
        self.answers[f"/api/models/{repo}/revision/main"] = Answer(json.dumps(listing).encode())

    def close(self) -> None:
        """End it and everything that waits in it."""
        self.over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class Server(ThreadingHTTPServer):
    """Quiet about clients that leave, which is what they are to do."""

    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing."""


@contextmanager
def scripted_hub() -> Iterator[ScriptedHub]:
    """Run a scripted Hub during a with block."""
    hub = ScriptedHub()
    try:
        yield hub
    finally:
        hub.close()


def send(handler: BaseHTTPRequestHandler, answer: Answer) -> None:
    """Send an answer."""
    handler.send_response(answer.status)
    for name, value in answer.headers.items():
        handler.send_header(name, value)
    if answer.status not in (204, 304):
        handler.send_header("Content-Length", str(len(answer.body)))
    handler.end_headers()
    if answer.status not in (204, 304):
        handler.wfile.write(answer.body)


def file_script(data: bytes) -> Script:
    """Serve a file from the requested offset."""

    def script(handler: BaseHTTPRequestHandler) -> None:
        requested = handler.headers.get("Range")
        start = int(requested.removeprefix("bytes=").partition("-")[0]) if requested else 0
        reported = (
            {"Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}"} if requested else {}
        )
        send(handler, Answer(data[start:], 206 if requested else 200, reported))

    return script


def listing_of(files: dict[str, bytes]) -> dict[str, Any]:
    """Return the Hub's listing of files."""
    siblings = [sibling(name, data) for name, data in files.items()]
    return {"id": "o/x", "sha": SHA, "siblings": siblings}


def sibling(name: str, data: bytes) -> dict[str, Any]:
    """Return the Hub's listing entry of a file."""
    is_large = name.endswith(LARGE)
    reported: dict[str, Any] = {
        "rfilename": name,
        "size": len(data),
        "blobId": blob_id(data, False),
    }
    if is_large:
        sha256 = hashlib.sha256(data).hexdigest()
        reported["lfs"] = {"sha256": sha256, "size": len(data), "pointerSize": 134}
    return reported


def silent(hub: ScriptedHub, before: bytes, reached: threading.Event) -> Script:
    """Serve a part, and then nothing."""

    def script(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(before)
        reached.set()
        hub.over.wait()

    return script
