"""Programs that ask for several models at once: each is answered by the one that it named."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.support.models.tiny import TinySpec, write_tiny
from tests.support.server.served import Served

PROMPTS = ("one", "two two", "three three three")
NUM_CLIENTS = 8


@pytest.fixture
def switching(tmp_path: Path) -> Iterator[Served]:
    """A server of three models, two that answer and one that can't be loaded."""
    models = [write_tiny(tmp_path / f"m{seed}", TinySpec(seed=seed)) for seed in (1, 2)]
    broken = write_tiny(tmp_path / "broken")
    (broken / "tokenizer.json").write_text("{}", encoding="utf-8")
    process = Served(tmp_path / "served", "--model", str(models[0]), models=(*models, broken))
    yield process
    process.close()


def ask(server: Served, model: str, prompt: str) -> tuple[int, str, str]:
    """Status, the model that answered, and its text."""
    fields = {"model": model, "max_tokens": 16, "temperature": 0}
    body = {"messages": [{"role": "user", "content": prompt}], **fields}
    reply = server.post("/v1/chat/completions", body)
    found = reply.json()
    if reply.status_code != 200:
        return reply.status_code, "", found["error"]["message"]
    return 200, found["model"], found["choices"][0]["message"]["content"]


def leave(server: Served, model: str, prompt: str) -> None:
    """Ask for a long stream, and go away after its first bytes."""
    fields = {"model": model, "max_tokens": 400, "temperature": 0, "stream": True}
    body = {"messages": [{"role": "user", "content": prompt}], **fields}
    url = server.url("/v1/chat/completions")
    with httpx2.stream("POST", url, json=body, timeout=240) as reply:
        for _ in reply.iter_bytes():
            break


def check(server: Served, num_requests: int) -> None:
    """Let clients ask for models in any order, and compare each answer with that of one alone."""
    names = ("m1", "m2")
    expected = {(name, text): ask(server, name, text)[2] for name in names for text in PROMPTS}
    assert len(set(expected.values())) > len(PROMPTS)
    wrong: list[object] = []

    def use(seed: int) -> None:
        dice = random.Random(seed)
        for _ in range(num_requests):
            name, prompt = dice.choice((*names, "broken")), dice.choice(PROMPTS)
            if name != "broken" and dice.random() < 0.2:
                leave(server, name, prompt)
                continue
            status, model, text = ask(server, name, prompt)
            fits = (status, model, text) == (200, name, expected.get((name, prompt)))
            if not (status >= 400 if name == "broken" else fits):
                wrong.append((name, prompt, status, model, text))

    clients = [threading.Thread(target=use, args=(seed,)) for seed in range(NUM_CLIENTS)]
    for client in clients:
        client.start()
    until = time.monotonic() + 60 * num_requests
    for client in clients:
        client.join(until - time.monotonic())
    assert not any(client.is_alive() for client in clients), "somebody waits for ever"
    assert wrong == []
    server.wait_until_idle()
    assert ask(server, "m1", PROMPTS[0])[2] == expected["m1", PROMPTS[0]]


@pytest.mark.timeout(600)
def test_each_program_is_answered_by_the_model_that_it_names(switching: Served) -> None:
    check(switching, num_requests=2)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_models_are_switched_for_long(switching: Served) -> None:
    check(switching, num_requests=12)
