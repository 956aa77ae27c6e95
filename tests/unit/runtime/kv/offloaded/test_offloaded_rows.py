"""Cached rows below the device are those that would lie on it, to the bit."""

from __future__ import annotations

import errno
import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from medusa_core.errors import EngineError, OutOfMemoryError, TierError
from medusa_core.messages import Placement, Tier
from medusa_core.models.precision import precision_of
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.offloaded import disk_store, row_file
from medusa_core.runtime.kv.offloaded.create import create_kv_store
from medusa_core.runtime.kv.offloaded.disk_store import DiskKv, DiskStore, as_blocks
from medusa_core.runtime.kv.pool import CachePool
from medusa_core.runtime.kv.size import (
    offloaded_row_bytes,
    region_bytes,
    ring_bytes,
    tail_bytes,
    whole_rows,
)
from medusa_core.runtime.offload import disk_room
from tests.support.engine.cached_rows import (
    CONTEXT,
    KINDS,
    LAYERS,
    SESSIONS,
    TREE_ROWS,
    Driver,
    Failing,
    kind_of_cache,
    ready,
)

BELOW = (1, 2, 4)  # layers whose rows lie there
ALL = tuple(range(len(LAYERS)))
STEPS = {"prompt", "tree", "cut", "fail", "renew"}


@torch.inference_mode()
@pytest.mark.parametrize("kind", KINDS)
def test_offloaded_rows_equal_those_on_the_device(kind: str, tmp_path: Path) -> None:
    driver = Driver.on_disk(kind_of_cache(kind), BELOW, tmp_path)
    assert driver.go_on(40) == STEPS
    assert (
        min(driver.prefetcher.transfers.written_bytes, driver.prefetcher.transfers.read_bytes) > 0
    )


@torch.inference_mode()
@pytest.mark.parametrize("kind", ["float32", "panels"])
def test_rows_of_all_layers_can_be_offloaded(kind: str, tmp_path: Path) -> None:
    driver = Driver.on_disk(kind_of_cache(kind), ALL, tmp_path, seed=1)
    driver.go_on(20)
    assert driver.pools[0].row_bytes == 0
    assert driver.pools[0].nbytes == driver.store.device_bytes


@torch.inference_mode()
def test_long_reads_bypass_the_page_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_file, "DIRECT_BYTES", 0)
    driver = Driver.on_disk(kind_of_cache("float32"), (0, 2, 3), tmp_path, seed=2)
    plain = driver.store._file._writer
    driver.store._file._writer = Failing(plain, "write", errno.EIO)  # blocks are whole pages
    driver.go_on(30)
    assert driver.prefetcher.transfers.written_bytes > 0


@pytest.mark.slow
@torch.inference_mode()
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_offloaded_rows_equal_those_on_the_device_over_many_steps(
    kind: str, seed: int, tmp_path: Path
) -> None:
    driver = Driver.on_disk(kind_of_cache(kind), ALL if seed % 3 == 0 else BELOW, tmp_path, seed)
    driver.go_on(300)


def _fault_skip_copy_tail(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DiskKv, "copy_tail", lambda rows, layer, view: None)


def _fault_skip_write_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DiskKv, "write_back", lambda rows: setattr(rows, "_bound", None))


def _fault_keep_tail_after_flush(patch: pytest.MonkeyPatch) -> None:
    def store_blocks(rows: DiskKv, count: int) -> None:
        for layer in rows._store.layers:
            block = as_blocks(rows._tail(layer))[:, :count]
            rows._store.write(rows.slot, layer, rows.stored // 16, block)
        rows.stored += 16 * count

    patch.setattr(DiskKv, "_flush_blocks", store_blocks)


def _fault_truncate_without_restore(patch: pytest.MonkeyPatch) -> None:
    def truncate(rows: DiskKv, length: int) -> None:
        rows.stored = min(rows.stored, length // 16 * 16)

    patch.setattr(DiskKv, "truncate", truncate)


def _fault_skip_restore_after_failed_pass(patch: pytest.MonkeyPatch) -> None:
    right = DiskKv._restore_tails

    def settle(rows: DiskKv, length: int) -> None:
        rows._moved.clear()
        right(rows, length)

    patch.setattr(DiskKv, "_restore_tails", settle)


def _fault_write_one_block_late(patch: pytest.MonkeyPatch) -> None:
    right = DiskStore.write
    patch.setattr(
        DiskStore,
        "write",
        lambda store, slot, layer, first, blocks: right(store, slot, layer, first + 1, blocks),
    )


def _fault_share_slot_of_sessions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DiskStore, "acquire_slot", lambda store: 0)


def _fault_share_region_of_layers(patch: pytest.MonkeyPatch) -> None:
    right = DiskStore.region
    patch.setattr(DiskStore, "region", lambda store, layer: right(store, layer)._replace(offset=0))


def _fault_shift_speculative_rows(patch: pytest.MonkeyPatch) -> None:
    right = DiskKv.speculative
    patch.setattr(
        DiskKv,
        "speculative",
        lambda rows, length: [each._replace(first=each.first + 1) for each in right(rows, length)],
    )


@torch.inference_mode()
@pytest.mark.parametrize(
    "plant",
    [
        _fault_skip_copy_tail,
        _fault_skip_write_back,
        _fault_keep_tail_after_flush,
        _fault_truncate_without_restore,
        _fault_skip_restore_after_failed_pass,
        _fault_write_one_block_late,
        _fault_share_slot_of_sessions,
        _fault_share_region_of_layers,
        _fault_shift_speculative_rows,
    ],
)
def test_the_law_detects_a_planted_fault(
    plant: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    driver = Driver.on_disk(kind_of_cache("float32"), BELOW, tmp_path)
    with pytest.raises(AssertionError):
        driver.go_on(200)


@torch.inference_mode()
@pytest.mark.parametrize("kind", ["float32", "panels"])
def test_a_full_disk_is_reported_and_the_next_attempt_works(kind: str, tmp_path: Path) -> None:
    driver = Driver.on_disk(kind_of_cache(kind), BELOW, tmp_path)
    ready(driver)
    file = driver.store._file
    file._writer = Failing(file._writer, "write", errno.ENOSPC)
    with pytest.raises(TierError, match="disk is full: the cached rows have no room") as told:
        driver.run({0: 64}, decided=True)
    assert "Make room" in told.value.hint
    driver.check()
    driver.run({0: 10})
    with pytest.raises(TierError, match="disk is full"):
        driver.each(0, "commit", range(10))  # which fills a block
    assert driver.pairs[0][0].length == 70
    driver.check()
    file._writer = file._writer._file
    for rows, decided in ((64, True), (10, False)):
        driver.run({0: rows}, decided)
        driver.each(0, "commit", range(rows))
        driver.check()


@torch.inference_mode()
def test_a_disk_error_is_reported_and_the_next_attempt_works(tmp_path: Path) -> None:
    driver = Driver.on_disk(kind_of_cache("float32"), BELOW, tmp_path)
    ready(driver)
    file = driver.store._file
    right, file._reader = file._reader, Failing(file._reader, "readinto", errno.EIO)
    with pytest.raises(TierError, match="can't be read") as told:
        driver.run({0: 1})
    assert "Check the disk" in told.value.hint
    driver.each(0, "truncate", 37)
    with pytest.raises(TierError, match="can't be read"):
        driver.run({0: 1})  # a part of the tail is to come back
    file._reader = right
    driver.check()
    driver.run({0: 1})
    driver.each(0, "commit", [0])
    driver.check()


@torch.inference_mode()
def test_rows_read_in_pieces_are_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        disk_store, "staging_bytes", lambda row, _: -(-16 * row // 4096) * 4096 + 8192
    )
    driver = Driver.on_disk(kind_of_cache("float64"), BELOW, tmp_path)
    ready(driver)
    driver.run({0: 1})
    driver.check()


@torch.inference_mode()
def test_prefetched_rows_of_a_failed_pass_are_not_used_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Driver.on_disk(kind_of_cache("float32"), BELOW, tmp_path)
    for session in (0, 1):
        driver.run({session: 70}, decided=True)
        driver.each(session, "commit", range(70))
    read, late = DiskStore.read, threading.Event()

    def slow(store: DiskStore, *args: Any) -> float:
        if threading.current_thread() is not threading.main_thread():
            late.wait(0.3)  # the next pass begins meanwhile
            late.set()
        return read(store, *args)

    monkeypatch.setattr(DiskStore, "read", slow)
    driver.run({1: 1}, num_acquired=0)
    driver.run({0: 1})
    driver.check()


@torch.inference_mode()
def test_the_reader_thread_ends_with_its_cache(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    driver = Driver.on_disk(kind_of_cache("float32"), BELOW, tmp_path)
    (reader,) = set(threading.enumerate()) - before
    ready(driver)
    driver.store._file._reader = Failing(driver.store._file._reader, "readinto", errno.EIO)
    with suppress(TierError):
        driver.run({0: 1})
    assert reader.is_alive()
    del driver
    gc.collect(1)
    assert not reader.is_alive()


@torch.inference_mode()
def test_a_truncated_file_gives_no_wrong_rows(tmp_path: Path) -> None:
    driver = Driver.on_disk(kind_of_cache("float32"), BELOW, tmp_path)
    ready(driver)
    os.ftruncate(driver.store._file._writer.fileno(), 4096)
    for rows, decided in ((1, False), (64, True)):
        with pytest.raises(TierError, match="was cut"):
            driver.run({0: rows}, decided)
    with pytest.raises(TierError, match="was cut"):
        driver.run({1: 64}, decided=True)  # it would grow again, with zeros in between


def test_a_disk_without_room_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, taken = kind_of_cache("float32"), tmp_path / "file"
    taken.touch()
    with pytest.raises(TierError, match="can't be written"):
        kind.pool(kind.store(BELOW, taken))
    monkeypatch.setattr(disk_room, "FLOOR_BYTES", 1 << 60)
    with pytest.raises(TierError, match="The cached rows need"):
        kind.pool(kind.store(BELOW, tmp_path / "rows"))
    assert not list((tmp_path / "rows").iterdir())


_HOLDS_A_FILE = """
import sys
from pathlib import Path
from medusa_core.runtime.kv.offloaded.row_file import RowFile
file = RowFile(Path(sys.argv[1]), 1 << 20)
file.write(4096, memoryview(bytes(8192)))
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_killed_program_leaves_no_file(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _HOLDS_A_FILE, str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        program.kill()
    assert not list(tmp_path.iterdir())


def evict(pool: CachePool, kv: KvCache) -> bool:
    """Evict an unused cache."""
    pool.release(kv)
    return True


@torch.inference_mode()
def test_sessions_get_slots_and_return_them(tmp_path: Path) -> None:
    kind = kind_of_cache("float32")
    store = kind.store(BELOW, tmp_path)
    pool, new = kind.pool(store), kind.new_cache(store)
    caches = [pool.allocate(new, 20) for _ in range(SESSIONS)]
    for kv in caches:
        kv.reserve(1)
    assert not store._free
    with pytest.raises(OutOfMemoryError, match="room for 3 conversations"):
        pool.allocate(new, 20)
    with pytest.raises(OutOfMemoryError, match="room for 3 conversations"):
        new(20, None).reserve(1)
    pool.release(caches[0])
    caches[1] = pool.grown(new, caches[1], 200)  # it takes its slot along
    assert len(store._free) == 1
    pool.evict = partial(evict, pool, caches.pop())
    for _ in range(2):
        kv = pool.allocate(new, 20)
        kv.reserve(1)
    pool.evict = bool
    del kv, caches
    gc.collect(1)
    assert len(store._free) == SESSIONS


@torch.inference_mode()
def test_empty_rows_can_be_offloaded(tmp_path: Path) -> None:
    driver = Driver.on_disk(kind_of_cache("panels"), BELOW, tmp_path)
    driver.make_room(0, 100)
    driver.each(0, "fill", 100)
    driver.check()
    driver.run({0: 7})
    driver.each(0, "commit", [1, 3])
    driver.check()


@torch.inference_mode()
def test_unsupported_offloading_is_refused(tmp_path: Path) -> None:
    driver = Driver.on_disk(kind_of_cache("float32"), BELOW, tmp_path)
    below, _ = driver.pairs[0]
    assert below.most_rows == 16
    driver.make_room(0, 100)
    below, _ = driver.pairs[0]
    assert below.most_rows == driver.store.tail_rows - 15 >= TREE_ROWS
    with pytest.raises(EngineError, match="don't fit"):
        below.reserve(40)
    below.reserve(40, decided=True)
    with pytest.raises(EngineError, match="weren't prefetched"):
        below.write(1, torch.zeros(40, 2, 48))
    with pytest.raises(EngineError, match="hasn't computed all layers"):
        below.commit(range(40))
    with pytest.raises(EngineError, match="can't be chosen from"):
        below._gather_rows([1])
    with pytest.raises(EngineError, match="were not prefetched"):
        driver.prefetcher.acquire(driver._layer_kv(1, [0]))


@torch.inference_mode()
@pytest.mark.parametrize("name", ["float32", "q4", "half panels"])
def test_allocated_bytes_equal_the_plan(name: str, tmp_path: Path) -> None:
    kind = kind_of_cache(name)
    driver = Driver.on_disk(kind, BELOW, tmp_path)
    item = 4 if kind.cache_format else kind.dtype.itemsize
    given = (kind.config, item, kind.cache_format, BELOW)
    tails = tail_bytes(*given, SESSIONS, TREE_ROWS)
    assert driver.store.device_bytes == tails
    held = driver.pools[0].nbytes - tails
    assert held == driver.pools[0].row_bytes * SESSIONS * CONTEXT
    ready(driver)
    staging = driver.store._staging.nbytes + driver.store.new_staging().nbytes
    assert driver.prefetcher.nbytes + staging == ring_bytes(*given, 1, CONTEXT)
    size = os.fstat(driver.store._file._writer.fileno()).st_size
    rows = [offloaded_row_bytes(*given[:3], (layer,)) for layer in BELOW]
    assert size == SESSIONS * sum(region_bytes(row, CONTEXT) for row in rows)


def test_a_placement_says_whether_rows_are_offloaded(tmp_path: Path) -> None:
    config = kind_of_cache("float32").config
    precision = precision_of("float32", torch.device("cpu"))
    tiers = tuple(Tier.DISK if layer in BELOW else Tier.DEVICE for layer in ALL)
    placement = Placement((Tier.DISK,) * len(ALL), (0,) * len(ALL), 0, cache_tiers=tiers)
    assert create_kv_store(None, config, precision, 1, tmp_path) is None
    plain = replace(placement, cache_tiers=())
    assert create_kv_store(plain, config, precision, 1, tmp_path) is None
    with pytest.raises(TierError, match="no folder is named"):
        create_kv_store(placement, config, precision, 1, None)
    store = create_kv_store(replace(placement, tree_rows=30), config, precision, 2, tmp_path)
    assert store is not None
    assert (store.layers, store.num_sessions, store.step_rows) == (BELOW, 2, 33)
    assert store.num_rows == whole_rows(CONTEXT)
