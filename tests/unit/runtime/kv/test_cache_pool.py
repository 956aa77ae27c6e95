"""All caches lie in what was planned: lent, grown, given back, and refused by name."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from medusa_core.errors import OutOfMemoryError
from medusa_core.loading.target import Target
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.pool import (
    CachePool,
    steps_up,
)
from medusa_core.runtime.kv.size import (
    row_bytes,
    whole_rows,
)
from tests.support.engine.fixtures import LoadTarget
from tests.support.engine.laws import plain_states

IDS = [7, 8, 9, 10, 11, 60, 61, 3, 5]


@pytest.fixture(params=["float64", "float32"], ids=["torch", "compiled"])
def target(request: pytest.FixtureRequest, load: LoadTarget) -> Target:
    """Target computed by torch, and one whose cache has panels."""
    return load("grouped" if request.param == "float64" else "pebble", request.param)


def pool_of(target: Target, num_rows: int) -> CachePool:
    device = target.precision.device
    return CachePool(target.config, target.runner.cache_dtype, device, num_rows)


def lender(target: Target, pool: CachePool) -> Callable[..., KvCache]:
    return lambda *rows: pool.allocate(target.runner.new_cache, *rows)


@torch.inference_mode()
def read(target: Target, kv: KvCache) -> torch.Tensor:
    """Read the text into a cache; what it then holds."""
    target.runner.extend(IDS, kv)
    return kv.committed()


def test_a_pool_has_the_planned_bytes(target: Target) -> None:
    assert target.caches.nbytes == target.plan.kv_bytes
    row = row_bytes(target.config, target.runner.cache_dtype.itemsize)
    assert target.caches.nbytes == whole_rows(target.config.context_tokens) * row


def test_caches_do_not_overlap_in_the_pool(target: Target) -> None:
    pool = pool_of(target, 160)
    caches = [lender(target, pool)(rows) for rows in (64, 30, 64)]
    assert [cache.capacity for cache in caches] == [64, 32, 64]
    assert pool.free_rows == 0
    assert sum(cache.nbytes for cache in caches) == pool.nbytes
    held = [read(target, cache) for cache in caches]
    expected = plain_states(target, IDS)[1]
    for cache, rows in zip(caches, held, strict=True):
        assert torch.equal(cache.committed(), rows)
        torch.testing.assert_close(rows, expected)


def test_more_than_planned_is_refused_with_its_name(target: Target) -> None:
    pool = pool_of(target, 128)
    allocate = lender(target, pool)
    first = allocate(100)
    with pytest.raises(OutOfMemoryError, match="33 tokens need room") as refused:
        allocate(33)
    assert refused.value.data == {"num_tokens": 33, "free_tokens": 16}
    with pytest.raises(OutOfMemoryError):
        pool.grown(target.runner.new_cache, first, 129)
    assert first.capacity == 112
    assert allocate(10, 64).capacity == 16  # less than it would like


def test_freed_memory_is_reused(target: Target) -> None:
    pool = pool_of(target, 64)
    allocate = lender(target, pool)
    first = allocate(64)
    del first
    second = allocate(64)
    pool.release(second)
    assert allocate(64).capacity == 64


def test_a_cache_grows_in_place_and_keeps_its_rows(target: Target) -> None:
    pool = pool_of(target, 256)
    kv = lender(target, pool)(16)
    before = read(target, kv)
    assert pool.grown(target.runner.new_cache, kv, 20, 200) is kv
    assert kv.capacity == 208
    assert torch.equal(kv.committed(), before)
    assert torch.equal(kv.committed(), read(target, lender(target, pool)(16)))


def test_a_trimmed_cache_keeps_its_rows_and_may_grow_again(target: Target) -> None:
    pool = pool_of(target, 256)
    kv = lender(target, pool)(208)
    before = read(target, kv)
    assert pool.trim(kv)
    assert kv.capacity == 16
    assert pool.free_rows == 240
    assert torch.equal(kv.committed(), before)
    assert not pool.trim(kv)
    other = lender(target, pool)(240)
    assert torch.equal(read(target, other), before)
    pool.release(other)
    assert pool.grown(target.runner.new_cache, kv, 200) is kv
    assert torch.equal(kv.committed(), before)
    kv.truncate(0)
    assert torch.equal(read(target, kv), before)


def test_a_cache_without_room_to_grow_is_moved(target: Target) -> None:
    pool = pool_of(target, 128)
    kv, shut = (lender(target, pool)(16) for _ in range(2))
    before = read(target, kv)
    larger = pool.grown(target.runner.new_cache, kv, 40)
    assert larger is not kv
    assert torch.equal(larger.committed(), before)
    assert torch.equal(larger.committed(), read(target, shut))
    assert lender(target, pool)(16).capacity == 16  # where it had been


def test_a_cache_that_blocks_its_own_growth_is_emptied(target: Target) -> None:
    pool = pool_of(target, 64)
    first, kv = (lender(target, pool)(32) for _ in range(2))
    read(target, kv)
    del first
    larger = pool.grown(target.runner.new_cache, kv, 64)
    assert (larger.capacity, larger.length) == (64, 0)


def test_idle_caches_are_evicted(target: Target) -> None:
    pool = pool_of(target, 64)
    idle = [lender(target, pool)(16) for _ in range(4)]

    def forget() -> bool:
        return bool(idle) and idle.pop(0) is not None

    pool.evict = forget
    busy = lender(target, pool)(32)
    assert len(idle) == 2
    assert pool.grown(target.runner.new_cache, busy, 48) is busy
    assert len(idle) == 1
    with pytest.raises(OutOfMemoryError):
        lender(target, pool)(32)
    assert idle == []


def test_a_device_without_room_is_reported(tiny: Target) -> None:
    with pytest.raises(OutOfMemoryError, match="No memory for a KV cache"):
        pool_of(tiny, 1 << 45)


def test_caches_double_up_to_the_pools_size() -> None:
    assert [steps_up(rows, 300) for rows in (1, 64, 65, 129, 290, 300)] == [
        64,
        64,
        128,
        256,
        300,
        300,
    ]


def test_a_growing_conversation_keeps_its_rows_and_stays_within_the_plan(tiny: Target) -> None:
    from medusa_core.engine.session import Session

    target = replace(tiny, caches=pool_of(tiny, 256))
    session = Session(target)
    for num_tokens in (10, 70, 130, 255):
        session.make_room(num_tokens, 64)
        assert num_tokens < session.kv.capacity <= 256
        assert session.kv.nbytes <= target.caches.nbytes
    with pytest.raises(OutOfMemoryError):
        session.make_room(256, 64)
