"""Answers of all kinds from one engine, one after the other, and what memory they leave behind.

Settings, drafters, rules, models, weight formats and cancels are drawn by a seed; sessions are
closed, texts verified and models unloaded in between. What the process holds is read every so many
answers. `tests/system/test_soak.py` judges it.

`python -m tests.benchmarks.soak FOLDER [--answers 5000] [--seed 0] [--json FILE]`;
FOLDER gets models.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import random
import sys
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import asdict, dataclass
from itertools import cycle
from pathlib import Path

import psutil

from medusa_core.api import demo_model
from medusa_core.client import Client
from medusa_core.errors import MedusaError
from medusa_core.messages import (
    ChatMessage,
    GenerateSettings,
    GenerationDone,
    LoadModel,
    LoadOptions,
    ModelLoaded,
    Role,
    Verify,
    WeightFormats,
)
from tests.support.models.hydra_files import random_hydra, write_hydra
from tests.support.models.tiny import LLAMA3_ROPE, TinySpec, random_heads, write_heads, write_tiny

_TEXT = "one two three stone bread river cold seven lamp, and the of. Why? 火 é"
_WORDS = tuple(_TEXT.split())
_SESSIONS = ("a", "b", "c", "d")
_ANSWERS_A_MODEL = 25
_FORMATS = ("", "", "bf16", "fp32", "int8", "q4")


@dataclass(frozen=True, slots=True)
class Held:
    """Resources that a process holds.

    Attributes:
        num_answers: Answers so far.
        resident_bytes: Its memory.
        num_objects: Python's containers.
        num_threads: Its threads.
        num_children: Its processes.
        num_files: Its open files and pipes.
    """

    num_answers: int
    resident_bytes: int
    num_objects: int
    num_threads: int
    num_children: int
    num_files: int


@dataclass(frozen=True, slots=True)
class Soaked:
    """The outcome.

    Attributes:
        num_cancelled: Answers that were left before their end.
        num_refused: Requests that ended as errors.
        drafters: Drafters that answered.
        num_models: Times that a model was loaded.
        held: What the process held, in order.
    """

    num_cancelled: int
    num_refused: int
    drafters: tuple[str, ...]
    num_models: int
    held: tuple[Held, ...]


class Soak:
    """Drives an engine."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._chance = random.Random(seed)
        self._models = cycle(tuple(_models(folder)))
        self._talks: dict[str, list[ChatMessage]] = {}
        self._num_cancelled = self._num_refused = self._num_models = 0
        self._drafters: set[str] = set()
        self._loaded: ModelLoaded | None = None

    async def run(self, num_answers: int, every: int) -> Soaked:
        """Request the given number of answers, and record the held resources at intervals."""
        held = []
        async with Client() as client:
            for number in range(num_answers):
                if number % _ANSWERS_A_MODEL == 0:
                    await self._load(client)
                await self._between(client)
                try:
                    await self._ask(client)
                except MedusaError:
                    self._num_refused += 1
                if (number + 1) % every == 0:
                    await client.unload()
                    held.append(_held(number + 1))
                    print(held[-1], flush=True)
                    await self._load(client)
        drafters = tuple(sorted(self._drafters))
        return Soaked(
            self._num_cancelled, self._num_refused, drafters, self._num_models, tuple(held)
        )

    async def _load(self, client: Client) -> None:
        model, heads = next(self._models)
        formats = WeightFormats(linears=self._chance.choice(_FORMATS))
        command = LoadModel("soak", "load", model, heads, LoadOptions(formats=formats))
        self._talks.clear()
        self._num_models += 1
        try:
            self._loaded = await client.load(command)
        except MedusaError:  # a format that isn't for this processor
            self._loaded = await client.load(LoadModel("soak", "load", model, heads))

    async def _between(self, client: Client) -> None:
        """Do other operations between two answers."""
        chance, session = self._chance, self._chance.choice(_SESSIONS)
        match chance.random():
            case draw if draw < 0.05:
                await client.close_session(session)
                self._talks.pop(session, None)
            case draw if draw < 0.08:
                text = self._text(chance.randint(1, 40))
                await client.verify(Verify("soak", "verify", before_ids=(3,), text=text))

    async def _ask(self, client: Client) -> None:
        chance, session = self._chance, self._chance.choice(_SESSIONS)
        talk = self._talks.setdefault(session, [])
        if len(talk) > 6:
            talk.clear()
        talk.append(ChatMessage(Role.USER, self._text(chance.choice((1, 5, 40)))))
        settings = self._settings()
        leaves_after = chance.choice((0, 0, 0, 1, 2, 5, 12))
        answer = client.answer(session, talk, settings, records=chance.random() < 0.3)
        num_events = 0
        async with aclosing(answer) as events:
            async for event in events:
                num_events += 1
                if isinstance(event, GenerationDone):
                    self._drafters.add(settings.drafter)
                    talk.append(ChatMessage(Role.ASSISTANT, event.text, event.token_ids))
                    return
                if num_events == leaves_after:
                    break
        talk.clear()
        self._num_cancelled += 1

    def _text(self, num_words: int) -> str:
        return " ".join(self._chance.choices(_WORDS, k=num_words))

    def _settings(self) -> GenerateSettings:
        chance, loaded = self._chance, self._loaded
        assert loaded is not None
        tokens = range(5, loaded.vocab_size)
        return GenerateSettings(
            drafter=chance.choice(loaded.drafters).name,
            rule=chance.choice(loaded.rules).name,
            temperature=chance.uniform(0.05, 2.0),
            top_k=chance.choice((0, 0, 1, 40)),
            top_p=chance.choice((1.0, 0.9, 0.3)),
            min_p=chance.choice((0.0, 0.0, 0.1)),
            repetition_penalty=chance.choice((1.0, 1.0, 1.3)),
            presence_penalty=chance.choice((0.0, 0.0, 0.5)),
            frequency_penalty=chance.choice((0.0, 0.0, -0.2)),
            logit_bias=tuple((chance.choice(tokens), chance.uniform(-5, 5)) for _ in range(2)),
            banned=tuple(chance.sample(tokens, k=chance.choice((0, 0, 3)))),
            seed=chance.getrandbits(40),
            max_new_tokens=chance.choice((1, 5, 20, 60)),
            stop=tuple(chance.sample(("e", "\n", "##", "the"), k=chance.choice((0, 0, 1)))),
            tree_rows=chance.choice((0, 0, 1, 7, 64, 300, 1024)),
        )


def _models(folder: Path) -> Iterator[tuple[Path, Path]]:
    """The demo, and small ones with heads of every kind, wide enough for the compiled step."""
    yield demo_model()
    for seed, name in enumerate(("llama", "mistral", "qwen2", "qwen3")):
        rope = LLAMA3_ROPE if name == "llama" else {}
        spec = TinySpec(name, hidden_size=64, intermediate_size=128, rope=rope, seed=seed)
        model = write_tiny(folder / name, spec)
        yield model, write_heads(folder / f"{name}-heads", random_heads(spec))
    yield model, write_hydra(folder / "hydra-heads", random_hydra(spec))


def _held(num_answers: int) -> Held:
    gc.collect()
    process = psutil.Process()
    return Held(
        num_answers,
        process.memory_info().rss,
        len(gc.get_objects()),
        process.num_threads(),
        len(process.children(recursive=True)),
        process.num_fds(),
    )


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--answers", type=int, default=5000)
    parser.add_argument("--every", type=int, default=250)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    soaked = asyncio.run(Soak(args.folder, args.seed).run(args.answers, args.every))
    if args.json:
        args.json.write_text(json.dumps(asdict(soaked)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
