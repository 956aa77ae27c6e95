"""Targets and sessions whose cached rows lie below a card, fake or real."""

from itertools import product
from pathlib import Path

import pytest
import torch

from medusa_core.engine.batch_generate import answer_all
from medusa_core.loading.load import load_target
from medusa_core.loading.memory.placement import Planner
from medusa_core.loading.memory.probe import live_budget
from medusa_core.loading.target import Target
from medusa_core.messages import (
    Generate,
    GenerateSettings,
    GenerationDone,
    HeadsShape,
    LoadOptions,
    Placement,
    Policy,
    Shares,
    Tier,
    WeightFormats,
)
from medusa_core.runtime.kv.offloaded.create import create_kv_prefetcher, create_kv_store
from medusa_core.runtime.kv.offloaded.disk_store import DiskStore
from medusa_core.runtime.runner.offload import OffloadRunner
from medusa_core.speculation.tuning.row_policy import RowPolicy
from tests.support.engine.cached_rows import (
    LAYERS,
    SESSIONS,
    TREE_ROWS,
    Below,
    Driver,
    kind_of_cache,
)
from tests.support.engine.laws import user_says
from tests.support.models.targets import STREAMED
from tests.support.models.tiny import write_tiny

D, M, K = Tier.DEVICE, Tier.MEMORY, Tier.DISK
PLACES = {"memory": (M, D, M, M, M), "disk": (D, K, K, D, K)}

# A disk and memory, once prefetched to the card and once attended in place; others are slow.
_QUICK = [("disk", D, ""), ("memory", M, "q4")]
ROWS_BELOW = [
    pytest.param(*way, marks=() if way in _QUICK else pytest.mark.slow)
    for way in product(PLACES, (D, M), ("", "q4"))
]


def driver_on_card(
    name: str, place: str, attention: Tier, folder: Path, device: torch.device
) -> Driver:
    """Return sessions with KV rows offloaded from a card, beside resident ones."""
    kind = kind_of_cache(name)._replace(device=device)
    count = len(LAYERS)
    placement = Placement(
        (D,) * count, (0,) * count, 0, cache_tiers=PLACES[place], tree_rows=TREE_ROWS
    )
    store = create_kv_store(placement, kind.config, kind.precision, SESSIONS, folder)
    assert store is not None
    return Driver(Below(kind, store, create_kv_prefetcher(store, attention, device)))


PROMPTS = [user_says(f"number {n} " * (2 * n + 1)) for n in range(4)]
SETTINGS = GenerateSettings("suffix", "greedy", max_new_tokens=8)
SHARES = {"memory": Shares(0.25, 0.75, 0), "disk": Shares(0.5, 0, 0.5)}


def answers(target: Target) -> list[tuple[int, ...]]:
    """Return the answers to all prompts of one batch."""
    requests = [Generate(str(n), "", prompt, SETTINGS) for n, prompt in enumerate(PROMPTS)]
    found = {}
    for answered in answer_all(target, requests, RowPolicy(target), len(PROMPTS)):
        assert isinstance(answered.done, GenerationDone), answered.done
        found[int(answered.request.session_id)] = answered.done.token_ids
    return [found[n] for n in range(len(PROMPTS))]


class Expected:
    """A small model, and what it answers with all of it in one place."""

    def __init__(self, folder: Path) -> None:
        self.model = write_tiny(folder / "model", STREAMED)
        self._answers: dict[str, list[tuple[int, ...]]] = {}

    def options(self, cache: str, device: str) -> LoadOptions:
        formats = WeightFormats(cache=cache)
        return LoadOptions("float64", device, formats, context_tokens=256, sessions=4)

    def answers(self, cache: str) -> list[tuple[int, ...]]:
        if cache not in self._answers:
            whole = load_target(self.model, None, self.options(cache, "cpu"))
            self._answers[cache] = answers(whole)
        return self._answers[cache]


def policy_of(place: str, attention: Tier, cache: str) -> Policy:
    """Return a policy of two batches with offloaded KV rows."""
    return Policy(
        cache=SHARES[place],
        batch=2,
        num_batches=2,
        prompt_rows=600,
        cache_format=cache,
        attention=attention.value,
    )


def check_bytes(target: Target, policy: Policy) -> None:
    """Check that memory of card and computer equals the plan."""
    assert isinstance(target.runner, OffloadRunner)
    store, visits = target.runner.store, target.runner.tiers.rows
    assert store is not None
    assert visits is not None
    plan = target.plan
    assert target.caches.nbytes + visits.nbytes == plan.kv_bytes
    staging = 2 * store.new_staging().nbytes if isinstance(store, DiskStore) else 0
    planner = Planner(target.config, HeadsShape(), target.formats, live_budget("cpu"))
    planned = planner.host_bytes(policy, plan)
    assert store.host_bytes + visits.host_bytes + staging == planned
