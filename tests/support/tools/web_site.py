"""A web site on loopback that counts its connections and answers as a test wants."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

TIMEOUT_S = 30.0


def reply(
    body: bytes = b"", kind: str = "text/html", status: int = 200, **headers: str
) -> Callable[[socket.socket], None]:
    """A response with a body; underscores in names of headers are hyphens."""
    lines = [f"HTTP/1.1 {status} Fine", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    data = "\r\n".join(lines).encode() + b"\r\n\r\n" + body
    return lambda connection: connection.sendall(data)


@dataclass
class WebSite:
    """A running site.

    Attributes:
        host: Host and port.
        requests: Head of each request.
        num_connections: Connections that were accepted.
    """

    host: str
    requests: list[str] = field(default_factory=list)
    num_connections: int = 0

    def url(self, path: str = "/") -> str:
        return f"http://{self.host}{path}"


@contextmanager
def web_site(
    routes: dict[str, Callable[[socket.socket], None]],
    handle: Callable[[socket.socket], None] | None = None,
) -> Iterator[WebSite]:
    """Serve routes: each writes its response to the connection; `handle` has all of it instead."""
    listener = socket.create_server(("127.0.0.1", 0))
    site = WebSite(f"127.0.0.1:{listener.getsockname()[1]}")
    threads: list[threading.Thread] = []
    last = socket.socket()
    last.bind(("127.0.0.1", 0))

    def answer(connection: socket.socket) -> None:
        connection.settimeout(TIMEOUT_S)
        with connection, suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head and (piece := connection.recv(4096)):
                head += piece
            if not head:
                return
            site.requests.append(head.decode())
            path = head.split(b" ")[1].decode().partition("?")[0]
            routes.get(path, reply(status=404))(connection)

    def accept() -> None:
        while True:
            connection, peer = listener.accept()
            if peer == last.getsockname():  # all earlier ones have been counted
                connection.close()
                return
            site.num_connections += 1
            threads.append(threading.Thread(target=handle or answer, args=(connection,)))
            threads[-1].start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield site
    finally:
        with last, listener:
            last.connect(listener.getsockname())
            accepting.join(TIMEOUT_S)
        for thread in threads:
            thread.join(TIMEOUT_S)
