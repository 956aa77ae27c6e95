"""A server of real HTTP on loopback that answers as a test wants, also wrongly."""

import asyncio
import json
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MODELS = ({"id": "small", "meta": {"n_ctx_train": 4096}}, {"id": "other"})
# As llama-server sends them in its last chunk.
TIMINGS = {
    "prompt_n": 12,
    "prompt_ms": 40.0,
    "predicted_n": 50,
    "predicted_ms": 500.0,
    "draft_n": 60,
    "draft_n_accepted": 40,
}
USAGE = {
    "prompt_tokens": 20,
    "completion_tokens": 50,
    "prompt_tokens_details": {"cached_tokens": 8},
}


@dataclass(frozen=True)
class Asked:
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True)
class Reply:
    """Response of the endpoint: bytes, and numbers for pauses in seconds."""

    pieces: tuple[bytes | float, ...] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})
    is_cut: bool = False  # without an end
    is_raw: bool = False  # without a beginning


def as_reply(value: object, status: int = 200, **headers: str) -> Reply:
    """A reply of JSON."""
    kept = {
        "content-type": "application/json",
        **{k.replace("_", "-"): v for k, v in headers.items()},
    }
    return Reply((json.dumps(value).encode(),), status, kept)


def event(value: object) -> bytes:
    """An event of a stream."""
    return f"data: {json.dumps(value)}\n\n".encode()


def delta(**parts: object) -> bytes:
    """A chunk of an answer."""
    return event({"choices": [{"index": 0, "delta": parts, "finish_reason": None}]})


def finish(reason: str = "stop", **more: object) -> bytes:
    """The last chunk that belongs to a choice."""
    return event({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], **more})


DONE = b"data: [DONE]\n\n"
ANSWER = (
    delta(role="assistant", content=""),
    *(delta(content=word) for word in ("One", " two", " three.")),
    finish(),
    event({"choices": [], "usage": USAGE, "timings": TIMINGS}),
    DONE,
)

AnswerTo = Callable[[Asked], Reply]


class FakeEndpoint:
    """Runs in a thread; `with` starts and ends it.

    Attributes:
        url: Its address.
        asked: What it was asked, in order.
        models: What `/models` says.
        answer: What `/chat/completions` says.
        key: What it wants; empty for nothing.
    """

    def __init__(self, encryption: ssl.SSLContext | None = None) -> None:
        self._encryption = encryption
        self.asked: list[Asked] = []
        self.models: Reply = as_reply({"object": "list", "data": MODELS})
        self.answer: Reply | AnswerTo = Reply(ANSWER)
        self.key = ""
        self.num_left = 0  # who went away before the end
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_up = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "FakeEndpoint":
        self._thread.start()
        assert self._is_up.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    @property
    def bodies(self) -> list[Any]:
        """Bodies of the requests for answers."""
        return [one.body for one in self.asked if one.path.endswith("/chat/completions")]

    def _run(self) -> None:
        self._end = asyncio.Event()
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._encryption)
        port = server.sockets[0].getsockname()[1]
        scheme = "http" if self._encryption is None else "https"
        self.url = f"{scheme}://127.0.0.1:{port}/v1"
        self._is_up.set()
        await self._end.wait()
        server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            self.num_left += 1
        finally:
            writer.close()
            self._tasks.discard(task)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        line = await reader.readline()
        if not line:
            return False
        method, path, _ = line.decode().split()
        headers: dict[str, str] = {}
        while (header := (await reader.readline()).decode().strip()) != "":
            name, _, value = header.partition(":")
            headers[name.lower()] = value.strip()
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        asked = Asked(method, path, headers, json.loads(raw) if raw else None)
        self.asked.append(asked)
        return await self._reply(self._reply_to(asked), writer)

    def _reply_to(self, asked: Asked) -> Reply:
        if self.key and asked.headers.get("authorization") != f"Bearer {self.key}":
            sent = asked.headers.get("authorization", "nothing")
            return as_reply({"error": {"message": f"Incorrect API key provided: {sent}"}}, 401)
        if asked.path.endswith("/models"):
            return self.models
        if not asked.path.endswith("/chat/completions"):
            return as_reply({"error": {"message": "no such page"}}, 404)
        return self.answer if isinstance(self.answer, Reply) else self.answer(asked)

    async def _reply(self, reply: Reply, writer: asyncio.StreamWriter) -> bool:
        if not reply.is_raw:
            headers = {**reply.headers, "transfer-encoding": "chunked"}
            lines = [f"HTTP/1.1 {reply.status} so", *(f"{n}: {v}" for n, v in headers.items())]
            writer.write("\r\n".join([*lines, "", ""]).encode())
        for piece in reply.pieces:
            if isinstance(piece, float):
                await asyncio.sleep(piece)
            elif reply.is_raw:
                writer.write(piece)
            else:
                writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            await writer.drain()
        if reply.is_cut or reply.is_raw:
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True
