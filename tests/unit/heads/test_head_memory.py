"""What heads with a cache of their own keep of a conversation: what is left of it, and no more."""

import torch

from medusa_core.heads.block import BlockHead
from medusa_core.loading.load import load_target
from medusa_core.messages import LoadOptions
from medusa_core.runtime.kv.size import ROUND_ROWS
from medusa_core.speculation.drafters.block_source import BlockMemory
from tests.support.models.targets import Folders


def test_truncated_rows_are_counted_when_positions_are_dropped(folders: Folders) -> None:
    target = load_target(*folders["dspark"], LoadOptions("float64", "cpu"))
    head = target.heads
    assert isinstance(head, BlockHead)
    head.reserve(4 * ROUND_ROWS)
    pool = head.caches
    assert pool is not None
    before = pool.allocate(head.new_cache, ROUND_ROWS)
    memory = BlockMemory(head)
    behind = pool.allocate(head.new_cache, ROUND_ROWS)
    pool.release(before)
    ids = list(range(40))
    features = head.features(torch.randn(40, 2 * 32, dtype=torch.float64))

    def read(end: int) -> None:
        start = memory.num_places
        memory.add(features[start:end], ids[start:end])
        memory.catch_up(0)

    read(ROUND_ROWS - 2)
    read(ROUND_ROWS + 8)  # there is no room for both caches at once
    assert memory.kv.length == 10
    memory.keep(8)
    assert memory.kv.length == 0
    read(30)
    memory.keep(20)
    assert memory.kv.length == 12
    pool.release(behind)
    whole = BlockMemory(head)
    whole.add(features[:20], ids[:20])
    whole.catch_up(0)
    parts = [kv.committed()[:, :, :, -12:] for kv in (memory.kv, whole.kv)]
    assert torch.allclose(*parts, rtol=1e-9, atol=1e-9)
