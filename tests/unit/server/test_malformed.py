"""Ten thousand requests that nobody should send."""

from __future__ import annotations

import json
import random
import socket
import struct
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from tests.support.server.served import Served, ServedProcess

PATHS = (
    *("/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/models", "/tokenize"),
    *("/detokenize", "/apply-template", "/health", "/metrics", "/", "//", "/%00", "/v1/models/%2e"),
)
METHODS = ("POST", "POST", "POST", "GET", "PUT", "OPTIONS", "DELETE", "HEAD", "BREW", "post")
DOCUMENTED = {100, 200, 204, 400, 401, 403, 404, 405, 408, 413, 429, 501}
NUM_REQUESTS = 10_000
FIELDS = (
    *("model", "messages", "prompt", "temperature", "top_p", "top_k", "min_p", "max_tokens", "n"),
    *("seed", "stop", "stream", "logit_bias", "logprobs", "top_logprobs", "tools", "tool_choice"),
    *("response_format", "stream_options", "medusa", "enable_thinking", "content", "tokens"),
    *("chat_template_kwargs", "presence_penalty", "max_completion_tokens", "echo", "best_of"),
)


def value(rng: random.Random, depth: int = 0) -> object:
    """Anything that JSON can hold, and often what a field wants."""
    kinds = 10 if depth < 4 else 7
    kind = rng.randrange(kinds)
    if kind == 0:
        return rng.choice([None, True, False])
    if kind == 1:
        return rng.choice([0, 1, -1, 2, 7, 10**9, -(10**20), 1 << 63, 0.5, -0.0, 1e308])
    if kind in (2, 3):
        words = ["", "Hello", "user", "assistant", "tool", "auto", "json_object", "text", "\x00"]
        return rng.choice([*words, "🙂" * 5, "\u202e", "a" * rng.randrange(2000), "llama-pebble"])
    if kind in (4, 5, 6):
        return [{"role": "user", "content": "Hello"}]
    if kind == 7:
        return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    names = ("role", "content", "type", "text", "function", "name", "drafter", "rule", "rows")
    return {rng.choice(names): value(rng, depth + 1) for _ in range(rng.randrange(5))}


def body(rng: random.Random) -> bytes:
    """Return a body: JSON of wrong fields, or no JSON."""
    fields = {name: value(rng) for name in rng.sample(FIELDS, rng.randrange(8))}
    if rng.random() < 0.7:
        fields |= {"messages": [{"role": "user", "content": "Hi"}], "prompt": "Hi", "content": "Hi"}
        fields["max_tokens"] = rng.choice([1, 2, 3])
    text = json.dumps(fields).encode()
    kind = rng.randrange(12)
    if kind == 0:
        return rng.randbytes(rng.randrange(300))
    if kind == 1:
        return text[: rng.randrange(len(text) + 1)]
    if kind == 2:
        place = rng.randrange(len(text))
        return text[:place] + rng.randbytes(3) + text[place:]
    if kind == 3:
        return b"[" * rng.randrange(5000)
    return text


def request(rng: random.Random, port: int) -> bytes:
    """Return a whole request with a possibly malformed head and body."""
    content = body(rng)
    length = len(content)
    if rng.random() < 0.06:
        length = rng.choice([0, length + 5, max(0, length - 5), 10**15])
    head = [f"{rng.choice(METHODS)} {rng.choice(PATHS)} HTTP/1.{rng.choice('1110')}"]
    head.append(f"Host: {rng.choice(['127.0.0.1', 'localhost', '127.0.0.1', 'evil'])}:{port}")
    head.append(f"Content-Length: {length}")
    extra = (
        *("Origin: https://evil.example", "X-Api-Key: \xff", "Content-Length: 3", "Host: again"),
        *("Transfer-Encoding: chunked", "Expect: 100-continue", "Upgrade: websocket", ": empty"),
        *(f"X: {'y' * rng.randrange(1, 90_000)}", "Connection: close", "Accept-Encoding: gzip"),
    )
    if rng.random() < 0.2:
        head.append(rng.choice(extra))
    text = "\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + content
    return text[: rng.randrange(len(text))] if rng.random() < 0.05 else text


def send(served: Served, seed: int) -> int:
    """Send one; the status of the reply, or 0 where there was none."""
    rng = random.Random(seed)
    with served.connect() as connection:
        connection.settimeout(0.05 if rng.random() < 0.05 else 3)
        try:
            connection.sendall(request(rng, served.port))
            if rng.random() < 0.1:  # it goes at once, and not politely
                linger = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                return 0
            if rng.random() < 0.5:
                connection.shutdown(socket.SHUT_WR)
            reply = connection.recv(1 << 14)
        except (TimeoutError, ConnectionError):
            return 0
    return int(reply.split(b" ", 2)[1]) if reply.startswith(b"HTTP/1.") else 0


def ask_without_reading(served: Served, connection: socket.socket) -> None:
    """Ask for a stream, and leave it where it is."""
    fields = {"messages": [{"role": "user", "content": "Hi"}], "stream": True, "max_tokens": 50}
    content = json.dumps(fields).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost:{served.port}\r\n"
    connection.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_ten_thousand_malformed_requests_harm_nothing(tmp_path: Path) -> None:
    served = ServedProcess(tmp_path)
    try:
        send_all(served)
    finally:
        served.close()


def send_all(served: ServedProcess) -> None:
    process = psutil.Process(served.process.pid)
    served.chat("Hello there", max_tokens=5)
    with ExitStack() as lazy, ThreadPoolExecutor(8) as pool:
        for _ in range(8):
            ask_without_reading(served, lazy.enter_context(served.connect()))
        warm = list(pool.map(lambda seed: send(served, seed), range(1000)))
        before = process.memory_info().rss
        rest = list(pool.map(lambda seed: send(served, seed), range(1000, NUM_REQUESTS)))
    counts = {status: (warm + rest).count(status) for status in sorted({*warm, *rest})}
    print(f"statuses of malformed requests: {counts}")
    assert set(counts) - {0} <= DOCUMENTED
    assert counts[200] > 100
    assert counts[400] > 500
    assert served.process.poll() is None
    served.wait_until_idle()
    grown = (process.memory_info().rss - before) / 1e6
    print(f"memory grew by {grown:.1f} MB over 9,000 requests")
    assert grown < 40
    assert served.chat("Hello there", max_tokens=5)["choices"]
    assert not any("Traceback" in line for line in served.lines)


LONG = {"model": "", "max_tokens": 4, "messages": [{"role": "user", "content": "a fox " * 20_000}]}


def test_too_long_a_prompt_is_refused_with_the_message_that_clients_know(served: Served) -> None:
    reply = served.post("/v1/chat/completions", LONG)
    error = reply.json()["error"]
    assert (reply.status_code, error["code"]) == (400, "context_length_exceeded"), error
    assert error["n_prompt_tokens"] > error["n_ctx"] > 0
    # What LiteLLM, LangChain and llama-server's clients look for.
    for words in ("maximum context length is", "exceeds the available context size"):
        assert words in error["message"]
    reply = served.post("/v1/messages", LONG)
    assert reply.status_code == 400
    message = reply.json()["error"]["message"]
    assert message.startswith(f"prompt is too long: {error['n_prompt_tokens']} tokens > ")
