"""Programs that ask for several models at once: each is answered by the one that it named."""

from __future__ import annotations

import random
import threading
import time

import httpx2
import pytest

from tests.support.server.served import Served

PROMPTS = ("one", "two two", "three three three")
NAMES, BROKEN = ("tiny-target", "tiny-second"), "broken-target"


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
    with httpx2.stream("POST", url, json=body, headers=server.headers, timeout=240) as reply:
        for _ in reply.iter_bytes():
            break


def check(server: Served, num_clients: int, num_requests: int) -> None:
    """Let clients request models in any order, and compare each answer with a single one."""
    expected = {(name, text): ask(server, name, text)[2] for name in NAMES for text in PROMPTS}
    assert len(set(expected.values())) > len(PROMPTS)
    wrong: list[object] = []

    def use(seed: int) -> None:
        dice = random.Random(seed)
        for _ in range(num_requests):
            name, prompt = dice.choice((*NAMES, BROKEN)), dice.choice(PROMPTS)
            if name != BROKEN and dice.random() < 0.2:
                leave(server, name, prompt)
                continue
            status, model, text = ask(server, name, prompt)
            fits = (status, model, text) == (200, name, expected.get((name, prompt)))
            if not (status >= 400 if name == BROKEN else fits):
                wrong.append((name, prompt, status, model, text))

    clients = [threading.Thread(target=use, args=(seed,)) for seed in range(num_clients)]
    for client in clients:
        client.start()
    until = time.monotonic() + 60 * num_requests
    for client in clients:
        client.join(until - time.monotonic())
    assert not any(client.is_alive() for client in clients), "somebody waits for ever"
    assert wrong == []
    server.wait_until_idle()
    assert ask(server, NAMES[0], PROMPTS[0])[2] == expected[NAMES[0], PROMPTS[0]]


@pytest.mark.timeout(600)
@pytest.mark.expects_errors
def test_each_program_is_answered_by_the_model_that_it_names(guarded: Served) -> None:
    check(guarded, num_clients=4, num_requests=2)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_models_are_switched_many_times(guarded: Served) -> None:
    check(guarded, num_clients=8, num_requests=12)
