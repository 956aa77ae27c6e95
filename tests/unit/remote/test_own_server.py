"""Our own server in another process, as the other machine."""

import asyncio
import json
from contextlib import aclosing
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from medusa_core.__main__ import main
from medusa_core.api import demo_model, start_engine
from medusa_core.client import Client
from medusa_core.errors import EndpointKeyError, EndpointModelError
from medusa_core.messages import EndpointModel as Model
from medusa_core.messages import (
    Generate,
    GenerateSettings,
    LoadModel,
    LoadRemote,
    StepDone,
    StopReason,
    shown_text,
)
from tests.support.remote.fixtures import asks, done_of, events_of, no_key, remote_client, run
from tests.support.server.served import Served

PROMPT = "Write a short story about a cat."
MODEL = "llama-pebble"


def load_from(server: Served, key: str | None = None, model_id: str = MODEL) -> LoadRemote:
    endpoint = Model(server.base_url, model_id, "the other one")
    return LoadRemote("", "load", endpoint, key=server.key if key is None else key)


def story(**settings: object) -> Generate:
    chosen = replace(GenerateSettings(rule="greedy", max_new_tokens=40), **settings)
    return replace(asks(PROMPT), settings=chosen)


def test_our_server_gives_the_same_text_and_its_acceptance_rate(guarded: Served) -> None:
    async def work() -> None:
        async with Client(start_engine) as client:
            loaded = await client.load(load_from(guarded))
            assert loaded.is_remote
            assert loaded.name == "llama-pebble"
            _, *steps, there = await events_of(client, story())
            model, heads = demo_model()
            await client.load(LoadModel("", "here", model, heads, num_threads=1))
            here = await done_of(client, story(drafter="medusa"))
            assert there.text == here.text == shown_text(steps)
            assert there.stop_reason is here.stop_reason
            assert there.num_new_tokens == here.num_new_tokens
            assert there.num_prompt_tokens == here.num_prompt_tokens
            assert 0 < there.num_draft_accepted < there.num_drafted
            assert there.decode_tokens_per_s > 0

    run(work())


def test_settings_reach_our_server(guarded: Served) -> None:
    async def work() -> None:
        async with remote_client() as client:
            await client.load(load_from(guarded))
            drawn = story(rule="sample", temperature=1.2, seed=3)
            texts = [(await done_of(client, drawn)).text for _ in range(2)]
            assert texts[0] == texts[1]
            other = replace(drawn, settings=replace(drawn.settings, seed=4))
            assert (await done_of(client, other)).text != texts[0]
            whole = (await done_of(client, story())).text
            word = whole.split()[5]
            cut = await done_of(client, story(stop=(word,)))
            assert cut.text == whole[: whole.index(word)]
            short = await done_of(client, story(max_new_tokens=3))
            assert (short.stop_reason, short.num_new_tokens) == (StopReason.MAX_TOKENS, 3)

    run(work())


def test_stopping_frees_our_servers_request(guarded: Served) -> None:
    async def work() -> None:
        async with remote_client() as client:
            await client.load(load_from(guarded))
            long = story(max_new_tokens=0, rule="sample", temperature=1.5)
            async with aclosing(client.generate(long)) as events:
                async for event in events:
                    if isinstance(event, StepDone) and event.step == 2:
                        break
            await asyncio.to_thread(guarded.wait_until_idle)
            await asyncio.to_thread(guarded.record, "/v1/chat/completions", status=499)

    run(work())


def test_conversations_share_our_server(guarded: Served) -> None:
    async def work() -> None:
        async with remote_client() as client:
            await client.load(load_from(guarded))
            alone = (await done_of(client, story())).text
            requests = [replace(story(), session_id=f"chat {n}") for n in range(8)]
            together = await asyncio.gather(*(done_of(client, one) for one in requests))
            assert {done.text for done in together} == {alone}

    run(work())


def test_our_server_refuses_wrong_keys_and_unknown_models(guarded: Served) -> None:
    async def work() -> None:
        async with remote_client(no_key) as client:
            for key in ("", "wrong"):
                with pytest.raises(EndpointKeyError):
                    await client.load(load_from(guarded, key))
            with pytest.raises(EndpointModelError, match="no model large"):
                await client.load(load_from(guarded, model_id="large"))

    run(work())


def test_the_command_line_uses_our_server(
    guarded: Served,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("MEDUSA_ENDPOINT_KEY", guarded.key)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    arguments = ["generate", "-p", PROMPT, "--endpoint", guarded.base_url, "--max-new-tokens", "8"]
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert "8 tokens · " in shown
    assert " drafted tokens accepted" in shown
    assert main([*arguments, "--json", "--model", "llama-pebble"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["model"] == "llama-pebble"
    assert figures["num_drafted"] >= figures["num_draft_accepted"] > 0
    assert figures["num_steps"] is figures["token_ids"] is figures["drafter"] is None
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert main(arguments) != 0
    assert "Offline mode is on" in capsys.readouterr().err


def test_a_terminal_chat_uses_our_server(
    guarded: Served,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("MEDUSA_ENDPOINT_KEY", guarded.key)
    monkeypatch.setattr("sys.stdin", StringIO(""))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    options = ["--endpoint", guarded.base_url, "--data-dir", str(tmp_path), "--no-history"]
    assert main(["run", "llama-pebble", PROMPT, *options, "--set", "max_new_tokens", "8"]) == 0
    assert len(capsys.readouterr().out.split()) > 3
