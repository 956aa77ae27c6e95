"""Blocks of few bits come to the numbers that the `gguf` package reads in them."""

import gguf
import numpy as np
import pytest
import torch

from medusa_core.errors import CheckpointError
from medusa_core.models.quant.block_types import (
    BLOCK_TYPES,
    block_type,
)
from medusa_core.models.quant.codebook_types import codebooks
from medusa_core.models.quant.random_blocks import random_blocks

CODEBOOKS = {
    "iq1": gguf.quants.IQ1_S,
    "iq2_xxs": gguf.quants.IQ2_XXS,
    "iq2_xs": gguf.quants.IQ2_XS,
    "iq2_s": gguf.quants.IQ2_S,
    "iq3_xxs": gguf.quants.IQ3_XXS,
    "iq3_s": gguf.quants.IQ3_S,
}
OF_FILES = sorted(BLOCK_TYPES.keys() - {"nf4_0"})  # which no GGUF file holds


@pytest.mark.parametrize("name", OF_FILES)
def test_weights_equal_the_gguf_packages_bit_for_bit(name: str) -> None:
    stored = random_blocks(name, rows=64, columns=1024, seed=1)
    wanted = gguf.quants.dequantize(stored.numpy(), gguf.GGMLQuantizationType[name.upper()])
    found = block_type(name).dequantize(stored)
    assert found.shape == (64, 1024)
    assert found.numpy().tobytes() == wanted.astype(np.float32).tobytes()


@pytest.mark.parametrize("name", OF_FILES)
def test_the_sizes_are_those_of_the_format(name: str) -> None:
    sizes = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name.upper()]]
    assert (block_type(name).sizes.weights, block_type(name).sizes.nbytes) == sizes


@pytest.mark.parametrize("name", sorted(set(BLOCK_TYPES) - {"q2_k", "q3_k"}))
def test_the_compiled_step_stores_weights_as_small_as_their_file_or_in_4_bits(name: str) -> None:
    sizes = block_type(name).sizes
    four_bits = (288 * 8 + 32) * 64 * 1024 // (16 * 256)
    stored = int(1.03 * 64 * sizes.row_bytes(1024))
    assert sizes.tiles.nbytes(64, 1024) <= max(stored, four_bits)


def test_codebooks_equal_those_of_the_gguf_package() -> None:
    for name, of in CODEBOOKS.items():
        of.dequantize(random_blocks("iq1_s" if name == "iq1" else name, 1, 256).numpy())  # makes it
        assert of.grid is not None
        wanted = torch.from_numpy(of.grid[0, 0].astype(np.int8))
        assert torch.equal(codebooks()[name].view(torch.int8), wanted)


@pytest.mark.parametrize("exponent", [0, 1, 2, 127, 254])
def test_every_exponent_of_mxfp4_is_that_power_of_two(exponent: int) -> None:
    stored = torch.zeros(1, 17, dtype=torch.uint8)
    stored[0, 0] = exponent
    stored[0, 1] = 2  # of twice the numbers 0, 1, 2: one
    assert block_type("mxfp4").dequantize(stored)[0, 0].item() == 2.0 ** (exponent - 127)


def test_an_unsupported_block_type_is_named() -> None:
    with pytest.raises(CheckpointError, match="Q1_0"):
        block_type("q1_0")
