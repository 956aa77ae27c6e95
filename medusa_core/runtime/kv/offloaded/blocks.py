"""Rows as a home that takes blocks of sixteen has them."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from medusa_core.runtime.kv.size import ROUND_ROWS

# Rows of a layer in words: [heads of keys and of values, blocks, words of a head in a block].
RowBlocks = NDArray[np.uint64]


def as_blocks(rows: Tensor) -> RowBlocks:
    """Rows of a layer in words: a view.

    Args:
        rows: On a CPU, contiguous. [2, kv heads, slots, width]

    Returns:
        [heads, blocks, words]
    """
    two, num_kv, slots, width = rows.shape
    heads = rows.view(torch.uint8).numpy()
    size = ROUND_ROWS * width * rows.itemsize
    return heads.reshape(two * num_kv, slots // ROUND_ROWS, size).view(np.uint64)
