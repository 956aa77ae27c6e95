"""llama-cpp-python's server as the other machine.

MEDUSA_LLAMACPP_PYTHON names a Python that has it; else this is skipped.
"""

import asyncio
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import replace

import pytest

from medusa_core.messages import (
    EndpointModel,
    GenerateSettings,
    GenerationDone,
    LoadRemote,
    StepDone,
    StopReason,
)
from medusa_core.remote.connecting import fetch_models
from tests.support.remote.fixtures import asks, done_of, remote_client, run
from tests.tools import real_models

pytestmark = pytest.mark.slow
PYTHON = os.environ.get("MEDUSA_LLAMACPP_PYTHON", "")
KEY = "a-key-for-llama"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a started server."""

    model = real_models.find("smollm2")
    if not PYTHON or model is None:
        pytest.skip("real model missing: or no Python with llama-cpp-python's server")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [PYTHON, "-m", "llama_cpp.server", "--model", str(model), "--port", str(port)]
    log = (tmp_path_factory.mktemp("llama") / "log").open("w")
    options = ["--host", "127.0.0.1", "--n_ctx", "2048", "--model_alias", "smol", "--api_key", KEY]
    process = subprocess.Popen([*command, *options], stdout=log, stderr=subprocess.STDOUT)
    try:
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()
        log.close()


def load_of_llama(address: str) -> LoadRemote:
    return LoadRemote("", "load", EndpointModel(address, "smol", "llama"), key=KEY)


def greedy(num_tokens: int) -> GenerateSettings:
    return GenerateSettings(rule="greedy", max_new_tokens=num_tokens)


def test_models_of_a_llama_server_are_listed(address: str) -> None:
    assert [one.model_id for one in fetch_models(address, "llama", KEY)] == ["smol"]


def test_a_llama_server_answers_deterministically_and_within_the_limit(address: str) -> None:
    async def work() -> None:
        async with remote_client() as client:
            await client.load(load_of_llama(address))
            request = replace(asks("Name three colours."), settings=greedy(24))
            first, second = await done_of(client, request), await done_of(client, request)
            assert first.text == second.text != ""
            assert first.stop_reason is StopReason.MAX_TOKENS
            stop = replace(greedy(24), stop=(first.text.split()[3],))
            cut = await done_of(client, replace(request, settings=stop))
            assert len(cut.text) < len(first.text)

    run(work())


def test_stopping_ends_the_servers_answer(address: str) -> None:
    async def work() -> None:
        ended: list[GenerationDone] = []
        async with remote_client() as client:
            client.listen(lambda e: ended.append(e) if isinstance(e, GenerationDone) else None)
            await client.load(load_of_llama(address))
            request = replace(asks("Write a long story."), settings=greedy(1500))
            async with aclosing(client.generate(request)) as events:
                async for event in events:
                    if isinstance(event, StepDone) and event.step == 3:
                        break
            while not ended:
                await asyncio.sleep(0.01)
            assert ended[0].stop_reason is StopReason.CANCELLED
            short = replace(asks("Hello"), settings=greedy(4))
            assert (await done_of(client, short)).text

    run(work())
