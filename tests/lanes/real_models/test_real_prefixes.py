"""Conversations that share prefixes, draft and are cancelled, on real models: as each alone."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from medusa_core.client import Client
from medusa_core.hub.library.shipped_heads import heads_made_for
from medusa_core.messages import (
    ChatMessage,
    Generate,
    GenerateSettings,
    GenerationDone,
    LoadModel,
    LoadOptions,
    Role,
    StepDone,
)
from medusa_core.system.prompts import read_prompts
from medusa_core.system.resources import prompts_dir

Find = Callable[[str], Path]

_RULES = (
    GenerateSettings(rule="greedy", max_new_tokens=24),
    GenerateSettings(rule="sample", temperature=0.8, seed=5, max_new_tokens=24),
    GenerateSettings(rule="greedy", repetition_penalty=1.1, max_new_tokens=24),
)
_RULE_SENTENCES = (
    "You are a careful assistant. Answer in complete sentences, and say so if you don't know. ",
    "You help with everyday questions. Never invent sources. Prefer short words. ",
)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize(
    ("name", "drafters", "num_answers"),
    [
        ("smollm2", ("suffix", "hydra", "composite", "none"), 120),
        ("qwen2.5-coder", ("suffix",), 80),
    ],
)
def test_answers_that_share_prefixes_are_those_of_each_alone(
    name: str, drafters: tuple[str, ...], num_answers: int, real_model: Find
) -> None:
    counts = asyncio.run(_compare(real_model(name), drafters, num_answers))
    print(f"{name}: {counts}")
    assert counts["compared"] == num_answers
    assert counts["different"] == 0
    assert counts["cached"] > 0.5 * counts["prompt"], "prefixes were hardly shared"
    assert counts["accepted"] > 0
    assert counts["cancelled"] > num_answers // 10


async def _compare(path: Path, drafters: tuple[str, ...], num_answers: int) -> dict[str, int]:
    draw = random.Random(3)
    prompts = [p.turns[0][:120] for p in read_prompts(prompts_dir() / "general.jsonl", 60)]
    systems = [ChatMessage(Role.SYSTEM, text * 12) for text in _RULE_SENTENCES]
    counts = dict.fromkeys(
        ("compared", "different", "cached", "prompt", "accepted", "cancelled"), 0
    )
    async with Client() as client:
        options = LoadOptions(context_tokens=4096)
        await client.load(LoadModel("load", "load", path, heads_made_for(path), options))
        for number in range(0, num_answers, 4):
            commands = [
                _command(f"{number} {place}", draw, systems, prompts, drafters)
                for place in range(4)
            ]
            gone = replace(draw.choice(commands), session_id=f"gone {number}", request_id="gone")
            *shared, _ = await asyncio.gather(
                *(_answer(client, one) for one in commands), _cancel(client, gone)
            )
            counts["cancelled"] += 1
            for command, done in zip(commands, shared, strict=True):
                assert done is not None
                plain = replace(
                    command,
                    session_id=f"alone {command.session_id}",
                    cache_salt=f"alone {command.session_id}",
                    settings=replace(command.settings, drafter="none"),
                )
                alone = await _answer(client, plain)
                assert alone.num_cached_tokens == 0
                counts["compared"] += 1
                counts["different"] += alone.token_ids != done.token_ids
                counts["cached"] += done.num_cached_tokens
                counts["prompt"] += done.num_prompt_tokens
                counts["accepted"] += sum(done.accept_lengths) - len(done.accept_lengths)
    return counts


def _command(
    session_id: str,
    draw: random.Random,
    systems: list[ChatMessage],
    prompts: list[str],
    drafters: tuple[str, ...],
) -> Generate:
    """Return a conversation of one or two questions after one of the system prompts."""
    turns = [draw.choice(systems), ChatMessage(Role.USER, draw.choice(prompts))]
    if draw.random() < 0.3:  # an answer that isn't the model's own
        turns += [ChatMessage(Role.ASSISTANT, "Certainly."), ChatMessage(Role.USER, "Say more.")]
    settings = replace(draw.choice(_RULES), drafter=draw.choice(drafters))
    return Generate(session_id, session_id, tuple(turns), settings)


async def _answer(client: Client, command: Generate) -> GenerationDone:
    async with aclosing(client.generate(command)) as events:
        async for event in events:
            if isinstance(event, GenerationDone):
                return event
    raise AssertionError("an answer never ended")


async def _cancel(client: Client, command: Generate) -> None:
    """Leave an answer after its first step, which cancels it."""
    async with aclosing(client.generate(command)) as events:
        async for event in events:
            if isinstance(event, StepDone):
                return
