"""The best of a row of scores, by the compiled step where there is one."""

from __future__ import annotations

import torch
from torch import Tensor

from medusa_core.native.library import native_library


def best_of_row(scores: Tensor, row: int) -> int | None:
    """Where a row's largest number stands, of equals the first.

    Args:
        scores: [rows, columns], contiguous
        row: Which row.

    Returns:
        A column; −1 if the row holds a NaN, or its largest number is infinite. None where nothing
        is compiled for such scores.
    """
    library = native_library()
    if library is None or scores.dtype != torch.float32 or not scores.is_cpu:
        return None
    columns = scores.shape[1]
    found: int = library.best_of_row(scores.data_ptr() + 4 * columns * row, columns)
    return found
