"""The step of fixed shapes gives what the resident runner gives, padding and all."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
import torch

from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings
from medusa_core.runtime.kv.pool import CachePool
from medusa_core.runtime.runner.buckets import LENGTH_BUCKETS, ROW_BUCKETS
from medusa_core.runtime.runner.resident import ResidentRunner
from medusa_core.runtime.runner.runner import PlacedTree
from medusa_core.runtime.runner.static import StaticRunner
from medusa_core.runtime.tree.shape import (
    TokenTree,
    TreeShape,
)
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.drafters.lineup import drafter_registry
from tests.support.engine.by_turns import by_turns
from tests.support.engine.fixtures import LoadTarget
from tests.support.engine.laws import check_cache, check_same_tokens, decode, plainly, user_says
from tests.support.engine.tree_paths import path_to
from tests.support.models.targets import FAMILIES, PEERS

DRAFTING = [spec for spec in drafter_registry().specs if spec.drafts]
IDS = [5 + (11 * i) % 300 for i in range(70)]


def static(target: Target) -> tuple[Target, StaticRunner]:
    runner = StaticRunner(target.runner._model, target.precision)
    runner.tap(target.runner.taps)
    return replace(target, runner=runner), runner


def tree_of(num_rows: int) -> TokenTree:
    paths = [(0,), (1,), (0, 0), (0, 1), (1, 0), (0, 0, 0), (2,), (0, 0, 1), (1, 1), (0, 2), (3,)]
    shape = TreeShape.from_paths(paths[: num_rows - 1])
    return TokenTree(shape, tuple(range(20, 20 + num_rows)))


# Each model once; one with taps.
MODELS = ("grouped", "tied", "eagle", "mimo", *FAMILIES, *PEERS, "pebble")


@pytest.mark.parametrize(("name", "num_rows"), by_turns(MODELS, [1, 2, 4, 7, 12]))
def test_every_row_is_unchanged_by_padding(name: str, num_rows: int, load: LoadTarget) -> None:
    target = load(name, "float64")
    _, runner = static(target)
    resident = ResidentRunner(target.runner._model, target.precision)
    resident.tap(target.runner.taps)
    caches = [each.new_cache(len(IDS) + 20) for each in (runner, resident)]
    pairs = list(zip((runner, resident), caches, strict=True))
    for each, kv in pairs:
        each.extend(IDS, kv)
    for _ in range(3):  # a step's buffers serve again
        rows = [each.verify(PlacedTree(tree_of(num_rows), kv)) for each, kv in pairs]
        assert rows[0].shape == rows[1].shape
        assert (rows[0] - rows[1]).abs().max() < 1e-12
        kept = path_to(tree_of(num_rows).shape, num_rows - 1)
        for kv in caches:
            kv.commit(kept)
        assert (caches[0].committed() - caches[1].committed()).abs().max() < 1e-12
        if num_rows == 12:
            return


@pytest.mark.parametrize(("drafter", "rule"), by_turns(DRAFTING, ["greedy", "sample"]))
def test_the_decoding_laws_hold_with_static_shapes(
    drafter: DrafterSpec, rule: str, target_of: Callable[[str], Target]
) -> None:
    resident = target_of(drafter.name)
    target, _ = static(resident)
    settings = GenerateSettings(drafter.name, rule, seed=5, max_new_tokens=16)
    drafted = decode(
        target,
        settings,
        user_says("tea and toast"),
        after_step=partial(check_cache, honest=target, tolerance=1e-12),
    )
    plain = decode(resident, plainly(settings), user_says("tea and toast"))
    check_same_tokens(plain, drafted)


def test_a_tree_fits_up_to_the_last_slot(load: LoadTarget) -> None:
    target = load("grouped", "float64")
    _, runner = static(target)
    kv = runner.new_cache(len(IDS) + 3)
    runner.extend(IDS, kv)
    resident = ResidentRunner(target.runner._model, target.precision)
    exact = resident.new_cache(len(IDS) + 3)
    resident.extend(IDS, exact)
    difference = runner.verify(PlacedTree(tree_of(3), kv)) - resident.verify(
        PlacedTree(tree_of(3), exact)
    )
    assert difference.abs().max() < 1e-12


def test_caches_grow_and_sessions_take_turns(load: LoadTarget) -> None:
    target = load("tied", "float64")
    _, runner = static(target)
    pool = CachePool(target.config, runner.cache_dtype, target.precision.device, 800)
    caches = [pool.allocate(runner.new_cache, rows) for rows in (90, 80)]
    caches.reverse()  # behind the one that grows there is room
    for offset, kv in enumerate(caches):
        runner.extend(IDS[offset:], kv)
    first = [runner.verify(PlacedTree(tree_of(5), kv)) for kv in caches]
    assert (first[0] - first[1]).abs().max() > 1e-3
    again = [runner.verify(PlacedTree(tree_of(5), kv)) for kv in caches]
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert pool.grown(runner.new_cache, caches[0], 600) is caches[0]
    assert caches[0].capacity > LENGTH_BUCKETS[0]
    assert (runner.verify(PlacedTree(tree_of(5), caches[0])) - first[0]).abs().max() < 1e-12


def test_few_step_sizes_are_prepared(load: LoadTarget) -> None:
    _, runner = static(load("grouped", "float64"))
    kv = runner.new_cache(200)
    runner.extend(IDS, kv)
    for num_rows in range(1, 13):
        runner.verify(PlacedTree(tree_of(num_rows), kv))
    assert len(runner._steps) == 5  # of 1, 4, 7, 8 and 16 rows
    assert list(ROW_BUCKETS) == sorted(ROW_BUCKETS)
    assert list(LENGTH_BUCKETS) == sorted(LENGTH_BUCKETS)
