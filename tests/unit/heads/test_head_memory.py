"""What heads with a cache of their own keep of a conversation: what is left of it, and no more."""

import pytest
import torch

from medusa_core.engine.session import Session
from medusa_core.heads.block import BlockHead
from medusa_core.loading.load import load_target
from medusa_core.messages import ChatMessage, GenerateSettings, LoadOptions, Role
from medusa_core.runtime.kv.size import ROUND_ROWS
from medusa_core.speculation.drafters.block_source import BlockMemory
from medusa_core.speculation.drafters.head_memory import HeadMemory
from tests.support.engine.fixtures import LoadTarget
from tests.support.engine.laws import decode, user_says
from tests.support.models.targets import Folders

DRAFTERS = {"dspark": "dspark", "eagle": "eagle", "mimo": "mtp", "streams": "streams"}


def memory_of(session: Session) -> HeadMemory:
    (memory,) = session.memory.values()
    assert isinstance(memory, HeadMemory)
    return memory


@pytest.mark.parametrize("name", DRAFTERS)
def test_of_an_edited_conversation_heads_keep_what_a_new_one_would_have(
    name: str, load: LoadTarget
) -> None:
    target = load(name, "float64")
    settings = GenerateSettings(drafter=DRAFTERS[name], max_new_tokens=12, tree_rows=12)
    begun = user_says("one two three")
    session, fresh = Session(target), Session(target)
    first = decode(target, settings, begun, session=session)
    output = ChatMessage(Role.ASSISTANT, first.done.text[:4])
    edited = (*begun, output, *user_says("and four, or five"))
    second = decode(target, settings, edited, session=session)
    assert second.done.num_cached_tokens >= len(first.prompt_ids) - 1
    assert second.token_ids == decode(target, settings, edited, session=fresh).token_ids
    kept, new = memory_of(session), memory_of(fresh)
    assert kept.token_ids == new.token_ids
    rows = min(kept.kv.length, new.kv.length)
    assert rows > len(second.prompt_ids) - 2
    pair = [memory.kv.committed()[:, :, :, :rows] for memory in (kept, new)]
    assert torch.allclose(*pair, rtol=1e-9, atol=1e-9)
    session.close()
    fresh.close()


def test_rows_that_had_to_go_are_counted_when_places_are_forgotten(folders: Folders) -> None:
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
