"""What heads that read whole texts are given."""

from pathlib import Path

import torch

from medusa_core.loading.load import load_target
from medusa_core.messages import LoadOptions
from medusa_core.training.deep_texts import deep_texts
from medusa_core.training.documents import answered
from medusa_core.training.positions import computed
from tests.support.models.tiny import TinySpec, write_tiny


def test_every_token_keeps_its_own_inputs_of_the_tapped_layers(tmp_path: Path) -> None:
    target = load_target(write_tiny(tmp_path, TinySpec()), None, LoadOptions("float32", "cpu"))
    target.runner.tap((1, 2))
    texts = [answered((5, 6, 7), (8, 9, 10, 11), 3), answered((12,), (13, 14), 4)]
    size, start = target.config.hidden_size, 0
    shard = deep_texts(texts, computed(target, texts, 6), size, 6)
    for text, length in zip(texts, (6, 3), strict=True):
        kv = target.runner.new_cache(8)
        alone = target.runner.extend(text.ids[:length].tolist(), kv)[:, size:]
        assert torch.equal(shard["deep"][start : start + length], alone.to(torch.bfloat16))
        assert shard["ids"][start : start + length].tolist() == text.ids[:length].tolist()
        start += length
    assert shard["lengths"].tolist() == [6, 3]
    assert shard["seeds"].tolist() == [3, 4]
    assert shard["is_answer"].tolist() == [*[False] * 3, *[True] * 3, False, True, True]
