"""Stored weights are repacked, dequantized and quantized alike by every library and by torch."""

from pathlib import Path

import pytest
import torch

from medusa_core.models.quant import block_rounding
from medusa_core.models.quant.block_rounding import round_to
from medusa_core.models.quant.block_types import COMPILED_TYPES, block_type
from medusa_core.models.quant.random_blocks import random_blocks
from medusa_core.models.quant.tiles import tile_blocks
from medusa_core.system import compute_threads
from medusa_core.system.native.binding import open_library
from medusa_core.system.native.threads import for_ranges
from tests.support.models.natives import each_library


@each_library
@pytest.mark.parametrize(("rows", "columns"), [(41, 768), (16, 256), (3, 512)])
def test_every_library_repacks_to_the_same_bytes(path: Path, rows: int, columns: int) -> None:
    library = open_library(path)
    for name in sorted(COMPILED_TYPES):
        kind, stored = block_type(name), random_blocks(name, rows, columns, seed=3)
        wanted = tile_blocks(kind, stored)
        made = torch.empty_like(wanted).fill_(255)  # the padding of the last tile is written, too
        number = int(kind.sizes.tiles.type)
        assert library.tile_blocks(number, stored.data_ptr(), rows, columns, made.data_ptr())
        assert torch.equal(made, wanted), name


@each_library
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_every_library_dequantizes_as_torch_does(path: Path, dtype: torch.dtype) -> None:
    library, rows, columns = open_library(path), 5, 512
    known = 0
    for name in sorted(COMPILED_TYPES):
        kind, stored = block_type(name), random_blocks(name, rows, columns, seed=4)
        numbers = torch.empty(rows, columns, dtype=dtype)
        is_made = library.dequantize_blocks(
            int(kind.sizes.tiles.type),
            stored.data_ptr(),
            stored.numel() // kind.sizes.nbytes,
            dtype == torch.bfloat16,
            numbers.data_ptr(),
        )
        known += is_made
        if is_made:
            assert torch.equal(numbers, kind.blocks(stored).numbers().to(dtype)), name
        assert torch.equal(kind.dequantize(stored, dtype), kind.blocks(stored).numbers().to(dtype))
    assert known == 8


@each_library
def test_every_library_quantizes_to_q4_alike(path: Path) -> None:
    weight = torch.randn(33, 96, generator=torch.Generator().manual_seed(5))
    weight[3] = 0
    weight[4] *= 1e-6
    blocks = round_to("q4", weight)
    made = torch.empty_like(blocks)
    open_library(path).quantize_q4(weight.data_ptr(), weight.numel() // 32, made.data_ptr())
    assert torch.equal(made, blocks)
    by_torch = block_rounding._ROUNDINGS["q4"](weight)
    assert (by_torch != blocks).sum() <= 18, "one block, whose two scales are nearly as good"
    loss = (block_type("q4_0").dequantize(blocks) - weight).norm() / weight.norm()
    assert loss < 0.085, "llama.cpp's scales lose 0.0861"


def test_ranges_cover_everything_once_and_begin_at_whole_tiles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compute_threads, "count", lambda: 3)
    ranges: list[tuple[int, int]] = []
    for_ranges(lambda *one: ranges.append(one), 100, 1 << 24, 16)
    assert sorted(ranges) == [(0, 48), (48, 48), (96, 4)]
    ranges.clear()
    for_ranges(lambda *one: ranges.append(one), 100, 1000, 16)
    assert ranges == [(0, 100)], "few weights take one thread"
