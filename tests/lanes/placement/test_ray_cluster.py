"""Three stages on one machine over Ray: the same texts, whoever is killed; trees pay for delays."""

import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from medusa_core.engine.direct import generate
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings, LoadOptions
from medusa_core.speculation.tuning.calibration import measure_costs
from medusa_core.speculation.tuning.row_policy import RowPolicy
from medusa_core.system.prompts import read_prompts
from medusa_core.system.resources import (
    demo_heads_dir,
    demo_model_dir,
    prompts_dir,
)
from tests.support.engine.laws import plainly, user_says

ROOT = Path(__file__).parents[3]
OPTIONS = LoadOptions("float32")
SETTINGS = GenerateSettings("composite", max_new_tokens=96)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore"),  # Ray's own
]


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


@contextmanager
def three_stages(*arguments: str) -> Iterator[str]:
    """Three times `serve-layers`; gives the cluster's address."""
    port = free_port()
    address = f"127.0.0.1:{port}"
    wheres = (["--port", str(port)], ["--join", address], ["--join", address])
    started: list[subprocess.Popen[str]] = []
    try:
        for where in wheres:
            command = [sys.executable, "-m", "medusa_core", "serve-layers", *where, *arguments]
            stage = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
            started.append(stage)
            assert stage.stdout is not None
            assert address in stage.stdout.readline()
        yield address
    finally:
        for stage in reversed(started):
            stage.terminate()
            stage.wait(60)


@pytest.fixture(scope="module")
def token(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A token of these tests' own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path_factory.mktemp("token") / "token"))
        yield


@contextmanager
def divided(address: str) -> Iterator[Target]:
    options = LoadOptions("float32", cluster=address)
    target = load_target(demo_model_dir(), demo_heads_dir(), options)
    try:
        yield target
    finally:
        target.runner.leave()


@pytest.fixture(scope="module")
def whole() -> Target:
    return load_target(demo_model_dir(), demo_heads_dir(), OPTIONS)


def pid_of(place: str) -> int:
    found = re.search(r"process (\d+)", place)
    assert found is not None
    return int(found[1])


def test_thirty_texts_and_those_of_twenty_killed_stages_are_equal(
    token: None, whole: Target
) -> None:
    read = read_prompts(prompts_dir() / "in_domain.jsonl", 30)
    prompts = [user_says(prompt.turns[0]) for prompt in read]
    expected = [generate(whole, prompt, SETTINGS).text for prompt in prompts]
    rng = random.Random(1)
    with three_stages() as address, divided(address) as target:
        pipeline = target.runner.pipeline
        assert len(pipeline.active) == 3
        assert [generate(target, prompt, SETTINGS).text for prompt in prompts] == expected
        num_met = 0
        for number in range(20):
            victim = pid_of(rng.choice(pipeline.active).offer.place)
            timer = threading.Timer(rng.uniform(0.0, 0.25), os.kill, (victim, signal.SIGKILL))
            epoch = pipeline.epoch
            timer.start()
            assert generate(target, prompts[number], SETTINGS).text == expected[number]
            timer.join()
            num_met += pipeline.epoch > epoch
            time.sleep(0.1)
            generate(target, prompts[number], plainly(SETTINGS))  # a kill in the pause shows here
        print(f"{num_met} of 20 kills were met in mid-answer")
        assert num_met >= 5


def test_with_a_delay_per_hop_trees_keep_almost_all_of_their_tokens(token: None) -> None:
    read = read_prompts(prompts_dir() / "in_domain.jsonl", 6)
    prompts = [user_says(prompt.turns[0]) for prompt in read]
    with three_stages("--delay-ms", "20") as address, divided(address) as target:
        row_policy = RowPolicy(target, measure_costs(target))
        rates = {}
        for settings in (plainly(SETTINGS), SETTINGS):
            done = [generate(target, prompt, settings, row_policy=row_policy) for prompt in prompts]
            steps = sum(each.num_steps for each in done)
            tokens = sum(sum(each.accept_lengths) for each in done)
            rates[settings.drafter] = (tokens / sum(e.decode_s for e in done), tokens / steps)
        gain, accepted = rates["composite"][0] / rates["none"][0], rates["composite"][1]
        print(f"speed-up {gain:.2f} at {accepted:.2f} tokens per step: {gain / accepted:.2f}")
        assert gain >= 0.85 * accepted


def test_a_machine_with_another_token_is_refused(
    token: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with three_stages() as address:
        command = [sys.executable, "-m", "medusa_core", "generate", "--cluster", address]
        wrong = {**os.environ, "RAY_AUTH_TOKEN": "0" * 64}
        found = subprocess.run(
            [*command, "--prompt", "Hello"],
            env=wrong,
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=300,
            check=False,
        )
        assert found.returncode == 1
        assert f"error: The cluster at {address} can't be reached" in found.stderr
