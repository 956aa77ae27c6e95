"""A model with its heads on the Hub of the tests, and how they are fetched."""

import asyncio
import threading
from collections.abc import Awaitable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from medusa_core.hub.job import Pair
from medusa_core.hub.pair_download import Tally, download_pair
from medusa_core.hub.settings import HubSettings, HubTimeouts
from tests.support.hub.fixtures import LoopbackHub, random_file

T = TypeVar("T")
MIB = 1 << 20
MODEL, HEADS = "org/model", "org/heads"
QUICK = HubTimeouts(stall_s=0.5, backoff_s=0.01, max_backoff_s=0.05, max_tries=3)


def run(work: Awaitable[T]) -> T:
    async def main() -> T:
        return await work

    return asyncio.run(main())


def fill(hub: LoopbackHub, nbytes: int = MIB) -> None:
    """A model in two shards, and heads."""
    folder = hub.root / MODEL
    for index in (1, 2):
        random_file(folder / f"model-0000{index}-of-00002.safetensors", nbytes, seed=index)
    (folder / "config.json").write_text('{"model_type": "llama"}', encoding="utf-8")
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
    (folder / "model.safetensors.index.json").write_text("{}", encoding="utf-8")
    random_file(folder / "pytorch_model.bin", 1000)
    random_file(folder / "consolidated.safetensors", 1000)
    (folder / "README.md").write_text("about", encoding="utf-8")
    random_file(hub.root / HEADS / "medusa_lm_head.safetensors", nbytes // 2, seed=3)
    (hub.root / HEADS / "config.json").write_text("{}", encoding="utf-8")


def fetch(settings: HubSettings, pair: Pair, tally: Tally | None = None) -> tuple[Path, ...]:
    return run(download_pair(settings, pair, tally or Tally(), threading.Event()))


def check_whole(hub: LoopbackHub, repo: str, snapshot: Path) -> None:
    names = [p.name for p in snapshot.iterdir()]
    assert "README.md" not in names
    for path in snapshot.iterdir():
        assert path.read_bytes() == (hub.root / repo / path.name).read_bytes()


def sent(hub: LoopbackHub) -> int:
    """Bytes of files that left the server."""
    return sum(entry["sent"] for entry in hub.log)


def throttled_settings(settings: HubSettings) -> HubSettings:
    return replace(settings, bytes_per_s=4 * MIB)
