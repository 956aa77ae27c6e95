"""Cached rows below a card: in the computer's memory, and on a disk below that."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
import torch

from medusa_core.engine.several import answer_all
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.memory.policy.planned import memory_bytes
from medusa_core.messages import (
    Generate,
    GenerateSettings,
    GenerationDone,
    LoadOptions,
    Placement,
    Policy,
    Shares,
    Tier,
    WeightFormats,
)
from medusa_core.runtime.kv.offloaded.block_store import BlockStore
from medusa_core.runtime.kv.offloaded.choice import row_store, row_visits
from medusa_core.runtime.kv.offloaded.memory import MemoryRows
from medusa_core.runtime.kv.offloaded.several import SeveralStores
from medusa_core.runtime.kv.offloaded.store import RowStore
from medusa_core.runtime.runner.offload import OffloadRunner
from medusa_core.speculation.tuning.tuner import Tuner
from tests.core.cached_rows import LAYERS, SESSIONS, TREE_ROWS, Below, Driver, kind_of_cache
from tests.core.conftest import STREAMED
from tests.core.laws import check_same_tokens, decode, user_says
from tests.core.peer_files import write_peer
from tests.core.tiny import write_tiny
from tests.imagined_card import card as imagined
from tests.imagined_card.card import imagined_card
from tests.imagined_card.tensor import CARD

D, M, K = Tier.DEVICE, Tier.MEMORY, Tier.DISK
PLACES = {"memory": (M, M, M, M, M), "disk": (D, K, K, D, K), "both": (M, D, K, K, M)}

# A disk and memory, with and without bringing rows to the card; the others are slow.
_QUICK = [("both", D, ""), ("both", M, ""), ("both", D, "q4")]
WAYS = [
    pytest.param(*way, marks=() if way in _QUICK else pytest.mark.slow)
    for way in product(PLACES, (D, M), ("", "q4"))
]
STEPS = {"prompt", "tree", "prune", "cut", "fail", "renew"}


def driver_on_card(name: str, place: str, attention: Tier, folder: Path) -> Driver:
    """Sessions whose rows lie below a card, beside ones that lie in one place."""
    kind = kind_of_cache(name)._replace(device=CARD)
    count = len(LAYERS)
    placement = Placement(
        (D,) * count, (0,) * count, 0, cache_tiers=PLACES[place], tree_rows=TREE_ROWS
    )
    store = row_store(placement, kind.config, kind.precision, SESSIONS, folder)
    assert store is not None
    return Driver(Below(kind, store, row_visits(store, attention, CARD)))


@torch.inference_mode()
@pytest.mark.parametrize(("place", "attention", "cache"), WAYS)
def test_rows_below_equal_those_on_the_card(
    place: str, attention: Tier, cache: str, tmp_path: Path
) -> None:
    with imagined_card() as card, card.waiting():
        driver = driver_on_card(cache or "float32", place, attention, tmp_path)
        assert driver.go_on(25) == STEPS
        assert driver.visits.written_bytes > 0
        assert (driver.visits.read_bytes > 0) == (place != "memory" or attention is D)


def _rows_are_lost_at_leave(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryRows, "fresh_part", lambda rows, view: view[:, :, :0])


def _nothing_is_brought(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryRows, "committed_part", lambda rows, view: view.flatten()[:0])


def _nobody_waits_for_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(imagined._Aside, "wait", lambda aside, mark, left: None)


def _nobody_waits_for_what_went_down(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RowStore, "settle", lambda store: None)


def _trees_stay_as_they_are(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryRows, "undecided", lambda rows, length: [])


def _sessions_share_a_slot(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RowStore, "take_slot", lambda store: 0)


@torch.inference_mode()
@pytest.mark.parametrize(
    "plant",
    [
        _rows_are_lost_at_leave,
        _nothing_is_brought,
        _nobody_waits_for_rows,
        _nobody_waits_for_what_went_down,
        _trees_stay_as_they_are,
        _sessions_share_a_slot,
    ],
)
def test_the_law_sees_a_fault(
    plant: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with imagined_card() as card, card.waiting():
        driver = driver_on_card("float32", "both", D, tmp_path)
        with pytest.raises(AssertionError):
            driver.go_on(60)


PROMPTS = [user_says(f"number {n} " * (2 * n + 1)) for n in range(4)]
SETTINGS = GenerateSettings("suffix", "greedy", max_new_tokens=8)
SHARES = {"memory": Shares(0, 1, 0), "disk": Shares(0.5, 0, 0.5), "both": Shares(0.25, 0.5, 0.25)}


def answers(target: Target) -> list[tuple[int, ...]]:
    """What it answers to all prompts at once."""
    requests = [Generate(str(n), "", prompt, SETTINGS) for n, prompt in enumerate(PROMPTS)]
    found = {}
    for answered in answer_all(target, requests, Tuner(target), len(PROMPTS)):
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


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Expected:
    return Expected(tmp_path_factory.mktemp("rows"))


@pytest.mark.parametrize(("place", "attention", "cache"), WAYS)
def test_texts_are_those_of_a_whole_model(
    place: str, attention: Tier, cache: str, expected: Expected, tmp_path: Path
) -> None:
    policy = Policy(
        cache=SHARES[place],
        batch=2,
        num_batches=2,
        prompt_rows=600,
        cache_format=cache,
        attention=attention.value,
    )
    options = replace(expected.options(cache, "cuda"), policy=policy, tier_disk=tmp_path)
    with imagined_card():
        target = load_target(expected.model, None, options)
        assert answers(target) == expected.answers(cache)
        traffic = target.runner.traffic
        assert traffic.rows_written_bytes > 0
        assert (traffic.rows_read_bytes > 0) == (place != "memory" or attention is D)
        check_bytes(target, policy)


@pytest.mark.parametrize(
    ("name", "attended"),
    [
        ("gpt-oss", 0),
        *(
            pytest.param(name, attended, marks=pytest.mark.slow)
            for name, attended in (("gemma 2", 0), ("gemma 4 31B", 0), ("llama 3", 8))
        ),
    ],
)
def test_a_processor_attends_as_every_family_does(name: str, attended: int, tmp_path: Path) -> None:
    write_peer(name, tmp_path / "model")
    formats = WeightFormats(attended=attended)
    options = LoadOptions("float64", "cpu", formats, context_tokens=200)
    whole = load_target(tmp_path / "model", None, options)
    plain = decode(whole, SETTINGS, PROMPTS[1])
    policy = Policy(
        cache=Shares(0, 1, 0), batch=2, num_batches=1, attended=attended, attention="memory"
    )
    with imagined_card() as card, card.waiting():  # as experts do
        options = replace(options, device="cuda", policy=policy)
        target = load_target(tmp_path / "model", None, options)
        check_same_tokens(plain, decode(target, SETTINGS, PROMPTS[1]))
        assert target.runner.traffic.rows_written_bytes > 0


def check_bytes(target: Target, policy: Policy) -> None:
    """What it takes of the card and of the computer's memory is what was planned."""
    assert isinstance(target.runner, OffloadRunner)
    store, visits = target.runner.store, target.runner.tiers.rows
    assert store is not None
    assert visits is not None
    plan = target.plan
    assert target.caches.nbytes + visits.nbytes == plan.kv_bytes
    stores = store.stores if isinstance(store, SeveralStores) else (store,)
    staging = sum(2 * each.new_staging().nbytes for each in stores if isinstance(each, BlockStore))
    planned = memory_bytes(plan.context_tokens, target.config, target.formats, policy, plan)
    assert store.host_bytes + visits.host_bytes + staging == planned
