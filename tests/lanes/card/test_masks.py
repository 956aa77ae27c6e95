"""Masks that a card's attention takes: of 1 to 64 rows, at every length up to 4,096."""

import random
from itertools import product
from pathlib import Path

import pytest
import torch

from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import LoadOptions
from medusa_core.runtime.runner.resident import ResidentRunner
from medusa_core.runtime.runner.rows import additive_mask
from medusa_core.runtime.runner.runner import PlacedTree
from medusa_core.runtime.runner.static import StaticRunner
from medusa_core.runtime.tree.shape import (
    TokenTree,
    TreeShape,
)
from tests.support.card.attention import POINTER_BYTES, is_padded
from tests.support.card.card import ON_CARDS, fake_cuda
from tests.support.engine.by_turns import by_turns
from tests.support.engine.fakes import random_shape
from tests.support.models.tiny import TinySpec, write_tiny

LONGEST = 4096
STRIDE = 7  # odd: every remainder by the powers of two that alignment asks for
LENGTHS = (1, 63, 100, 449, 1021, 2048, 4032)
ROWS = (2, 7, 8, 16, 33, 64)
META = torch.device("meta")


def lies_well(mask: torch.Tensor) -> bool:
    """Neither refused nor copied by the memory-efficient attention."""
    begins = mask.storage_offset() * mask.itemsize
    return not is_padded(mask) and begins % POINTER_BYTES == 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_every_mask_is_aligned_as_attention_requires(dtype: torch.dtype) -> None:
    odd = []
    behind = product(ROWS, range(0, LONGEST + 1, STRIDE))
    for rows, length in {*behind, *product(range(2, 65), range(64))}:
        sees = torch.empty(rows, rows, dtype=torch.bool, device=META)
        mask = additive_mask(sees, length, 2, dtype)
        if not lies_well(mask) or mask.shape != (2 * rows, length + rows):
            odd.append((rows, length))
    assert odd == []


@pytest.fixture(scope="module")
def long_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("long"), TinySpec(context_tokens=LONGEST))


def trees() -> list[TokenTree]:
    """Return a tree of every row count."""

    rng = random.Random(7)
    shapes = [TreeShape.root_only(), *(random_shape(rng, rows, 8) for rows in ROWS)]
    return [TokenTree(shape, tuple(range(20, 20 + shape.num_nodes))) for shape in shapes]


@torch.inference_mode()
def states(target: Target, runner: ResidentRunner) -> list[torch.Tensor]:
    """Return hidden states of every tree after every length, with the keys and values that it
    wrote.
    """
    kv = runner.new_cache(LONGEST + 64)
    kv.fill(LONGEST)
    kv.truncate(0)
    runner.extend([5 + 7 * place % 300 for place in range(96)], kv)
    found = []
    for length in LENGTHS:
        kv.length = length
        found += [runner.verify(PlacedTree(tree, kv)).cpu() for tree in trees()]
    return found


@pytest.mark.parametrize("graphs", [False, True], ids=["plain", "graphs"])
def test_passes_of_any_rows_after_any_length_equal_the_cpu(graphs: bool, long_model: Path) -> None:
    here = load_target(long_model, options=LoadOptions("float64", "cpu"))
    expected = states(here, ResidentRunner(here.runner._model, here.precision))
    with fake_cuda():
        there = load_target(long_model, options=LoadOptions("float64", "cuda"))
        runner = ResidentRunner(there.runner._model, there.precision)
        if graphs:
            runner = StaticRunner(there.runner._model, there.precision, captures=True)
        for mine, other in zip(states(there, runner), expected, strict=True):
            assert (mine - other).abs().max() < 1e-10


@pytest.mark.parametrize(("capability", "graphs"), by_turns(ON_CARDS[:3], [False, True]))
def test_attention_accepts_unpadded_masks(
    capability: tuple[int, int], graphs: bool, long_model: Path
) -> None:
    with fake_cuda(capability) as card:
        target = load_target(long_model, options=LoadOptions("", "cuda"))
        runner = ResidentRunner(target.runner._model, target.precision)
        if graphs:
            runner = StaticRunner(target.runner._model, target.precision, captures=True)
        card.journal.clear()
        states(target, runner)
        masks = [call.given[3] for call in card.journal.attended]
        assert {call.kernel for call in card.journal.attended} <= {"efficient", "flash"}
        for mask in masks:
            if mask is not None:
                assert mask.strides[0] % 8 == 0
                assert mask.offset_bytes % POINTER_BYTES == 0
