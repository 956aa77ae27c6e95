"""What a cache knows of rows that other machines hold."""

from itertools import count

import pytest
import torch

from medusa_core.models.config import parse_config
from medusa_core.runtime.cluster.remote_cache import Remote, RemoteCache
from tests.support.models.tiny import TinySpec, config_of


@pytest.fixture
def cache() -> RemoteCache:
    config = parse_config(config_of(TinySpec()), {})
    numbers, forgotten = count(), list[int]()
    return RemoteCache(
        config, lambda: Remote(numbers, forgotten), lambda _: torch.empty(0), capacity=16
    )


def test_a_new_stage_gets_only_the_tokens_of_committed_rows(
    cache: RemoteCache,
) -> None:
    cache.open([1, 2, 3, 4])
    cache.commit((0, 2, 3))
    assert cache.token_ids == [1, 3, 4]
    cache.truncate(1)
    assert cache.token_ids == [1]
    cache.open([5, 6])
    cache.commit((1,))
    assert cache.token_ids == [1, 6]
    assert len(cache.token_ids) == cache.length
