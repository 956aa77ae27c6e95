"""Prompts are read in chunks that grow while they are quick, and shrink where they are slow."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from medusa_core.loading.memory.plan import chunk_rows
from medusa_core.loading.target import Target
from medusa_core.messages import Placement, Tier
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.runner.resident import ResidentRunner
from medusa_core.runtime.runner.runner import Waited
from medusa_core.speculation.tuning.chunks import (
    LIMIT_S,
    Chunks,
)
from tests.support.engine.fixtures import LoadTarget


class TimedRunner(ResidentRunner):
    """Runner that takes a time per row on a fake clock, and records its chunks."""

    def __init__(self, target: Target, row_s: float) -> None:
        super().__init__(target.runner._model, target.precision)
        self.now_s = 0.0
        self.chunks: list[int] = []
        self._row_s = row_s

    def extend(self, token_ids: Sequence[int], kv: KvCache, only_last: bool = False) -> Tensor:
        self.chunks.append(len(token_ids))
        self.now_s += self._row_s * len(token_ids)
        return super().extend(token_ids, kv, only_last)


def chunks_of(
    target: Target,
    row_s: float,
    monkeypatch: pytest.MonkeyPatch,
    kind: type[TimedRunner] | None = None,
) -> list[int]:
    """The chunks in which a device like that reads 500 tokens."""
    monkeypatch.setattr(Target, "chunk_rows", property(lambda _: chunk_rows("cuda")))
    runner = (kind or TimedRunner)(target, row_s)
    if kind is WaitingRunner:
        placement = Placement((Tier.DISK,), (1,), 1, chunk_rows("cuda"))
        target = replace(target, plan=replace(target.plan, placement=placement))
    reader = Chunks(replace(target, runner=runner), clock=lambda: runner.now_s)
    kv = runner.new_cache(500)
    with torch.inference_mode():
        while kv.length < 500:
            reader.read([7] * 500, kv, only_last=True)
    return runner.chunks


def test_fast_chunks_grow_and_slow_ones_shrink(
    tiny: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert chunks_of(tiny, 1e-5, monkeypatch) == [64, 128, 256, 52]
    assert chunks_of(tiny, 1e-3, monkeypatch) == [64, 128, 240, 68]
    assert chunks_of(tiny, 35e-4, monkeypatch)[:7] == [64] * 7
    assert chunks_of(tiny, 5e-3, monkeypatch)[:3] == [64, 48, 48]
    assert chunks_of(tiny, 7e-3, monkeypatch)[:3] == [64, 32, 32]
    assert set(chunks_of(tiny, 1.0, monkeypatch)[2:-1]) == {16}


def test_chunks_grow_again_after_a_slow_one(tiny: Target) -> None:
    chunks = Chunks(tiny)
    chunks.learn(64, 0.9, 0.0)
    assert chunks.rows == 32
    chunks.learn(32, 0.12, 0.0)
    assert chunks.rows == 64


class WaitingRunner(TimedRunner):
    """Runner whose layers take a second to arrive, in parallel to computation."""

    transfer_s = 0.0

    @property
    def waited(self) -> Waited:
        return Waited(self.transfer_s)

    def extend(self, token_ids: Sequence[int], kv: KvCache, only_last: bool = False) -> Tensor:
        waited_s = max(0.0, 1.0 - self._row_s * len(token_ids))
        self.transfer_s += waited_s
        self.now_s += waited_s
        return super().extend(token_ids, kv, only_last)


@pytest.mark.parametrize(
    ("row_s", "expected"),
    [(1e-3, [64, 128, 256, 52]), (1e-2, [64, *[128] * 3, 52]), (2e-2, [64] * 7 + [52])],
)
def test_chunks_grow_while_layers_are_waited_for(
    row_s: float, expected: list[int], tiny: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert chunks_of(tiny, row_s, monkeypatch, WaitingRunner) == expected


def test_a_chunk_takes_no_longer_than_a_cancel_may_wait(
    tiny: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    for row_s in (1e-5, 1e-4, 1e-3, 2e-3, 4e-3):
        assert max(chunks_of(tiny, row_s, monkeypatch)) * row_s <= LIMIT_S


def test_chunking_changes_no_bit_of_the_compiled_prefill(load: LoadTarget) -> None:
    target = load("pebble", "float32")
    held = []
    for rows in (16, 37, 64, 130):
        reader, kv = Chunks(target), target.runner.new_cache(160)
        reader.rows = rows
        while kv.length < 150:
            reader.read([5, 9, 60] * 50, kv)
        held.append(kv.committed())
    assert torch.equal(held[0], held[1])
    assert torch.equal(held[0], held[2])
    assert torch.equal(held[0], held[3])
