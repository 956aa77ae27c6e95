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
from medusa_core.models.quant.random_blocks import random_blocks

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
def test_the_compiled_step_holds_them_as_small_as_their_file(name: str) -> None:
    sizes = block_type(name).sizes
    assert sizes.tiles.nbytes(64, 1024) <= 1.03 * 64 * sizes.row_bytes(1024)


@pytest.mark.parametrize("exponent", [0, 1, 2, 127, 254])
def test_every_exponent_of_mxfp4_is_that_power_of_two(exponent: int) -> None:
    stored = torch.zeros(1, 17, dtype=torch.uint8)
    stored[0, 0] = exponent
    stored[0, 1] = 2  # of twice the numbers 0, 1, 2: one
    assert block_type("mxfp4").dequantize(stored)[0, 0].item() == 2.0 ** (exponent - 127)


def test_a_type_that_is_not_read_is_named() -> None:
    with pytest.raises(CheckpointError, match="IQ2_XS"):
        block_type("iq2_xs")
