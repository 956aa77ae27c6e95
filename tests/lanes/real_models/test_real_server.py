"""The server on SmolLM2, under load: nothing is lost or mixed, and nothing stays behind."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest

from tests.conftest import MISSING
from tests.support.server.served import Served, ServedProcess, events_of
from tests.tools import real_models

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

Find = Callable[[str], Path]
NUM_STREAMS = 200
MOST_OVERHEAD_S = 0.1  # however busy the cores are; what is measured is printed
SUBJECTS = (
    "rain",
    "bread",
    "the moon",
    "a violin",
    "winter",
    "glass",
    "rivers",
    "bees",
    "salt",
    "ink",
)
ASKS = ("Explain", "Describe", "Praise", "Tell a story about", "Ask a question about")
NOTES = ("briefly", "for a child", "as a poem", "in plain words")
QUESTIONS = [f"{ask} {what} {how}." for ask in ASKS for what in SUBJECTS for how in NOTES]


@pytest.fixture(scope="module")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedProcess]:
    path = real_models.find("smollm2")
    if path is None:
        pytest.skip(MISSING + "smollm2")
    folder = tmp_path_factory.mktemp("smollm2")
    process = ServedProcess(folder, "--model", str(path), "--queue", "256", threads=2)
    yield process
    process.close()


def body(question: str, **fields: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": question}]
    return {"messages": messages, "temperature": 0, "max_tokens": 16, **fields}


def stream(served: Served, question: str) -> tuple[str, float]:
    """An answer as it comes, and the seconds to its first byte."""
    text, first = "", 0.0
    lines = []
    started = time.perf_counter()
    with httpx2.stream(
        "POST", served.url("/v1/chat/completions"), json=body(question, stream=True), timeout=900
    ) as reply:
        assert reply.status_code == 200
        for line in reply.iter_lines():
            first = first or time.perf_counter() - started
            lines.append(line)
    for event in events_of(lines):
        text += event["choices"][0]["delta"].get("content", "")
    return text, first


def all_at_once(served: Served) -> list[str]:
    with ThreadPoolExecutor(NUM_STREAMS) as pool:
        return [text for text, _ in pool.map(lambda one: stream(served, one), QUESTIONS)]


def test_two_hundred_concurrent_streams_equal_single_ones(smollm2: ServedProcess) -> None:
    assert len(set(QUESTIONS)) == NUM_STREAMS
    process = psutil.Process(smollm2.process.pid)
    alone = [stream(smollm2, question)[0] for question in QUESTIONS]
    all_at_once(smollm2)
    before = process.memory_info().rss
    started = time.perf_counter()
    together = all_at_once(smollm2)
    seconds = time.perf_counter() - started
    grown = (process.memory_info().rss - before) / 1e6
    print(f"200 streams in {seconds:.1f} s; memory grew by {grown:.1f} MB")
    assert together == alone
    assert len(set(alone)) > NUM_STREAMS / 2
    assert grown < 50


def test_two_hundred_killed_clients_leave_no_request_behind(smollm2: ServedProcess) -> None:
    question = body("Tell a long story.", stream=True, max_tokens=1000, logit_bias={"2": -100})
    content = json.dumps(question).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost:{smollm2.port}\r\n"
    text = f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content
    with ExitStack() as clients:
        for number in range(NUM_STREAMS):
            client = clients.enter_context(smollm2.connect())
            client.sendall(text)
            if number < 4:
                client.recv(1)  # in the middle of its stream
    started = time.monotonic()
    smollm2.wait_until_idle()
    idle_s = time.monotonic() - started
    print(f"200 clients are gone, and no answer runs after {idle_s:.2f} s")
    assert idle_s < 3
    assert stream(smollm2, QUESTIONS[0])[0]


def test_the_first_byte_follows_the_engines_first_token_soon(smollm2: ServedProcess) -> None:
    beyond = []
    address = smollm2.url("/v1/chat/completions")
    with httpx2.Client(timeout=60) as client:
        for question in QUESTIONS[:100]:
            started = time.perf_counter()
            with client.stream("POST", address, json=body(question, stream=True)) as reply:
                lines = reply.iter_lines()
                received = [next(lines)]
                first_s = time.perf_counter() - started
                received += lines
            timings = events_of(received)[-1]["timings"]
            beyond.append(first_s - timings["prompt_ms"] / 1000)
    p95 = statistics.quantiles(beyond, n=20)[-1]
    print(
        f"first byte beyond the engine's own: median {statistics.median(beyond) * 1e3:.1f} ms, "
        f"p95 {p95 * 1e3:.1f} ms"
    )
    assert p95 <= MOST_OVERHEAD_S


def test_eight_clients_get_more_tokens_per_second_than_one(smollm2: ServedProcess) -> None:
    address = smollm2.url("/v1/chat/completions")

    def answered(client: httpx2.Client, question: str) -> int:
        plain = body(question, max_tokens=128, medusa={"drafts": False})
        return int(client.post(address, json=plain).json()["timings"]["predicted_n"])

    def ratio(client: httpx2.Client, pool: ThreadPoolExecutor) -> float:
        started = time.perf_counter()
        alone = sum(answered(client, question) for question in QUESTIONS[:4])
        alone_per_s = alone / (time.perf_counter() - started)
        started = time.perf_counter()
        together = sum(pool.map(lambda one: answered(client, one), QUESTIONS[10:18]))
        together_per_s = together / (time.perf_counter() - started)
        print(f"plain: one client {alone_per_s:.0f} tokens/s, eight {together_per_s:.0f}")
        return together_per_s / alone_per_s

    with httpx2.Client(timeout=300) as client, ThreadPoolExecutor(8) as pool:
        # A bound that other work on the cores doesn't break; what is measured is printed.
        assert max(ratio(client, pool) for _ in range(4)) >= 1.5
