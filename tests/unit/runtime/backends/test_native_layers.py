"""Layers of draft heads in the compiled step draft what torch's operations draft."""

from pathlib import Path

import pytest
import torch

from medusa_core.heads.chained import ChainedHead
from medusa_core.runtime.kv.panel_cache import PanelCache
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.chained_source import ChainedSource
from medusa_core.speculation.drafters.lineup import source_registry
from medusa_core.system.native.binding import native_library
from tests.support.engine.heard_text import TEXT, candidates_of, hear
from tests.support.models.heads_of_kind import HEADS_OF_KIND, Formats, load_heads

pytestmark = pytest.mark.skipif(native_library() is None, reason="no compiled step here")
# The layers of the other families are too narrow here.
NAMES = [name for name, kind in HEADS_OF_KIND.items() if kind.drafter == "eagle"] + ["MiMo"]


@pytest.mark.parametrize("name", NAMES)
@torch.inference_mode()
def test_compiled_layers_draft_like_torch(name: str, tmp_path: Path) -> None:
    kind = HEADS_OF_KIND[name]
    kind.write(tmp_path / "model", tmp_path / "heads")
    sources, features = [], torch.empty(0)
    for is_compiled in (True, False):
        target = load_heads(tmp_path, Formats("float32"))
        head = target.heads
        assert isinstance(head, ChainedHead)
        assert head._compiled is not None
        if not is_compiled:
            head._compiled = None
        source = source_registry().get(kind.drafter).build(target, RowBudget(24))
        assert isinstance(source, ChainedSource)
        features = head.features(*[hear(target, source, TEXT, [4, 1, 3])] * 2)
        assert isinstance(source._memory.get().kv, PanelCache) == is_compiled
        sources.append(source)
    for has_lost_rows in (False, True):
        for source in sources:
            if has_lost_rows:  # positions go on, but the cache starts anew
                source._memory.get().kv.truncate(0)
                source._memory.get().add(features[:2], TEXT[:2])
            source.start(TEXT[-1], 24)
        paths: list[tuple[int, ...]] = [()]
        for _ in range(4):
            ours, theirs = (candidates_of(source, *paths) for source in sources)
            for one, other in zip(ours, theirs, strict=True):
                assert list(one)[:3] == list(other)[:3]
                assert list(one.values()) == pytest.approx(list(other.values()), rel=5e-3)
            best = [list(each)[:2] for each in ours]
            paths = [(*path, tokens[0]) for path, tokens in zip(paths, best, strict=True)]
            paths += [(*paths[0][:-1], best[0][1])]
